//! A run as a WfFormat instance.

use super::fixture::{SMALL, Told, small};
use tulpar_core::event::Event;
use tulpar_core::ids::{Digest, JobId};
use tulpar_formats::wfformat::{self, Instance, Task};
use tulpar_report::{Exported, Measures, RunFacts, instance};

fn exported(told: &Told) -> Exported {
    let facts = RunFacts { run: "small-1".into(), version: "0.1.0".into(), ..RunFacts::default() };
    instance(&facts, &told.graph, &told.outputs, &told.measures, &told.timeline, None)
}

fn task<'i>(instance: &'i Instance, id: &str) -> &'i Task {
    instance.tasks.iter().find(|task| task.id == id).unwrap_or_else(|| panic!("no task {id}"))
}

#[test]
fn every_figure_of_the_run_is_in_its_instance() {
    let Exported { instance, without_figures, adopted } = exported(&small());
    assert_eq!((without_figures, adopted), (0, 0));
    assert_eq!(instance.name, "small");
    assert_eq!(instance.executed_at.as_deref(), Some("2024-11-15T20:57:03.000000Z"));
    assert_eq!(instance.makespan, Some(11.0));
    let ids: Vec<&str> = instance.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["simulate.i-1", "simulate.i-2", "watch", "train"]);
    let files: Vec<(&str, u64)> = instance.files.iter().map(|file| (file.id.as_str(), file.size)).collect();
    assert_eq!(files, [("simulate_i_1_.txt", 100), ("simulate_i_2_.txt", 101), ("train.txt", 103)]);
    let train = task(&instance, "train");
    assert_eq!((train.parents.as_slice(), train.children.as_slice()), (&[0, 1][..], &[][..]));
    assert_eq!((train.inputs.as_slice(), train.outputs.as_slice()), (&[0, 1][..], &[2][..]));
    // Of the attempt that ended well, not of the one before it.
    assert_eq!(train.runtime, Some(3.499));
    assert_eq!(train.started_at.as_deref(), Some("2024-11-15T20:57:09.500000Z"));
    assert_eq!((train.cores, train.gpus), (4.0, 2.0));
    assert_eq!((train.memory, train.read_bytes, train.written_bytes), (Some(2_000_000), Some(30), Some(40)));
    assert_eq!(train.average_cpu, Some(1_500_000.0 * 100.0 / 3_499_000.0));
    assert_eq!(train.program.as_deref(), Some("train"));
    assert_eq!(train.arguments, ["--comment", "'a b'", "train.txt", "simulate_i_1_.txt", "simulate_i_2_.txt"]);
    assert_eq!(instance.machines[train.machines[0] as usize].name, "small-02");
    let machines: Vec<_> = instance.machines.iter().map(|machine| (machine.cores, machine.memory)).collect();
    assert_eq!(machines, [(Some(4), Some(8_000_000_000)); 2]);
    let simulate = task(&instance, "simulate.i-2");
    assert_eq!((simulate.name.as_str(), simulate.kind.as_str()), ("simulate", "simulate"));
    assert_eq!(simulate.children, [3]);
    assert_eq!(simulate.arguments, ["--seed", "2", "-o", "simulate_i_2_.txt"]);
    assert_eq!(task(&instance, "watch").cores, 0.5);
}

#[test]
fn what_is_exported_is_read_back_as_it_was() {
    let written = exported(&small()).instance;
    let (read, findings) = wfformat::read(&wfformat::write(&written));
    assert_eq!(findings, []);
    assert_eq!(read.expect("an instance"), written);
}

#[test]
fn a_run_that_goes_on_has_figures_of_what_ended() {
    let mut told = Told::new(SMALL);
    told.ran("simulate[i=1]", 1.0, 4.0);
    told.submitted(1.0, "simulate[i=2]", 1);
    told.started(1.0, "simulate[i=2]", 1);
    let Exported { instance, without_figures, .. } = exported(&told);
    assert_eq!(without_figures, 3);
    let train = task(&instance, "train");
    assert_eq!((train.runtime, train.program.as_deref(), train.parents.len()), (None, None, 2));
    assert_eq!(task(&instance, "simulate.i-1").runtime, Some(3.0));
    let (read, findings) = wfformat::read(&wfformat::write(&instance));
    assert!(read.is_some(), "{findings:?}");
}

#[test]
fn a_reused_task_has_the_figures_of_the_run_that_did_it() {
    let before = small();
    let mut told = Told::new(SMALL);
    for job in [0, 1, 3].map(JobId) {
        let outputs = before.outputs[job.index()].clone().expect("it was done");
        let key = Digest::of(b"key");
        told.tell(
            1.0,
            Event::Reused { job, key, run: "small-0".into(), outputs: outputs.to_vec(), told: None, accepted: None },
        );
        told.outputs[job.index()] = Some(outputs);
    }
    told.ran("watch", 2.0, 3.0);
    let borrowed: Vec<(String, Vec<JobId>)> =
        told.measures.borrowed().into_iter().map(|(run, jobs)| (run.to_owned(), jobs)).collect();
    assert_eq!(borrowed, [("small-0".to_owned(), vec![JobId(0), JobId(1), JobId(3)])]);
    let plan = told.graph.plan().clone();
    for job in [0, 1, 3].map(JobId) {
        told.measures.adopt(&plan, job, &before.measures, before.graph.plan(), job);
    }
    // Nothing comes of a job that was never measured there either.
    told.measures.adopt(&plan, JobId(2), &Measures::default(), before.graph.plan(), JobId(2));
    let Exported { instance, without_figures, adopted } = exported(&told);
    assert_eq!((without_figures, adopted), (0, 3));
    assert_eq!(task(&instance, "train").runtime, Some(3.499));
    assert_eq!(task(&instance, "watch").runtime, Some(1.0));
    assert!(instance.description.expect("words").contains("3 of its tasks were reused"));
}
