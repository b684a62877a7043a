//! The answers about one eventful run, as literals.

use super::fixture::{Runs, asked, ended, eventful, moved, record, second, started, submitted};
use serde_json::json;
use std::collections::BTreeMap;
use tulpar_core::event::{Blame, Consequence, Event, Outcome};
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::{Ending, Usage};
use tulpar_store::{JobFilter, JobSort, Store, StoreError, TransferAnswer, Wanted};

fn eventful_store() -> (Runs, Store) {
    let runs = Runs::new();
    runs.write("galaxy-1", 1, &eventful("galaxy-1"));
    runs.record("galaxy-1", &record(0, 2));
    let store = runs.synced();
    (runs, store)
}

fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(state, count)| (state.to_string(), *count)).collect()
}

#[test]
fn a_run_says_when_it_ran_how_it_ended_and_how_its_jobs_stand() {
    let (runs, store) = eventful_store();
    let run = store.run("galaxy-1").unwrap();
    assert_eq!((run.started, run.ended), (Some(second(1)), Some(second(15))));
    assert_eq!((run.outcome.as_deref(), run.version.as_deref()), (Some("failed"), Some("0.1.0")));
    assert_eq!(run.seed.as_deref(), Some("18446744073709551615"));
    assert_eq!(run.plan, Some(runs.plan("galaxy-1").digest().hex()));
    assert_eq!(run.jobs, counts(&[("done", 2), ("failed", 1), ("skipped", 1), ("waiting", 1)]));
    assert_eq!((run.reused, run.events), (1, 15));
    assert!(matches!(store.run("galaxy-9"), Err(StoreError::NoSuchRun(_))));
}

#[test]
fn transfers_are_kept_with_where_they_came_from_and_went() {
    let runs = Runs::new();
    runs.write("galaxy-1", 1, &[started("galaxy-1"), submitted(0, 1), moved(0, 1)]);
    let store = runs.synced();
    let pulled = TransferAnswer {
        job: JobId(0),
        n: 1,
        number: 0,
        what: "pull".into(),
        from: Some("http://far/run/".into()),
        to: None,
        files: 3,
        bytes: 1_000,
        started: Some(second(9)),
        wall_us: 500,
        retries: 2,
    };
    let pushed =
        TransferAnswer { number: 1, what: "push".into(), from: None, started: Some(second(10)), ..pulled.clone() };
    assert_eq!(store.transfers("galaxy-1", None).unwrap(), [pulled, pushed]);
    assert_eq!(store.transfers("galaxy-1", Some(JobId(1))).unwrap(), []);
}

#[test]
fn runs_come_in_the_order_of_their_start() {
    let runs = Runs::new();
    runs.write("b-1", 1, &[started("b-1"), Event::RunEnded { outcome: Outcome::Done }]);
    runs.write("a-1", 5, &[started("a-1")]);
    let all = runs.synced().runs().unwrap();
    let seen: Vec<_> = all.iter().map(|run| (run.name.as_str(), run.outcome.as_deref())).collect();
    assert_eq!(seen, [("b-1", Some("done")), ("a-1", None)]);
}

#[test]
fn jobs_are_listed_by_state_set_and_name() {
    let (_runs, store) = eventful_store();
    let list = |filter: JobFilter| -> Vec<(u32, String, String)> {
        let jobs = store.jobs("galaxy-1", &filter).unwrap();
        jobs.into_iter().map(|job| (job.job.0, job.name.unwrap(), job.state)).collect()
    };
    let row = |job, name: &str, state: &str| (job, name.to_owned(), state.to_owned());
    assert_eq!(
        list(JobFilter::default()),
        [
            row(0, "train[n=0]", "done"),
            row(1, "train[n=1]", "done"),
            row(2, "train[n=2]", "failed"),
            row(3, "evaluate[m=1]", "skipped"),
            row(4, "evaluate[m=2]", "waiting"),
        ]
    );
    let states = vec!["failed".to_owned(), "skipped".to_owned()];
    assert_eq!(
        list(JobFilter { states, ..Default::default() }),
        [row(2, "train[n=2]", "failed"), row(3, "evaluate[m=1]", "skipped")]
    );
    let set = Some("train".to_owned());
    assert_eq!(list(JobFilter { set, limit: Some(1), ..Default::default() }), [row(0, "train[n=0]", "done")]);
    let name = Some("train[n=1]".to_owned());
    assert_eq!(list(JobFilter { name, ..Default::default() }), [row(1, "train[n=1]", "done")]);
}

