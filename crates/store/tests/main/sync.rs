//! Taking in journals: piece by piece, damaged, cut, replaced, removed, by two at once.

use super::fixture::{Runs, attempt, ended, eventful, output, record, started, submitted};
use std::fs;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::job::Ending;
use tulpar_store::{JobFilter, Store, Synced};

fn everything(store: &Store) -> String {
    let mut text = String::new();
    for run in store.runs().unwrap() {
        text += &serde_json::to_string(&run).unwrap();
        for job in store.jobs(&run.name, &JobFilter::default()).unwrap() {
            text += &serde_json::to_string(&job).unwrap();
            text += &serde_json::to_string(&store.attempts(&run.name, job.job).unwrap()).unwrap();
            text += &serde_json::to_string(&store.story(&run.name, job.job).unwrap()).unwrap();
        }
        text += &serde_json::to_string(&store.outputs(&run.name, None).unwrap()).unwrap();
        text += &serde_json::to_string(&store.sets(&run.name).unwrap()).unwrap();
        text += &serde_json::to_string(&store.usage_over_time(&run.name, 100).unwrap()).unwrap();
    }
    text
}

#[test]
fn a_journal_taken_in_byte_by_byte_gives_the_same_as_at_once() {
    let whole = Runs::new();
    whole.write("g-1", 1, &eventful("g-1"));
    whole.record("g-1", &record(0, 2));
    let journal = fs::read(whole.path("g-1", "journal.jsonl")).unwrap();
    let records = fs::read(whole.path("g-1", "records.jsonl")).unwrap();
    let pieces = Runs::new();
    let mut store = pieces.store();
    for chunk in journal.chunks(173) {
        pieces.append("g-1", "journal.jsonl", chunk);
        pieces.sync(&mut store);
    }
    for chunk in records.chunks(50) {
        pieces.append("g-1", "records.jsonl", chunk);
        pieces.sync(&mut store);
    }
    assert_eq!(everything(&store), everything(&whole.synced()));
    assert_eq!(pieces.sync(&mut store), Synced::default());
}

#[test]
fn a_run_that_was_looked_at_before_its_first_event_has_every_job_once() {
    let whole = Runs::new();
    whole.write("g-1", 1, &eventful("g-1"));
    let early = Runs::new();
    let mut store = early.store();
    early.append("g-1", "journal.jsonl", b"");
    early.sync(&mut store);
    early.write("g-1", 1, &eventful("g-1"));
    early.sync(&mut store);
    assert_eq!(everything(&store), everything(&whole.synced()));
}

#[test]
fn a_second_sync_takes_in_only_what_is_new() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    let mut store = runs.store();
    assert_eq!(runs.sync(&mut store).events, 15);
    runs.write("g-1", 16, &[Event::RunResumed { version: "0.2.0".into(), reopened: Vec::new() }, submitted(2, 2)]);
    runs.write("g-2", 1, &[started("g-2")]);
    assert_eq!(runs.sync(&mut store), Synced { runs: 2, events: 3, ..Synced::default() });
    let run = store.run("g-1").unwrap();
    assert_eq!((run.outcome, run.resumed, run.version.as_deref()), (None, 1, Some("0.2.0")));
    // What an earlier sync knew of the job is still there.
    let job = store.job("g-1", JobId(2)).unwrap().unwrap();
    assert_eq!((job.state.as_str(), job.attempts, job.why), ("submitted", 2, Some("cache_off".into())));
    assert_eq!(job.blame, None, "it has not failed since");
}

#[test]
fn the_store_can_be_thrown_away_and_comes_back_the_same() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    runs.record("g-1", &record(0, 2));
    let mut store = runs.synced();
    let before = everything(&store);
    let folder = runs.folder.path().join("runs");
    assert_eq!(store.rebuild(&folder, &mut |run, folder| runs.plan_of(run, folder)).unwrap().events, 15);
    assert_eq!(everything(&store), before);
    drop(store);
    fs::write(runs.store_path(), "this is no database, but it is long enough to be looked at closely".repeat(40))
        .unwrap();
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", runs.store_path().display()));
    }
    assert_eq!(everything(&runs.synced()), before);
}

