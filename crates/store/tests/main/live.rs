//! What was seen of attempts while they ran: the newest look at each, their samples, and the run's use over time.

use super::fixture::{Runs, attempt, record, second, started, submitted};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use tulpar_core::event::{Consequence, Event, Outcome};
use tulpar_core::ids::JobId;
use tulpar_core::job::{Ending, Report, Sample, Usage};
use tulpar_core::live::Seen;
use tulpar_core::units::Timestamp;
use tulpar_store::{Store, UsageColumn};

fn sample(ms: u64, cpu_us: u64, rss: u64, read_bytes: u64) -> Sample {
    Sample { ms, processes: 1, rss, cpu_us, read_bytes, write_bytes: 0, gpu_percent: None, gpu_memory: None }
}

fn running(run: &Runs) {
    run.write("g-1", 1, &[started("g-1"), submitted(0, 1), Event::Started { attempt: attempt(0, 1) }, submitted(1, 1)]);
}

fn ended(job: u32, from: u64, to: u64, usage: Usage) -> Event {
    let report = Report {
        ending: Ending::Exit(0),
        started: second(from),
        ended: second(to),
        usage,
        outputs: vec![],
        stderr_tail: String::new(),
        script: None,
        told: None,
        left_out: Vec::new(),
    };
    Event::Ended { attempt: attempt(job, 1), report: Box::new(report), then: Consequence::Done }
}

fn cpu(user_us: u64, wall_us: u64) -> Usage {
    Usage { user_us, wall_us, peak_rss: 500, ..Usage::default() }
}

fn total(store: &Store, of: fn(&UsageColumn) -> f64) -> f64 {
    let columns = store.usage_over_time("g-1", 50).unwrap();
    columns.iter().map(|column| of(column) * column.to.since(column.from).as_secs_f64()).sum()
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-6 * right.abs().max(1.0)
}

#[test]
fn running_attempts_are_shown_with_the_newest_look_and_its_rates() {
    let runs = Runs::new();
    running(&runs);
    let mut store = runs.synced();
    let seen = store.latest_samples("g-1").unwrap();
    assert_eq!((seen.len(), seen[0].at, seen[0].cpus), (1, None, None));
    runs.look("g-1", second(5), attempt(0, 1), Seen::Running(sample(2000, 1_000_000, 300, 100)));
    assert_eq!(runs.sync(&mut store).samples, 1);
    runs.look("g-1", second(7), attempt(0, 1), Seen::Running(sample(4000, 4_000_000, 200, 900)));
    runs.sync(&mut store);
    let seen = &store.latest_samples("g-1").unwrap()[0];
    assert_eq!((seen.job, seen.n, seen.name.as_deref(), seen.at), (JobId(0), 1, Some("train[n=0]"), Some(second(7))));
    assert_eq!((seen.cpus, seen.read_rate, seen.write_rate), (Some(1.5), Some(400.0), Some(0.0)));
    assert_eq!(seen.sample.unwrap().rss, 200);
    let ms: Vec<u64> = store.samples("g-1", JobId(0), 1).unwrap().iter().map(|sample| sample.ms).collect();
    assert_eq!(ms, [2000, 4000]);
}

