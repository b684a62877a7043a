//! The figures of the study: of tasks, of runs, of several runs.

use super::fixture::{SMALL, Told, small};
use serde_json::Value;
use tulpar_core::event::Outcome;
use tulpar_core::job::Ending;
use tulpar_report::{Document, JOB_FIGURES, NamedRuns, RunFacts, RunReport, WORKFLOW_FIGURES, csv, report};

fn of(run: &str, told: &Told) -> RunReport {
    let facts = RunFacts { run: run.into(), ..RunFacts::default() };
    report(facts, &told.graph, &told.timeline, &told.gathered, None, None)
}

/// A run whose tasks fetch and leave their files elsewhere.
fn staged() -> Told {
    let mut told = Told::new(SMALL);
    told.moved_and_ran("simulate[i=1]", 1.0, 4.0);
    told.moved_and_ran("simulate[i=2]", 1.0, 5.0);
    told.ran("watch", 2.0, 4.0);
    told.over(10.0, Outcome::Done);
    told
}

fn figure(run: &RunReport, key: &str) -> Option<f64> {
    run.characterisation.workflow[WORKFLOW_FIGURES.iter().position(|figure| figure.key == key).expect("a figure")]
}

fn job_figure(run: &RunReport, set: &str, key: &str) -> Option<f64> {
    let job = run.characterisation.jobs.iter().find(|job| job.task_set == set).expect("a task set");
    job.values[JOB_FIGURES.iter().position(|figure| figure.key == key).expect("a figure")]
}

#[test]
fn tasks_are_counted_without_the_files_that_were_moved_around_them() {
    let run = of("small-1", &staged());
    // 3 s and 4 s in all, of which 0.75 s each moved files.
    assert_eq!(job_figure(&run, "simulate", "total_seconds"), Some(5.5));
    assert_eq!(job_figure(&run, "simulate", "mean_seconds"), Some(2.75));
    assert_eq!(job_figure(&run, "simulate", "read_mb"), Some(10.0));
    assert_eq!(job_figure(&run, "simulate", "written_mb"), Some(14.0));
    let cpu = job_figure(&run, "simulate", "cpu_percent").expect("measured");
    assert!((cpu - (100.0 * 3.0 / 2.25 + 100.0 * 3.0 / 3.25) / 2.0).abs() < 1e-9, "{cpu}");
    assert_eq!(job_figure(&run, "simulate", "peak_memory_gb"), Some(3.0));
    assert_eq!(job_figure(&run, "simulate", "gpu_percent"), Some(50.0));
    assert_eq!(job_figure(&run, "simulate", "peak_gpu_memory_gb"), Some(4.0));
    // It held no GPU, and nobody saw one.
    assert_eq!(job_figure(&run, "watch", "gpu_percent"), None);
    assert_eq!(figure(&run, "compute_seconds"), Some(7.5));
    assert_eq!(figure(&run, "stage_in_seconds"), Some(1.0));
    assert_eq!(figure(&run, "stage_out_seconds"), Some(0.5));
    assert_eq!(figure(&run, "data_share_percent"), Some(1.5 * 100.0 / 9.0));
    // From 1 to 1.5 both pulled; from 4.75 to 5 one pushed alone.
    assert_eq!(figure(&run, "waiting_for_data_percent"), Some(7.5));
    assert_eq!(figure(&run, "jobs"), Some(4.0));
    assert_eq!(figure(&run, "auxiliary_jobs"), Some(0.0));
    // Three to each of two.
    assert_eq!(figure(&run, "files_staged_in"), Some(6.0));
    assert_eq!(figure(&of("small-1", &small()), "files_staged_in"), None, "files were used where they lie");
    assert_eq!(figure(&run, "makespan_seconds"), Some(10.0));
}

#[test]
fn transfers_are_summed_by_where_from_and_where_to() {
    let transfers = of("small-1", &staged()).characterisation.transfers;
    assert_eq!(transfers.count, 4);
    let pairs: Vec<_> = transfers
        .pairs
        .iter()
        .map(|pair| (pair.from.as_str(), pair.to.as_str(), pair.files, pair.bytes, pair.seconds, pair.retries))
        .collect();
    assert_eq!(
        pairs,
        [("small", "http://far:8080", 2, 4_000_000, 0.5, 2), ("http://far:8080", "small", 6, 2_000_000, 1.0, 2)]
    );
    assert_eq!(transfers.pairs[0].bytes_per_second, Some(8e6));
    assert_eq!((transfers.longest[0].job.as_str(), transfers.longest[0].seconds), ("simulate[i=1]", 0.5));
}