#[test]
fn a_store_of_another_version_is_made_anew() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    drop(runs.synced());
    let other = rusqlite::Connection::open(runs.store_path()).unwrap();
    other.execute_batch("DROP TABLE events; CREATE TABLE events (nonsense); PRAGMA user_version = 999").unwrap();
    drop(other);
    let mut store = runs.store();
    assert_eq!(store.runs().unwrap(), []);
    assert_eq!(runs.sync(&mut store).events, 15);
}

#[test]
fn damaged_lines_and_events_of_a_newer_tulpar_are_counted_and_the_rest_is_shown() {
    let runs = Runs::new();
    runs.write("g-1", 1, &[started("g-1")]);
    runs.append(
        "g-1",
        "journal.jsonl",
        b"{\"seq\":2,\"at\":2,\"v\":2,\"kind\":\"due\",\"data\":{\"job\":1},\"crc\":\"00000000\"}\n",
    );
    let body = "{\"seq\":3,\"at\":3,\"v\":2,\"kind\":\"teleported\",\"data\":{\"attempt\":{\"job\":1,\"n\":4}}";
    runs.append("g-1", "journal.jsonl", format!("{body},\"crc\":\"{:08x}\"}}\n", crc32(body.as_bytes())).as_bytes());
    runs.write("g-1", 4, &[Event::Due { job: JobId(1) }]);
    runs.append("g-1", "records.jsonl", b"{not a record}\n");
    let mut store = runs.store();
    let synced = runs.sync(&mut store);
    assert_eq!((synced.events, synced.bad_lines, synced.unknown_events), (3, 2, 1));
    let run = store.run("g-1").unwrap();
    assert_eq!((run.bad_lines, run.unknown_events), (1, 1));
    let story = store.story("g-1", JobId(1)).unwrap();
    let seen: Vec<_> = story.iter().map(|event| (event.kind.as_str(), event.attempt)).collect();
    assert_eq!(seen, [("teleported", Some(4)), ("due", None)]);
}

#[test]
fn events_of_an_earlier_tulpar_are_counted_and_kept_as_text() {
    let runs = Runs::new();
    let body = "{\"seq\":1,\"at\":3,\"v\":1,\"kind\":\"paused\",\"data\":{\"job\":1}";
    runs.append("g-1", "journal.jsonl", format!("{body},\"crc\":\"{:08x}\"}}\n", crc32(body.as_bytes())).as_bytes());
    let mut store = runs.store();
    let synced = runs.sync(&mut store);
    assert_eq!((synced.events, synced.bad_lines, synced.unknown_events), (1, 0, 1));
    assert_eq!(store.story("g-1", JobId(1)).unwrap()[0].kind, "paused");
}

fn same_made_anew(runs: &Runs, store: &mut Store) {
    let before = everything(store);
    let folder = runs.folder.path().join("runs");
    store.rebuild(&folder, &mut |run, folder| runs.plan_of(run, folder)).unwrap();
    assert_eq!(everything(store), before);
}

fn states(store: &Store) -> Vec<String> {
    let jobs = store.jobs("g-1", &JobFilter::default()).unwrap();
    jobs.into_iter().map(|job| job.state).collect()
}

#[test]
fn without_its_plan_a_run_has_events_and_attempts_and_no_state_is_guessed() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    let folder = runs.folder.path().join("runs");
    let mut store = runs.store();
    assert_eq!(store.sync(&folder, &mut |_, _| None).unwrap().events, 15);
    assert_eq!(states(&store), ["unknown"; 4]);
    let run = store.run("g-1").unwrap();
    assert_eq!((run.outcome.as_deref(), run.jobs), (Some("failed"), [("unknown".to_owned(), 4)].into()));
    assert_eq!(store.attempts("g-1", JobId(0)).unwrap().len(), 2);
    assert_eq!(store.outputs("g-1", None).unwrap().len(), 2);
    assert_eq!(store.cells("g-1", None, 0).unwrap().states, "????");
    // The plan is back, and there is news.
    runs.write("g-1", 16, &[Event::RunResumed { version: "0.2.0".into(), reopened: Vec::new() }]);
    runs.sync(&mut store);
    assert_eq!(states(&store), ["done", "done", "failed", "skipped", "waiting"]);
    same_made_anew(&runs, &mut store);
}

