//! Pegasus workflows, as others wrote them and as we did.

mod conversion;
mod counts;
mod planning;
mod retries;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        use std::io::Write;
        let file = std::fs::File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// The folder of real Pegasus files, which lies beside the repository and is no part of it.
fn real_files() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/pegasus");
    if !folder.is_dir() {
        skipped("the Pegasus workflows of ../shared are not here");
        return None;
    }
    Some(folder.canonicalize().expect("a folder"))
}

/// A value for every variable that a text names.
fn variables(text: &str) -> BTreeMap<String, String> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    names.map(|name| (name.to_owned(), "/somewhere".to_owned())).collect()
}