#[test]
fn a_try_that_failed_is_lost_and_no_part_of_what_tasks_took() {
    let run = of("small-1", &small());
    assert_eq!(figure(&run, "lost_seconds"), Some(1.0));
    assert_eq!(job_figure(&run, "train", "total_seconds"), Some(3.499));
    assert_eq!(figure(&run, "stage_in_seconds"), Some(0.0));
    assert_eq!(figure(&run, "waiting_for_data_percent"), None);
    // The study counts what was held: 32.996 core seconds and 15.998 GPU seconds.
    assert_eq!(figure(&run, "cpu_hours"), Some(32.996 / 3600.0));
    assert_eq!(figure(&run, "gpu_hours"), Some(15.998 / 3600.0));
}

#[test]
fn the_work_that_an_eviction_lost_is_lost_and_no_wait() {
    let mut told = Told::new(SMALL);
    told.submitted(1.0, "simulate[i=1]", 1);
    told.started(2.0, "simulate[i=1]", 1);
    told.released(5.0, "simulate[i=1]", 1);
    told.started(8.0, "simulate[i=1]", 1);
    told.ended("simulate[i=1]", 1, (8.0, 12.0), Ending::Exit(0));
    let run = of("small-1", &told);
    assert_eq!(figure(&run, "lost_seconds"), Some(3.0));
    assert_eq!(figure(&run, "queued_seconds"), Some(4.0));
    assert_eq!(figure(&run, "gpu_hours"), Some(7.0 / 3600.0));
}

fn three() -> Document {
    let (one, mut two, mut three) = (of("small-1", &small()), of("small-2", &small()), of("small-3", &staged()));
    let makespan = WORKFLOW_FIGURES.iter().position(|figure| figure.key == "makespan_seconds").expect("a figure");
    two.characterisation.workflow[makespan] = Some(13.0);
    three.workflow = "small".into();
    let staged = NamedRuns { name: "staged".into(), runs: vec!["small-3".into()] };
    let plain = NamedRuns { name: "plain".into(), runs: vec!["small-1".into(), "small-2".into()] };
    Document::new(vec![three, one, two], &[plain, staged])
}

#[test]
fn runs_of_one_scenario_have_a_mean_and_a_deviation() {
    let json: Value = serde_json::to_value(three()).expect("JSON");
    let plain = &json["scenarios"][0];
    assert_eq!((plain["name"].as_str(), plain["runs"].as_array().map(Vec::len)), (Some("plain"), Some(2)));
    let makespan = &plain["workflow_level"]["makespan_seconds"];
    assert_eq!(makespan["mean"].as_f64(), Some(12.0));
    assert_eq!(makespan["deviation"].as_f64(), Some(2f64.sqrt()));
    let staged = &json["scenarios"][1];
    assert_eq!(staged["workflow_level"]["makespan_seconds"]["deviation"], Value::Null);
    assert_eq!(staged["job_level"][0]["read_mb"]["mean"].as_f64(), Some(10.0));
    assert_eq!(json["runs"][0]["characterisation"]["job_level"][0]["read_mb"].as_f64(), Some(10.0));
}

#[test]
fn without_names_runs_are_grouped_by_how_they_were_run() {
    let (one, mut two) = (of("small-1", &small()), of("small-2", &small()));
    two.facts.mode = Some("sequential".into());
    let document = Document::new(vec![one.clone(), two, one], &[]);
    let names: Vec<_> =
        document.scenarios.iter().map(|scenario| (scenario.name.as_str(), scenario.runs.len())).collect();
    assert_eq!(names, [("small, no clusters", 2), ("small, no clusters, sequential", 1)]);
}

#[test]
fn scenarios_stand_side_by_side_as_bars_with_what_they_vary_by() {
    let page = tulpar_report::page(&three());
    for words in
        ["compute (s)", "transfers (s)", "makespan (s)", "small, stage-in", "class=\"bar k1\"", "class=\"error\""]
    {
        assert!(page.contains(words), "{words}");
    }
    let text = tulpar_report::markdown(&three());
    assert!(text.contains("small: plain (2 runs)") && text.contains("12 ± 1.41"), "{text}");
}

#[test]
fn every_table_is_a_file_with_every_digit() {
    let files = csv(&three());
    let names: Vec<_> = files.iter().map(|file| file.name).collect();
    assert_eq!(
        names,
        [
            "workflow_level.csv",
            "job_level.csv",
            "task_sets.csv",
            "transfer_pairs.csv",
            "scenarios.csv",
            "scenario_jobs.csv",
            "efficiency.csv"
        ]
    );
    let lines: Vec<&str> = files[3].text.lines().collect();
    assert_eq!(lines[0], "run,from,to,transfers,files,bytes,seconds,bytes_per_second,retries");
    assert_eq!(lines[1], "small-3,small,http://far:8080,2,2,4000000,0.5,8000000,2");
    for file in &files {
        let columns = file.text.lines().next().expect("a header").split(',').count();
        assert!(file.text.lines().filter(|line| !line.contains('"')).all(|line| line.split(',').count() == columns));
    }
}