#[test]
fn a_finished_run_whose_plan_is_written_late_gets_its_states_without_any_news() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    let folder = runs.folder.path().join("runs");
    let mut store = runs.store();
    store.sync(&folder, &mut |_, _| None).unwrap();
    // As long as it does not read, nothing is written.
    assert_eq!(store.sync(&folder, &mut |_, _| None).unwrap().runs, 0);
    let mut store = runs.synced();
    assert_eq!(states(&store), ["done", "done", "failed", "skipped", "waiting"]);
    assert_eq!(runs.sync(&mut store).runs, 0);
    same_made_anew(&runs, &mut store);
}

#[test]
fn an_event_about_a_task_that_there_is_not_changes_no_state() {
    let runs = Runs::new();
    runs.write("g-1", 1, &[started("g-1"), Event::Due { job: JobId(99) }]);
    let mut store = runs.synced();
    assert_eq!(store.cells("g-1", None, 0).unwrap().states.matches('?').count(), 1);
    same_made_anew(&runs, &mut store);
}

#[test]
fn a_plan_that_is_not_the_one_of_the_journal_says_nothing_about_it() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    let other = Runs::of("{workflow: other, tasks: {train: {for: {n: 1..9}, run: 'train {n}'}}}");
    let mut store = runs.store();
    let folder = runs.folder.path().join("runs");
    store.sync(&folder, &mut |run, path| other.plan_of(run, path)).unwrap();
    assert_eq!(states(&store), ["unknown"; 4]);
}

#[test]
fn after_a_damaged_line_jobs_of_which_events_speak_are_unknown_and_the_others_stand_as_they_stood() {
    let runs = Runs::new();
    let events = eventful("g-1");
    runs.write("g-1", 1, &events[..9]);
    runs.append("g-1", "journal.jsonl", b"{\"seq\":10,\"at\":\n");
    runs.write("g-1", 11, &events[10..]);
    let store = runs.synced();
    assert_eq!(states(&store), ["running", "done", "unknown", "unknown", "waiting"]);
    assert_eq!(store.attempts("g-1", JobId(2)).unwrap()[0].code, Some(3));
    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let applied: i64 = sql.query_row("SELECT applied FROM runs", [], |row| row.get(0)).unwrap();
    assert_eq!(applied, 9);
}

#[test]
fn the_record_of_a_task_that_a_later_event_adds_is_counted_once() {
    let runs = Runs::of(
        "{workflow: w, tasks: {split: {out: {parts: 'parts/*.txt'}, run: split}, \
         count: {for: {part: split.parts}, run: 'count {part}'}}}",
    );
    let before = [started("g-1"), submitted(0, 1), ended(0, 1, Ending::Exit(0), 200, vec![output("parts/a.txt", "a")])];
    runs.write("g-1", 1, &before);
    runs.record("g-1", &record(1, 1));
    let mut store = runs.synced();
    let counted = |store: &Store| {
        let sets = store.sets("g-1").unwrap();
        sets.into_iter().map(|set| (set.set.unwrap_or_default(), set.attempts)).collect::<Vec<_>>()
    };
    assert_eq!(counted(&store), [("split".to_owned(), 1)]);
    let graft = Event::Grafted { set: SetId(1), tasks: 1 };
    runs.write("g-1", 4, &[graft, submitted(1, 1), ended(1, 1, Ending::Exit(0), 200, vec![])]);
    runs.sync(&mut store);
    assert_eq!(counted(&store), [("split".to_owned(), 1), ("count".to_owned(), 1)]);
    same_made_anew(&runs, &mut store);
    assert_eq!(store.jobs("g-1", &JobFilter::default()).unwrap()[1].name.as_deref(), Some("count[part=parts/a.txt]"));
}

#[test]
fn jobs_that_an_event_changes_without_naming_them_are_among_the_changed_cells() {
    let runs = Runs::new();
    let train = |job| [submitted(job, 1), ended(job, 1, Ending::Exit(0), 5, vec![output(&format!("m{job}.bin"), "m")])];
    let events = [vec![started("g-1")], train(0).into(), train(1).into(), train(2).into()].concat();
    runs.write("g-1", 1, &events[..6]);
    let mut store = runs.synced();
    runs.write("g-1", 7, &events[6..]);
    runs.sync(&mut store);
    let cells = store.cells("g-1", Some(6), 5).unwrap();
    assert_eq!((cells.jobs, cells.states.as_str()), (vec![2, 3, 4], "dll"));
}