#[test]
fn a_page_of_jobs_is_sorted_filtered_and_counted() {
    let (_runs, store) = eventful_store();
    let page = |filter: JobFilter| -> (Vec<u32>, u64) {
        let jobs = store.jobs("galaxy-1", &filter).unwrap();
        (jobs.iter().map(|job| job.job.0).collect(), store.count_jobs("galaxy-1", &filter).unwrap())
    };
    let sorted = |sort, descending| page(JobFilter { sort, descending, ..Default::default() }).0;
    assert_eq!(sorted(JobSort::Job, true), [4, 3, 2, 1, 0]);
    assert_eq!(sorted(JobSort::Name, false), [3, 4, 0, 1, 2]);
    assert_eq!(sorted(JobSort::Wall, true), [2, 0, 1, 3, 4], "what never ran comes last");
    assert_eq!(sorted(JobSort::Wall, false), [0, 2, 1, 3, 4]);
    assert_eq!(sorted(JobSort::Attempts, true), [0, 2, 1, 3, 4]);
    assert_eq!(sorted(JobSort::State, false), [0, 1, 2, 3, 4]);
    let contains = Some("TRAIN[".to_owned());
    let filter = JobFilter { contains, offset: 1, limit: Some(1), sort: JobSort::Memory, ..Default::default() };
    assert_eq!(page(filter), (vec![2], 3));
    let filter = JobFilter { contains: Some("%".into()), ..Default::default() };
    assert_eq!(page(filter), (vec![], 0));
    let filter = JobFilter { states: vec!["done".into()], set: Some("train".into()), ..Default::default() };
    assert_eq!(page(filter), (vec![0, 1], 2));
    assert_eq!(page(JobFilter { offset: 3, ..Default::default() }), (vec![3, 4], 5));
    let slow: Vec<_> = store.slowest("galaxy-1", 5).unwrap().iter().map(|job| (job.job.0, job.wall_us)).collect();
    assert_eq!(slow, [(2, Some(600)), (0, Some(200))]);
    let failed = store.failed_attempts("galaxy-1", 5).unwrap();
    let mut failed: Vec<_> = failed.iter().map(|try_| (try_.job.0, try_.n, try_.ending.clone().unwrap())).collect();
    failed.sort();
    assert_eq!(failed, [(0, 1, "memory".to_owned()), (2, 1, "exit".to_owned())]);
}

#[test]
fn a_job_says_why_it_ran_what_it_reused_and_who_is_to_blame() {
    let (_runs, store) = eventful_store();
    let job = |n| store.job("galaxy-1", JobId(n)).unwrap().unwrap();
    assert_eq!((job(0).why, job(0).attempts, job(0).key), (Some(json!("new")), 2, Some("01".repeat(32))));
    assert_eq!(job(1).reused_from.as_deref(), Some("old-1"));
    assert_eq!((job(2).blame.as_deref(), job(2).why), (Some("task"), Some(json!("cache_off"))));
    assert_eq!(job(3).because, Some(json!({"upstream": 2})));
    assert_eq!(store.job("galaxy-1", JobId(77)).unwrap(), None);
}

#[test]
fn attempts_have_what_the_journal_and_the_record_say() {
    let (_runs, store) = eventful_store();
    let attempts = store.attempts("galaxy-1", JobId(0)).unwrap();
    let seen: Vec<_> =
        attempts.iter().map(|attempt| (attempt.n, attempt.ending.as_deref().unwrap(), attempt.code)).collect();
    assert_eq!(seen, [(1, "memory", None), (2, "exit", Some(0))]);
    assert_eq!(attempts[0].stderr_tail.as_deref(), Some("Killed"));
    assert_eq!((attempts[0].submitted, attempts[0].host.as_deref()), (Some(second(4)), None));
    let second_try = &attempts[1];
    assert_eq!((second_try.host.as_deref(), second_try.node.as_deref()), (Some("host-a"), Some("node-1")));
    assert_eq!(second_try.command, Some(json!({"arguments": ["train", "--lr"]})));
    assert_eq!((second_try.input_files, second_try.input_bytes), (Some(12), Some(3456)));
    assert_eq!(second_try.usage.unwrap().wall_us, 200);
    assert_eq!(second_try.gpus, Some(json!(["GPU-7"])));
    assert_eq!(store.attempts("galaxy-1", JobId(2)).unwrap()[0].code, Some(3));
}

#[test]
fn the_story_of_a_job_is_every_event_that_touched_it_in_order() {
    let (_runs, store) = eventful_store();
    let story = store.story("galaxy-1", JobId(0)).unwrap();
    let seen: Vec<_> = story.iter().map(|event| (event.seq, event.kind.as_str(), event.attempt)).collect();
    assert_eq!(
        seen,
        [
            (2, "missed", None),
            (4, "submitted", Some(1)),
            (5, "started", Some(1)),
            (6, "ended", Some(1)),
            (7, "due", None),
            (8, "submitted", Some(2)),
            (9, "started", Some(2)),
            (10, "ended", Some(2)),
        ]
    );
    assert_eq!(story[0].data["reason"], json!("new"));
    assert_eq!(story[3].at, second(6));
}

