//! Every instance of the shared fixtures has the counts that an independent program found in it.

use crate::pegasus::skipped;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use tulpar_formats::wfformat::{self, Instance};

pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures").join(name);
    if !folder.is_dir() {
        skipped(&format!("the instances of ../shared/fixtures/{name} are not here"));
        return None;
    }
    Some(folder)
}

pub(crate) fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("a file");
    let mut text = String::new();
    match path.extension() {
        Some(extension) if extension == "gz" => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text),
        _ => (&bytes[..]).read_to_string(&mut text),
    }
    .expect("UTF-8");
    text
}

pub(crate) fn good(path: &Path) -> Instance {
    let text = text(path);
    assert!(wfformat::is_wfformat(&text), "{}", path.display());
    let (instance, findings) = wfformat::read(&text);
    assert_eq!(super::said(&findings), Vec::<String>::new(), "{}", path.display());
    instance.expect("an instance")
}

#[test]
fn instances_have_the_counts_of_the_reference() {
    let Some(folder) = folder("wfformat") else { return };
    let expected: Vec<Value> = serde_json::from_str(&text(&folder.join("expected.json"))).expect("JSON");
    assert_eq!(expected.len(), 30);
    for entry in &expected {
        let name = entry["file"].as_str().expect("a name");
        let instance = good(&folder.join(name));
        let tasks = &instance.tasks;
        let count = |value: usize| Value::from(value as u64);
        let empty = |list: fn(&wfformat::Task) -> &Vec<u32>| tasks.iter().filter(|task| list(task).is_empty()).count();
        let mut cores: BTreeMap<String, u64> = BTreeMap::new();
        tasks.iter().for_each(|task| *cores.entry(task.cores.to_string()).or_default() += 1);
        let found = [
            ("name", Value::from(instance.name.as_str())),
            ("tasks", count(tasks.len())),
            ("edges", count(instance.edges())),
            ("files", count(instance.files.len())),
            ("file_bytes", Value::from(instance.files.iter().map(|file| file.size).sum::<u64>())),
            ("sources", count(empty(|task| &task.parents))),
            ("sinks", count(empty(|task| &task.children))),
            ("zero_runtime_tasks", count(tasks.iter().filter(|task| task.runtime == Some(0.0)).count())),
            ("machines", count(instance.machines.len())),
            ("machine_cores", Value::from(instance.machines.iter().filter_map(|machine| machine.cores).sum::<u64>())),
            ("task_core_counts", serde_json::to_value(&cores).expect("numbers")),
        ];
        for (key, value) in found {
            assert_eq!(value, entry[key], "{key} of {name}");
        }
        let near = |key: &str, value: f64| {
            let reference = entry[key].as_f64().expect("a number");
            assert!((value - reference).abs() <= 1e-6 * reference.max(1.0), "{key} of {name}: {value} {reference}");
        };
        near("makespan_measured_s", instance.makespan.expect("a makespan"));
        near("work_core_s", tasks.iter().map(|task| task.seconds() * task.cores).sum());
        near("critical_path_s", critical_path(&instance));
        assert_eq!(instance.system.as_ref().map(|system| system.name.as_str()), entry["runtimeSystem"].as_str());
    }
}

fn critical_path(instance: &Instance) -> f64 {
    let mut end = vec![0.0_f64; instance.tasks.len()];
    for number in instance.order() {
        let task = &instance.tasks[number as usize];
        let start = task.parents.iter().map(|parent| end[*parent as usize]).fold(0.0, f64::max);
        end[number as usize] = start + task.seconds();
    }
    end.into_iter().fold(0.0, f64::max)
}

