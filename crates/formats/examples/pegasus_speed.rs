//! How long reading and converting a Pegasus workflow takes: `cargo run --release --example pegasus_speed FOLDER`.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout, reason = "it measures")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use tulpar_core::workflow;
use tulpar_formats::pegasus::{self, Text, Texts};

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("the folder of a Pegasus workflow"));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (workflow, replicas) = (read("workflow.yml"), read("replicas.yml"));
    let (transformations, sites) = (read("transformations.yml"), read("sites.yml"));
    let texts = Texts {
        workflow: Text { name: "workflow.yml", text: &workflow },
        replicas: Some(Text { name: "replicas.yml", text: &replicas }),
        transformations: Some(Text { name: "transformations.yml", text: &transformations }),
        sites: Some(Text { name: "sites.yml", text: &sites }),
        properties: None,
    };
    let environment = BTreeMap::from([("PWD".to_owned(), "/".to_owned()), ("FIXTURE_DIR".to_owned(), "/".to_owned())]);
    for _ in 0..3 {
        let start = Instant::now();
        let reading = pegasus::read(&texts, &environment);
        let model = reading.model.expect("a workflow");
        let read = start.elapsed();
        let (converted, _) = pegasus::convert(&model, None);
        let converted_at = start.elapsed();
        let findings = workflow::check(&converted, None, None);
        let checked = start.elapsed();
        let written = workflow::write(&converted);
        let written_at = start.elapsed();
        println!(
            "{} jobs, {} uses: read {read:.0?}, converted {:.0?}, checked {:.0?} ({} findings), written {:.0?} ({} MB)",
            model.jobs.len(),
            model.uses(),
            converted_at - read,
            checked - converted_at,
            findings.len(),
            written_at - checked,
            written.len() / 1_000_000
        );
    }
}