#[test]
fn outputs_are_listed_with_the_job_that_left_them() {
    let (_runs, store) = eventful_store();
    let outputs = store.outputs("galaxy-1", None).unwrap();
    let seen: Vec<_> =
        outputs.iter().map(|o| (o.job.0, o.path.as_str(), o.size, o.attempt, o.name.as_deref().unwrap())).collect();
    assert_eq!(seen, [(0, "m0.bin", 4, Some(2), "train[n=0]"), (1, "m1.bin", 3, None, "train[n=1]")]);
    assert_eq!(store.outputs("galaxy-1", Some(JobId(1))).unwrap().len(), 1);
}

#[test]
fn lineage_finds_who_made_a_file_before_who_reused_it() {
    let (runs, mut store) = eventful_store();
    let mut reuse = vec![started("galaxy-2")];
    reuse.push(Event::Reused {
        job: JobId(0),
        key: Digest([1; 32]),
        run: "galaxy-1".into(),
        outputs: vec![super::fixture::output("m0.bin", "zero")],
        told: None,
        accepted: None,
    });
    runs.write("galaxy-2", 1, &reuse);
    runs.sync(&mut store);
    let by_digest = store.producer_of(&Wanted::Digest(Digest::of(b"zero"))).unwrap();
    assert_eq!(by_digest, store.producer_of(&Wanted::Path("m0.bin".into())).unwrap());
    let seen: Vec<_> = by_digest.iter().map(|p| (p.run.as_str(), p.reused_from.as_deref())).collect();
    assert_eq!(seen, [("galaxy-1", None), ("galaxy-2", Some("galaxy-1"))]);
    let maker = by_digest[0].attempt.as_ref().unwrap();
    assert_eq!((maker.n, maker.node.as_deref()), (2, Some("node-1")));
    assert_eq!(by_digest[0].version.as_deref(), Some("0.1.0"));
    assert_eq!(store.producer_of(&Wanted::Path("nothing".into())).unwrap(), []);
}

#[test]
fn a_task_set_is_summed_up_over_its_attempts() {
    let (_runs, store) = eventful_store();
    let sets = store.sets("galaxy-1").unwrap();
    assert_eq!(sets.iter().map(|set| set.set.as_deref().unwrap()).collect::<Vec<_>>(), ["train", "evaluate"]);
    let train = &sets[0];
    assert_eq!(train.jobs, counts(&[("done", 2), ("failed", 1)]));
    assert_eq!((train.reused, train.attempts), (1, 3));
    assert_eq!((train.wall_us.mean, train.wall_us.max, train.wall_us.total), (400.0, 600, 1200));
    assert_eq!((train.cpu_us.mean, train.cpu_us.total), (300.0, 900));
    assert_eq!((train.peak_rss.max, train.read_bytes.total, train.write_bytes.total), (1800, 21, 27));
    assert_eq!(sets[1].attempts, 0);
    // One of three attempts ended well.
    assert_eq!(store.durations("galaxy-1").unwrap(), [("train".to_owned(), 200e-6)].into());
}

#[test]
fn answers_become_json() {
    let (_runs, store) = eventful_store();
    let text = serde_json::to_value(store.job("galaxy-1", JobId(1)).unwrap()).unwrap();
    assert_eq!(
        text,
        json!({"job": 1, "name": "train[n=1]", "set": "train", "state": "done", "since": 3_000_000, "attempts": 0,
            "why": null, "key": "02".repeat(32), "reused_from": "old-1", "blame": null, "because": null,
            "started": null, "wall_us": null, "cpu_us": null, "peak_rss": null})
    );
}