#[test]
fn kinds_are_what_equal_tasks_have_in_common() {
    let Some(folder) = folder("wfformat") else { return };
    let kinds = |name: &str| {
        let instance = good(&folder.join(name));
        let kinds: BTreeSet<String> = instance.tasks.iter().map(|task| task.kind.clone()).collect();
        kinds.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(kinds("srasearch-chameleon-10a-001.json"), "bowtie2 bowtie2-build fasterq-dump merge");
    assert_eq!(kinds("helloworld-chain-5-chameleon.json"), "cpuhog");
    assert_eq!(
        kinds("epigenomics-chameleon-hep-1seq-100k-001.json"),
        "chr21 fast2bfq fastqSplit filterContams map mapMerge pileup sol2sanger"
    );
    assert!(kinds("bacass-dirt02-001.json").starts_with("NFCORE_BACASS.BACASS.FASTQC NFCORE_BACASS.BACASS."));
}

#[test]
fn instances_of_machine_learning_ask_for_gpus() {
    let Some(folder) = folder("async") else { return };
    let instance = good(&folder.join("cdg1-asrun.wfformat.json.gz"));
    assert_eq!(instance.tasks.len(), 256);
    let first = &instance.tasks[0];
    assert_eq!((first.id.as_str(), first.kind.as_str(), first.cores, first.gpus), ("T0.000", "T0", 16.0, 1.0));
    assert_eq!(first.runtime, Some(766.2));
    let kinds: BTreeSet<&str> = instance.tasks.iter().map(|task| task.kind.as_str()).collect();
    assert_eq!(kinds.len(), 8);
    assert_eq!(good(&folder.join("ddmd3-adaptive.wfformat.json.gz")).tasks.len(), 627);
}

/// The same run in an old version and as the format's authors migrated it.
#[test]
fn old_versions_say_the_same_as_their_migrations() {
    let Some(folder) = folder("wfformat") else { return };
    for (old, new) in [
        ("srasearch-10a-001.schema-", "srasearch-chameleon-10a-001.json"),
        ("blast-small-001.schema-", "blast-chameleon-small-001.json"),
    ] {
        let new = good(&folder.join(new));
        for version in ["1.0", "1.2", "1.3", "1.4"] {
            let read = good(&folder.join("older-schemas").join(format!("{old}{version}.json")));
            assert_eq!(read.version, version);
            assert_eq!(read.makespan, new.makespan);
            assert_eq!(read.machines.len(), new.machines.len());
            assert_eq!(read.machines[0].cores, new.machines[0].cores);
            assert_eq!(read.machines[0].memory, new.machines[0].memory);
            let mut files: Vec<_> = read.files.iter().map(|file| (file.id.clone(), file.size)).collect();
            let mut others: Vec<_> = new.files.iter().map(|file| (file.id.clone(), file.size)).collect();
            files.sort();
            others.sort();
            assert_eq!(files, others);
            let names = |instance: &Instance, list: &[u32]| -> BTreeSet<String> {
                list.iter().map(|task| instance.tasks[*task as usize].id.clone()).collect()
            };
            let ids: BTreeMap<&str, &wfformat::Task> = new.tasks.iter().map(|task| (task.id.as_str(), task)).collect();
            assert_eq!(read.tasks.len(), new.tasks.len());
            for task in &read.tasks {
                let other = ids[task.id.as_str()];
                assert_eq!(names(&read, &task.parents), names(&new, &other.parents), "{version} {}", task.id);
                assert_eq!(task.kind, other.kind, "{version} {}", task.id);
                assert_eq!((task.runtime, task.cores), (other.runtime, other.cores), "{version} {}", task.id);
                assert_eq!(task.memory, other.memory, "{version} {}", task.id);
                assert_eq!(task.read_bytes, other.read_bytes, "{version} {}", task.id);
                assert_eq!(task.arguments, other.arguments, "{version} {}", task.id);
            }
        }
    }
}

/// Nextflow's 1.4 has no edges at all; the migration takes them from the files, and so do we, and say so.
#[test]
fn edges_that_only_files_tell_are_added_and_said() {
    let Some(folder) = folder("wfformat") else { return };
    let new = good(&folder.join("bacass-dirt02-001.json"));
    let (old, findings) = wfformat::read(&text(&folder.join("older-schemas/bacass-dirt02-001.schema-1.4.json")));
    let old = old.expect("an instance");
    assert_eq!((old.tasks.len(), old.edges()), (new.tasks.len(), new.edges()));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].message.contains("no edge says so; it is added (and 13 more like this)"), "{findings:?}");
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let Some(folder) = folder("wfformat") else { return };
    for name in ["blast-chameleon-small-001.json", "rnaseq-dirt02-001.json.gz", "srasearch-chameleon-10a-001.json"] {
        let mut instance = good(&folder.join(name));
        let (again, findings) = wfformat::read(&wfformat::write(&instance));
        assert_eq!(super::said(&findings), Vec::<String>::new(), "{name}");
        instance.version = "1.5".to_owned();
        let again = again.expect("an instance");
        assert_eq!(again.tasks.len(), instance.tasks.len());
        for (one, other) in again.tasks.iter().zip(&instance.tasks) {
            assert_eq!(one, other, "{name}");
        }
        assert_eq!(again, instance, "{name}");
    }
}

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let gpus = name.ends_with(".wfformat.json.gz");
        let inside = !folder.ends_with("async") && (name.ends_with(".json") || name.ends_with(".json.gz"));
        (gpus || inside) && name != "expected.json"
    });
    found.sort();
    found
}

/// Tasks, edges, files, run times, cores and GPUs of every version survive being written as 1.5.
#[test]
fn every_version_comes_back_from_being_written() {
    let (Some(instances), Some(gpus)) = (folder("wfformat"), folder("async")) else { return };
    let (mut count, mut with_gpus) = (0, 0);
    let folders = [all_below(&instances), all_below(&instances.join("older-schemas")), all_below(&gpus)];
    for path in folders.concat() {
        let (read, _) = wfformat::read(&text(&path));
        let mut instance = read.unwrap_or_else(|| panic!("{}", path.display()));
        let (again, findings) = wfformat::read(&wfformat::write(&instance));
        assert_eq!(super::said(&findings), Vec::<String>::new(), "{}", path.display());
        let again = again.expect("an instance");
        instance.version = "1.5".to_owned();
        for (one, other) in again.tasks.iter().zip(&instance.tasks) {
            assert_eq!(one, other, "{}", path.display());
        }
        assert_eq!((&again.files, &again.machines), (&instance.files, &instance.machines), "{}", path.display());
        assert_eq!(again, instance, "{}", path.display());
        count += 1;
        with_gpus += usize::from(instance.tasks.iter().any(|task| task.gpus > 0.0));
    }
    assert!(count >= 39 && with_gpus >= 4, "{count} instances, {with_gpus} with GPUs");
}

#[test]
fn real_instances_convert_with_all_of_their_files() {
    let Some(folder) = folder("wfformat") else { return };
    for (name, tasks, outside) in [("blast-chameleon-small-001.json", 43, 5), ("sarek-dirt02-001.json", 26, 10)] {
        let instance = good(&folder.join(name));
        let (workflow, findings) = wfformat::convert(&instance);
        assert!(!findings.iter().any(|finding| finding.is_error()), "{name}: {findings:?}");
        assert_eq!(workflow.tasks.len(), tasks, "{name}");
        let made: usize = workflow.tasks.iter().map(|task| task.outputs.len()).sum();
        assert_eq!(made + workflow.data.len(), instance.files.len(), "{name}");
        assert_eq!(workflow.data.len(), outside, "{name}");
    }
}
