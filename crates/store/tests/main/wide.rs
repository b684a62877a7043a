//! Runs of more jobs than one block has: states of all of them, parts of names, ties.

use super::fixture::{Runs, started, submitted, usage};
use tulpar_core::event::{Consequence, Event};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, Report};
use tulpar_core::units::Timestamp;
use tulpar_store::{JobFilter, JobSort, Store};

/// Two blocks and a part of a third.
const JOBS: u32 = 9000;

const WIDE: &str = "
workflow: wide
tasks:
  prepare: {for: {Part: 0..4999}, run: 'prepare {Part}'}
  train: {for: {Part: 5000..8999}, run: 'train {Part}'}
";

fn ended(job: u32, wall_us: u64) -> Event {
    let report = Report {
        ending: Ending::Exit(0),
        started: Timestamp(1),
        ended: Timestamp(1 + wall_us),
        usage: usage(wall_us),
        outputs: Vec::new(),
        stderr_tail: String::new(),
        script: None,
        told: None,
        left_out: Vec::new(),
    };
    Event::Ended { attempt: AttemptId { job: JobId(job), n: 1 }, report: Box::new(report), then: Consequence::Done }
}

fn wide() -> (Runs, Store) {
    let runs = Runs::of(WIDE);
    runs.write("wide-1", 1, &[started("wide-1")]);
    let mut store = runs.store();
    runs.sync(&mut store);
    // Every third job is over; they took as long as each other, but one.
    let events: Vec<Event> = (0..JOBS)
        .step_by(3)
        .flat_map(|job| [submitted(job, 1), ended(job, if job == 6000 { 900 } else { 200 })])
        .collect();
    runs.write("wide-1", 2, &events);
    runs.sync(&mut store);
    (runs, store)
}

fn numbers(store: &Store, filter: &JobFilter) -> (Vec<u32>, u64) {
    let jobs = store.jobs("wide-1", filter).unwrap();
    (jobs.iter().map(|job| job.job.0).collect(), store.count_jobs("wide-1", filter).unwrap())
}

#[test]
fn the_cells_of_all_jobs_are_what_their_rows_say() {
    let (_runs, store) = wide();
    let cells = store.cells("wide-1", None, 0).unwrap();
    assert_eq!(cells.jobs, (0..JOBS).collect::<Vec<u32>>());
    let states: String = (0..JOBS).map(|job| if job % 3 == 0 { 'd' } else { 'l' }).collect();
    assert_eq!(cells.states, states);
    let sets: Vec<&str> = cells.sets.iter().map(|set| cells.names[*set as usize].as_deref().unwrap()).collect();
    assert!(sets[..5000].iter().all(|set| *set == "prepare") && sets[5000..].iter().all(|set| *set == "train"));
    // After an event: those that later ones touched, and those that were not known.
    let later = store.cells("wide-1", Some(cells.seq - 2), 8998).unwrap();
    assert_eq!((later.jobs, later.states.as_str()), (vec![8997, 8998, 8999], "dll"));
    assert_eq!(store.cells("wide-1", Some(cells.seq), JOBS).unwrap().jobs, [0; 0]);
}

#[test]
fn jobs_that_are_alike_come_in_the_order_of_their_numbers() {
    let (_runs, store) = wide();
    let page = |sort, offset| JobFilter { sort, descending: true, offset, limit: Some(3), ..Default::default() };
    assert_eq!(numbers(&store, &page(JobSort::Wall, 0)).0, [6000, 0, 3]);
    assert_eq!(numbers(&store, &page(JobSort::Wall, 2998)).0, [8994, 8997, 1]);
    assert_eq!(numbers(&store, &page(JobSort::Cpu, 0)).0, [6000, 0, 3]);
}

#[test]
fn a_part_of_a_name_finds_jobs_of_all_blocks_with_every_other_wish() {
    let (_runs, store) = wide();
    let part = |text: &str| JobFilter { contains: Some(text.to_owned()), ..Default::default() };
    assert_eq!(numbers(&store, &part("nothing")), (vec![], 0));
    assert_eq!(
        numbers(&store, &part("PART=444")),
        (vec![444, 4440, 4441, 4442, 4443, 4444, 4445, 4446, 4447, 4448, 4449], 11)
    );
    assert_eq!(
        numbers(&store, &JobFilter { limit: Some(2), offset: 1, descending: true, ..part("=44]") }),
        (vec![], 1)
    );
    let done = JobFilter { states: vec!["done".into()], ..part("[part=800") };
    assert_eq!(numbers(&store, &done), (vec![8001, 8004, 8007], 3));
    let set = JobFilter { set: Some("train".into()), limit: Some(2), ..part("99") };
    assert_eq!(numbers(&store, &set), (vec![5099, 5199], 76));
    let sets = JobFilter { sets: Some(vec!["prepare".into()]), limit: Some(1), ..part("train") };
    assert_eq!(numbers(&store, &sets), (vec![], 0));
    // Few are sorted by themselves, many in the index.
    let sorted = |text| JobFilter { sort: JobSort::Wall, descending: true, limit: Some(2), ..part(text) };
    assert_eq!(numbers(&store, &sorted("600")), (vec![6000, 600], 19));
    assert_eq!(numbers(&store, &sorted("part")), (vec![6000, 0], 9000));
}

#[test]
fn what_takes_long_to_read_says_how_far_it_is() {
    let (runs, store) = wide();
    let journal = std::fs::metadata(runs.path("wide-1", "journal.jsonl")).unwrap().len();
    assert_eq!(store.taken_in("wide-1").unwrap(), journal);
    assert_eq!(store.taken_in("narrow-1").unwrap(), 0);
}