#[test]
fn what_a_resume_opens_again_waits_in_the_store_too() {
    let runs = Runs::new();
    runs.write("galaxy-1", 1, &eventful("galaxy-1"));
    let mut store = runs.synced();
    let reopened = vec![JobId(2), JobId(3)];
    runs.write("galaxy-1", 16, &[Event::RunResumed { version: "0.1.0".into(), reopened }, submitted(2, 2)]);
    runs.sync(&mut store);
    let run = store.run("galaxy-1").unwrap();
    assert_eq!(run.jobs, counts(&[("done", 2), ("submitted", 1), ("waiting", 2)]));
    let stands = |store: &Store, job: u32| {
        let job = store.job("galaxy-1", JobId(job)).unwrap().unwrap();
        (job.state, job.blame, job.because)
    };
    assert_eq!(stands(&store, 2), ("submitted".into(), None, None));
    assert_eq!(stands(&store, 3), ("waiting".into(), None, None));
    let again = [ended(2, 2, Ending::Exit(0), 200, vec![]), submitted(3, 1), ended(3, 1, Ending::Exit(0), 200, vec![])];
    runs.write("galaxy-1", 18, &again[..1]);
    runs.sync(&mut store);
    assert_eq!(stands(&store, 3), ("looking".into(), None, None), "what it needs is there");
    runs.write("galaxy-1", 19, &again[1..]);
    runs.sync(&mut store);
    assert_eq!(stands(&store, 2), ("done".into(), None, None));
    assert_eq!(stands(&store, 3), ("done".into(), None, None), "no reason is kept");
}

#[test]
fn the_end_of_an_attempt_alone_says_how_its_job_stands() {
    let said = |then: Consequence| {
        let runs = Runs::new();
        let mut event = ended(0, 1, Ending::Preempted, 200, vec![]);
        let Event::Ended { then: said, .. } = &mut event else { panic!("{event:?}") };
        *said = then;
        let asked = asked(0, r#"{"lr":0.1,"layers":2}"#);
        runs.write("tuning-1", 1, &[started("tuning-1"), asked, submitted(0, 1), event]);
        let job = runs.synced().job("tuning-1", JobId(0)).unwrap().unwrap();
        let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
        let trial: String = sql.query_row("SELECT state FROM trials", [], |row| row.get(0)).unwrap();
        let reason = job.blame.or(job.because.map(|because| because.to_string())).unwrap_or_default();
        [job.state, trial, reason]
    };
    assert_eq!(said(Consequence::Retry { until: second(9), request: None }), ["backoff", "running", ""]);
    assert_eq!(said(Consequence::Failed { blame: Blame::Inputs }), ["failed", "failed", "inputs"]);
    assert_eq!(said(Consequence::Paused), ["paused", "paused", ""]);
    assert_eq!(said(Consequence::Pruned), ["skipped", "pruned", "\"pruned\""]);
    assert_eq!(said(Consequence::Cancelled), ["cancelled", "failed", ""]);
}

#[test]
fn a_figure_that_nobody_measured_is_missing_and_not_zero() {
    let runs = Runs::new();
    let mut short = ended(0, 1, Ending::Exit(0), 200, vec![]);
    if let Event::Ended { report, .. } = &mut short {
        report.usage.peak_rss = 0;
    }
    runs.write("galaxy-1", 1, &[started("galaxy-1"), submitted(0, 1), short]);
    let store = runs.synced();
    assert_eq!(store.job("galaxy-1", JobId(0)).unwrap().unwrap().peak_rss, None);
    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let kept: (Option<i64>, Option<i64>, Option<i64>, Option<i64>) = sql
        .query_row("SELECT peak_rss, peak_gpu_memory, gpu_utilisation, read_bytes FROM attempts", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(kept, (None, None, None, Some(7)));
}

#[test]
fn an_attempt_that_nobody_measured_is_no_part_of_the_sums_and_means() {
    let runs = Runs::new();
    let mut lost = ended(0, 1, Ending::DriverLost, 200, vec![]);
    if let Event::Ended { report, .. } = &mut lost {
        report.usage = Usage::default();
    }
    let again = [submitted(0, 2), ended(0, 2, Ending::Exit(0), 200, vec![])];
    runs.write("galaxy-1", 1, &[started("galaxy-1"), submitted(0, 1), lost]);
    let mut store = runs.synced();
    let train = |store: &Store| store.sets("galaxy-1").unwrap().swap_remove(0);
    assert_eq!((train(&store).attempts, train(&store).timed, train(&store).measured), (1, 0, 0));
    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let null = |sql: &rusqlite::Connection, query: &str| sql.query_row(query, [], |row| row.get::<_, bool>(0)).unwrap();
    assert!(null(
        &sql,
        "SELECT coalesce(wall_us, user_us, system_us, peak_rss, read_bytes, write_bytes, voluntary_switches, minor_faults) \
         IS NULL FROM attempts"
    ));
    assert!(null(&sql, "SELECT coalesce(wall_us, cpu_us, max_peak_rss, peak_rss, read_bytes) IS NULL FROM task_sets"));
    drop(sql);
    runs.write("galaxy-1", 4, &again);
    runs.sync(&mut store);
    let train = train(&store);
    assert_eq!((train.attempts, train.timed, train.measured), (2, 1, 1));
    assert_eq!((train.wall_us.mean, train.read_bytes.mean, train.read_bytes.max), (200.0, 7.0, 7));
}