#[test]
fn the_samples_of_the_record_take_the_place_of_those_that_were_seen() {
    let runs = Runs::new();
    running(&runs);
    runs.look("g-1", second(5), attempt(0, 1), Seen::Running(sample(2000, 1_000_000, 300, 0)));
    let mut store = runs.synced();
    let mut record = record(0, 1);
    record.samples = vec![sample(1000, 5, 3, 0), sample(2000, 10, 3, 0), sample(3000, 15, 3, 0)];
    runs.record("g-1", &record);
    runs.write("g-1", 5, &[ended(0, 100, 200, record.usage)]);
    // Late, and of an attempt that is over.
    runs.look("g-1", second(6), attempt(0, 1), Seen::Running(sample(3000, 1_000_000, 300, 0)));
    runs.sync(&mut store);
    assert_eq!(store.samples("g-1", JobId(0), 1).unwrap(), record.samples);
    assert_eq!(store.latest_samples("g-1").unwrap(), []);
    let rows: i64 = rusqlite::Connection::open(runs.store_path())
        .unwrap()
        .query_row("SELECT count(*) FROM samples", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn a_waiting_attempt_says_why_in_the_words_of_its_site_until_it_starts() {
    let runs = Runs::new();
    running(&runs);
    runs.look("g-1", second(5), attempt(1, 1), Seen::Waiting { waiting: "Resources".into() });
    let mut store = runs.synced();
    let waiting = |store: &Store| store.attempts("g-1", JobId(1)).unwrap()[0].waiting.clone();
    assert_eq!(waiting(&store).as_deref(), Some("Resources"));
    runs.look("g-1", second(6), attempt(1, 1), Seen::Waiting { waiting: "Priority".into() });
    runs.sync(&mut store);
    assert_eq!(waiting(&store).as_deref(), Some("Priority"));
    runs.write("g-1", 7, &[Event::Started { attempt: attempt(1, 1) }]);
    runs.sync(&mut store);
    assert_eq!(waiting(&store), None);
    // Read late; then it was evicted, and waits again.
    runs.look("g-1", second(6), attempt(1, 1), Seen::Waiting { waiting: "Resources".into() });
    runs.sync(&mut store);
    assert_eq!(waiting(&store), None);
    runs.look("g-1", second(9), attempt(1, 1), Seen::Waiting { waiting: "BeginTime".into() });
    runs.write("g-1", 8, &[Event::Released { attempt: attempt(1, 1) }]);
    runs.sync(&mut store);
    assert_eq!(waiting(&store).as_deref(), Some("BeginTime"));
}

#[test]
fn what_a_run_used_over_time_adds_up_to_what_its_attempts_used() {
    // Two attempts of 40 s: one CPU, then two; and one that was never looked at, half a CPU.
    let runs = Runs::new();
    running(&runs);
    for n in 1..=4 {
        let at = 10 + 10 * n;
        runs.look("g-1", second(at), attempt(0, 1), Seen::Running(sample(n * 10_000, n * 10_000_000, 1000, n * 50)));
    }
    let mut store = runs.synced();
    assert!(close(total(&store, |column| column.cpus), 40.0));
    let usage = Usage { user_us: 60_000_000, wall_us: 50_000_000, read_bytes: 300, ..Usage::default() };
    runs.write("g-1", 5, &[ended(0, 10, 60, usage), ended(1, 20, 60, cpu(20_000_000, 40_000_000))]);
    runs.write("g-1", 7, &[Event::RunEnded { outcome: Outcome::Done }]);
    runs.sync(&mut store);
    assert!(close(total(&store, |column| column.cpus), 80.0), "{}", total(&store, |column| column.cpus));
    assert!(close(total(&store, |column| column.running), 90.0));
    assert!(close(total(&store, |column| column.read_rate), 300.0));
    assert!(close(total(&store, |column| column.memory), 50.0 * 1000.0 + 40.0 * 500.0));
    let at = |second_: u64| {
        let columns = store.usage_over_time("g-1", 1000).unwrap();
        *columns.iter().find(|column| column.to > second(second_)).unwrap()
    };
    assert!(close(at(15).cpus, 1.0) && close(at(15).memory, 1000.0), "{:?}", at(15));
    assert!(close(at(30).cpus, 1.5) && close(at(30).running, 2.0), "{:?}", at(30));
    assert!(close(at(55).cpus, 2.5) && close(at(55).memory, 1500.0), "{:?}", at(55));
    assert_eq!(store.usage_over_time("g-1", 10).unwrap().len(), 10);
    assert_eq!(store.usage_over_time("g-1", 1).unwrap().len(), 1);
}

#[test]
fn a_run_of_a_month_keeps_its_sums_in_a_bounded_number_of_rows() {
    let runs = Runs::of("{workflow: month, tasks: {train: {for: {day: 1..30}, run: 'train {day}'}}}");
    runs.write("g-1", 1, &[started("g-1")]);
    let mut store = runs.synced();
    for day in 0..30u32 {
        let from = 1 + u64::from(day) * 86_400;
        let seq = 2 + u64::from(day) * 2;
        let end = ended(day, from, from + 86_400, cpu(86_400_000_000, 86_400_000_000));
        runs.write("g-1", seq, &[submitted(day, 1), end]);
        runs.sync(&mut store);
    }
    let columns = store.usage_over_time("g-1", 5000).unwrap();
    assert!((1000..=2048).contains(&columns.len()), "{}", columns.len());
    assert!(columns.iter().all(|column| close(column.cpus, 1.0)), "{columns:?}");
    assert!(close(total(&store, |column| column.cpus), 30.0 * 86_400.0));
    // A worker whose clock is a century ahead is left out.
    runs.look("g-1", Timestamp(4_000_000_000_000_000), attempt(77, 1), Seen::Running(sample(1000, 1, 1, 1)));
    runs.sync(&mut store);
    assert_eq!(store.usage_over_time("g-1", 5000).unwrap(), columns);
}

#[test]
fn samples_that_were_begun_anew_are_read_from_their_beginning() {
    let runs = Runs::new();
    running(&runs);
    let path = runs.path("g-1", "samples.jsonl");
    for n in 1..=3 {
        runs.look("g-1", second(4 + n), attempt(0, 1), Seen::Running(sample(n * 1000, n, 1, 1)));
    }
    let mut store = runs.synced();
    fs::write(&path, "").unwrap();
    for n in 4..=9 {
        runs.look("g-1", second(4 + n), attempt(0, 1), Seen::Running(sample(n * 1000, n, 1, 1)));
    }
    assert_eq!(runs.sync(&mut store).samples, 6);
    fs::write(&path, "").unwrap();
    runs.look("g-1", second(20), attempt(0, 1), Seen::Running(sample(16_000, 16, 1, 1)));
    assert_eq!(runs.sync(&mut store).samples, 1);
    assert_eq!(store.samples("g-1", JobId(0), 1).unwrap().len(), 10);
    runs.append("g-1", "samples.jsonl", b"{\"at\":1,\"job\":0}\n{\"at\":2");
    assert_eq!(runs.sync(&mut store).bad_lines, 1);
}

#[test]
fn the_plan_is_read_only_for_new_events_and_only_once_by_one_process() {
    let runs = Runs::new();
    running(&runs);
    let folder = runs.folder.path().join("runs");
    let read = Cell::new(0);
    let sync = |store: &mut Store| {
        let mut plans = |run: &str, path: &Path| {
            read.set(read.get() + 1);
            runs.plan_of(run, path)
        };
        store.sync(&folder, &mut plans).unwrap();
        read.get()
    };
    let mut store = runs.store();
    assert_eq!(sync(&mut store), 1);
    runs.write("g-1", 5, &[Event::Started { attempt: attempt(1, 1) }]);
    assert_eq!(sync(&mut store), 1, "it kept the state");
    let mut other = runs.store();
    assert_eq!(sync(&mut other), 1, "nothing is new");
    runs.look("g-1", second(5), attempt(1, 1), Seen::Running(sample(1000, 1, 1, 1)));
    runs.record("g-1", &record(0, 1));
    assert_eq!(sync(&mut other), 1, "no event is new");
    runs.append("g-1", "journal.jsonl", b"{\"seq\":6");
    assert_eq!(sync(&mut other), 1, "nor is half of one");
    runs.append("g-1", "journal.jsonl", b"}\n");
    assert_eq!(sync(&mut other), 2);
    assert_eq!(sync(&mut store), 2, "the other took it in");
}

#[test]
fn a_run_that_has_ended_is_not_replayed_for_late_records() {
    let runs = Runs::new();
    running(&runs);
    runs.write("g-1", 5, &[Event::RunEnded { outcome: Outcome::Interrupted }]);
    drop(runs.synced());
    runs.record("g-1", &record(0, 1));
    let folder = runs.folder.path().join("runs");
    let synced = runs.store().sync(&folder, &mut |_, _| panic!("the plan is not needed")).unwrap();
    assert_eq!((synced.records, synced.events), (1, 0));
}
