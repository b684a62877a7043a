//! What showing results costs. `cargo run --release -p tulpar-exec --example publish_speed [FILES]`

use std::fs;
use std::time::Instant;
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;
use tulpar_exec::cache::object_path;
use tulpar_exec::publish::Results;

#[expect(clippy::print_stdout, reason = "printing figures is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(30_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let mut outputs = Vec::new();
    for n in 0..count {
        let content = n.to_string();
        let digest = Digest::of(content.as_bytes());
        let place = object_path(folder.path(), &digest);
        fs::create_dir_all(place.parent().expect("an object lies in a folder"))?;
        fs::write(&place, &content)?;
        let path = format!("clean/{}/{n}.npy", n % 100);
        outputs.push(OutputFile { output: 0, path, size: content.len() as u64, digest, executable: false });
    }
    for what in ["new", "there already"] {
        let started = Instant::now();
        let mut results =
            Results::open(&folder.path().join("results"), folder.path(), &folder.path().join("known"), "speed");
        let shown = results.show(&outputs);
        results.settle();
        println!(
            "{count} results, {what:<14} {:.2} s ({} new, {} unchanged)",
            started.elapsed().as_secs_f64(),
            shown.new,
            shown.unchanged
        );
    }
    Ok(())
}
