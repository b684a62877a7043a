//! Every workflow in `testdata/check` with the findings that it must give.
//!
//! To add a case, add `<case>.yaml`, run the tests with `TULPAR_BLESS=1`, and read what was written to
//! `<case>.expected`. Comments at the top of the file set the scene:
//!
//! ```text
//! # param: epochs=7                  as on the command line
//! # files: images=img/1.jpg img/2.jpg  what a data entry lists (nothing after `=`: no file)
//! # many-files: images=30000         so many files
//! # site: {nodes: 2, cpus: 8, memory: 32 GB}
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tulpar_core::catalogue;
use tulpar_core::diagnostic::{CODES, Diagnostic, line_column};
use tulpar_core::ids::Digest;
use tulpar_core::workflow::{DataFile, Workflow, check, read};

fn settings<'t>(text: &'t str, key: &str) -> impl Iterator<Item = &'t str> {
    let prefix = format!("# {key}: ");
    text.lines().filter_map(move |line| line.strip_prefix(prefix.as_str()))
}

fn data_file(path: &str) -> DataFile {
    DataFile { path: path.to_owned(), from: path.to_owned(), size: 1, digest: Digest::of(path.as_bytes()) }
}

fn listings(text: &str, workflow: &Workflow) -> Option<Vec<Vec<DataFile>>> {
    let mut named: BTreeMap<&str, Vec<DataFile>> = BTreeMap::new();
    for line in settings(text, "files") {
        let (name, files) = line.split_once('=').expect("files: name=paths");
        named.insert(name, files.split_whitespace().map(data_file).collect());
    }
    for line in settings(text, "many-files") {
        let (name, count) = line.split_once('=').expect("many-files: name=count");
        let count: usize = count.parse().expect("a number");
        named.insert(name, (0..count).map(|number| data_file(&format!("img/{number}.jpg"))).collect());
    }
    let every = |name: &str| named.get(name).cloned().unwrap_or_default();
    (!named.is_empty()).then(|| workflow.data.iter().map(|data| every(&data.name)).collect())
}

fn findings(text: &str) -> Vec<Diagnostic> {
    let overrides: BTreeMap<String, String> = settings(text, "param")
        .map(|line| line.split_once('=').expect("param: name=value"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let (workflow, mut diagnostics) = read(text, &overrides);
    if let Some(workflow) = workflow {
        let sites: Vec<_> = settings(text, "site")
            .flat_map(|line| {
                let (found, problems) = catalogue::read(&format!("sites: {{small: {line}}}"));
                assert_eq!(problems, [], "the site of the case");
                found.sites
            })
            .collect();
        diagnostics.extend(check(&workflow, listings(text, &workflow).as_deref(), sites.first()));
    }
    diagnostics
}

fn render(text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    if diagnostics.is_empty() {
        out.push_str("no findings\n");
    }
    for diagnostic in diagnostics {
        let severity = if diagnostic.is_error() { "error" } else { "warning" };
        let place = match &diagnostic.span {
            Some(span) => {
                let (line, column) = line_column(text, span);
                let marked = &text[span.start as usize..span.end as usize];
                format!("{line}:{column} {:?}", marked.lines().next().unwrap_or(""))
            }
            None => "nowhere".to_owned(),
        };
        let _ = writeln!(out, "{} {severity} at {place}", diagnostic.code);
        let _ = writeln!(out, "  {}", diagnostic.message);
        if !diagnostic.label.is_empty() {
            let _ = writeln!(out, "  label: {}", diagnostic.label);
        }
        for help in &diagnostic.help {
            let _ = writeln!(out, "  help: {help}");
        }
        for (span, note) in &diagnostic.related {
            let (line, column) = line_column(text, span);
            let _ = writeln!(out, "  see {line}:{column}: {note}");
        }
    }
    out
}

#[test]
fn every_workflow_gives_the_findings_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check");
    let bless = std::env::var_os("TULPAR_BLESS").is_some();
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of cases")
        .map(|entry| entry.expect("a case").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    names.sort();
    assert!(names.len() >= 40, "only {} cases", names.len());
    let mut wrong = Vec::new();
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let found = render(&text, &findings(&text));
        let expected_path = path.with_extension("expected");
        if bless {
            std::fs::write(&expected_path, &found).expect("the expectation can be written");
            continue;
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected {
            wrong.push(format!("== {}\n-- expected\n{expected}-- found\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_cases_show_nearly_every_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check");
    let mut seen = String::new();
    for entry in std::fs::read_dir(folder).expect("the folder of cases") {
        let path = entry.expect("a case").path();
        if path.extension().is_some_and(|extension| extension == "expected") {
            seen.push_str(&std::fs::read_to_string(path).expect("an expectation is text"));
        }
    }
    let never: Vec<&str> = CODES.iter().map(|(code, _)| *code).filter(|code| !seen.contains(code)).collect();
    // More than a thousand findings are tested where they can be made.
    assert_eq!(never, ["W030"]);
}