/// Bit by bit, so that the test does not share the code that it tests.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[test]
fn lines_that_a_resume_cut_are_forgotten() {
    let runs = Runs::new();
    runs.write("g-1", 1, &[started("g-1"), Event::Due { job: JobId(0) }]);
    let kept = fs::metadata(runs.path("g-1", "journal.jsonl")).unwrap().len();
    runs.write("g-1", 3, &[submitted(0, 1)]);
    let mut store = runs.synced();
    // A power loss took the last line; the resume wrote two others, longer than what was lost.
    fs::OpenOptions::new().write(true).open(runs.path("g-1", "journal.jsonl")).unwrap().set_len(kept).unwrap();
    let version = "0.1.0".repeat(100);
    runs.write("g-1", 3, &[Event::RunResumed { version, reopened: Vec::new() }, Event::Cancelled { job: JobId(0) }]);
    runs.sync(&mut store);
    let kinds: Vec<_> = store.story("g-1", JobId(0)).unwrap().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["due", "cancelled"]);
    assert_eq!(store.attempts("g-1", JobId(0)).unwrap(), []);
}

#[test]
fn a_run_that_was_removed_is_forgotten_and_one_made_anew_is_read_anew() {
    let runs = Runs::new();
    runs.write("g-1", 1, &eventful("g-1"));
    runs.write("g-2", 1, &eventful("g-2"));
    let mut store = runs.synced();
    fs::remove_dir_all(runs.path("g-1", "")).unwrap();
    fs::remove_dir_all(runs.path("g-2", "")).unwrap();
    let mut other = vec![Event::RunStarted {
        run: "g-2".into(),
        version: "9".into(),
        plan: tulpar_core::ids::Digest([0; 32]),
        seed: 1,
        provenance: Box::default(),
        simulated: false,
    }];
    other.extend((0..200).map(|job| Event::Due { job: JobId(job) }));
    runs.write("g-2", 1, &other);
    assert_eq!(runs.sync(&mut store).forgotten, 1);
    let all = store.runs().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].version.as_deref(), all[0].events), (Some("9"), 201));
    assert_eq!(store.outputs("g-2", None).unwrap(), []);
}

#[test]
fn a_record_without_its_event_still_shows_how_the_attempt_ended() {
    let runs = Runs::new();
    runs.write("g-1", 1, &[started("g-1"), submitted(0, 2)]);
    runs.record("g-1", &record(0, 2));
    let attempts = runs.synced().attempts("g-1", JobId(0)).unwrap();
    assert_eq!((attempts[0].ending.as_deref(), attempts[0].usage.unwrap().wall_us), (Some("exit"), 200));
}

#[test]
fn several_processes_may_sync_and_ask_at_once() {
    let runs = Runs::new();
    let expected = {
        let alone = Runs::new();
        for run in 0..20 {
            alone.write(&format!("g-{run}"), 1, &eventful("g"));
        }
        everything(&alone.synced())
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for run in 0..20 {
                for (index, event) in eventful("g").into_iter().enumerate() {
                    runs.write(&format!("g-{run}"), index as u64 + 1, &[event]);
                }
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                let mut store = runs.store();
                for _ in 0..10 {
                    runs.sync(&mut store);
                    store.runs().unwrap();
                }
            });
        }
    });
    assert_eq!(everything(&runs.synced()), expected);
}

#[test]
fn a_long_journal_is_taken_in_by_portions() {
    let runs = Runs::of("{workflow: long, tasks: {train: {for: {n: 1..60000}, run: 'train {n}'}}}");
    let mut events = vec![started("g-1")];
    for job in 0..60_000 {
        events.push(submitted(job, 1));
        events.push(Event::Started { attempt: attempt(job, 1) });
        events.push(ended(job, 1, Ending::Exit(0), 5, vec![]));
    }
    events.push(Event::RunEnded { outcome: Outcome::Done });
    runs.write("g-1", 1, &events);
    let store = runs.synced();
    let run = store.run("g-1").unwrap();
    assert_eq!((run.events, run.jobs["done"]), (180_002, 60_000));
    assert_eq!(store.sets("g-1").unwrap().iter().map(|set| set.attempts).sum::<u64>(), 60_000);
}
