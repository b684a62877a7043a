//! When which attempt held what.

use super::fixture::{SMALL, Told, at, small};
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::SetId;
use tulpar_core::job::Ending;
use tulpar_report::Timeline;

/// Set, start, end, milli-cores, milli-GPUs, of what was held by now.
fn held(told: &Told, now: Option<f64>) -> Vec<(u32, u64, u64, u64, u64)> {
    let all = told.timeline.occupied(&told.graph, now.map(at));
    all.iter().map(|one| (one.set.0, one.start, one.end, one.milli_cpus, one.milli_gpus)).collect()
}

#[test]
fn an_attempt_holds_what_it_asked_for_from_its_start_to_its_end() {
    let told = small();
    assert_eq!(
        held(&told, None),
        [
            (0, 1_000_000, 4_000_000, 2000, 1000),
            (0, 1_000_000, 5_000_000, 2000, 1000),
            (2, 2_000_000, 4_000_000, 500, 0),
            (1, 5_200_000, 6_200_000, 4000, 2000),
            (1, 6_500_000, 9_999_000, 4000, 2000),
        ]
    );
    assert_eq!(told.timeline.makespan(None), 11_000_000);
    assert_eq!(told.timeline.outcome(), Some(Outcome::Done));
}

#[test]
fn of_a_task_set_its_good_attempts_are_timed_and_its_failures_counted() {
    let mut told = small();
    told.failed(11.0, "watch");
    let train = told.timeline.times(SetId(1));
    assert_eq!((train.good, train.shortest_us, train.longest_us, train.retries), (1, 3_499_000, 3_499_000, 1));
    let simulate = told.timeline.times(SetId(0));
    assert_eq!((simulate.good, simulate.shortest_us, simulate.longest_us), (2, 3_000_000, 4_000_000));
    assert_eq!((simulate.total_us, simulate.failed), (7_000_000, 0));
    assert_eq!(told.timeline.times(SetId(2)).failed, 1);
    let watch = told.job("watch");
    told.tell(12.0, Event::RunResumed { version: "0".into(), reopened: vec![watch] });
    assert_eq!(told.timeline.times(SetId(2)).failed, 0);
}

#[test]
fn what_runs_holds_until_now_and_what_waits_holds_nothing() {
    let mut told = Told::new(SMALL);
    told.submitted(1.0, "simulate[i=1]", 1);
    told.submitted(1.0, "simulate[i=2]", 1);
    told.started(2.0, "simulate[i=1]", 1);
    assert_eq!(held(&told, Some(7.0)), [(0, 2_000_000, 7_000_000, 2000, 1000)]);
    assert_eq!(told.timeline.makespan(Some(at(7.0))), 7_000_000);
    // Without a driver nobody knows more than the last event.
    assert_eq!(held(&told, None), [(0, 2_000_000, 2_000_000, 2000, 1000)]);
}

/// Evicted after three seconds, without a checkpoint: the next piece begins again.
fn evicted() -> Told {
    let mut told = Told::new(SMALL);
    told.submitted(1.0, "simulate[i=1]", 1);
    told.started(2.0, "simulate[i=1]", 1);
    told.released(5.0, "simulate[i=1]", 1);
    told
}

#[test]
fn the_pieces_of_an_evicted_attempt_are_held_and_its_wait_is_not() {
    let mut told = evicted();
    assert_eq!(held(&told, Some(7.0)), [(0, 2_000_000, 5_000_000, 2000, 1000)]);
    told.started(8.0, "simulate[i=1]", 1);
    assert_eq!(held(&told, Some(9.0))[1], (0, 8_000_000, 9_000_000, 2000, 1000));
    told.ended("simulate[i=1]", 1, (8.0, 12.0), Ending::Exit(0));
    assert_eq!(held(&told, None), [(0, 2_000_000, 5_000_000, 2000, 1000), (0, 8_000_000, 12_000_000, 2000, 1000)]);
    // With a checkpoint the report covers all pieces, and nothing was lost.
    let mut told = evicted();
    told.started(8.0, "simulate[i=1]", 1);
    told.ended("simulate[i=1]", 1, (2.0, 12.0), Ending::Exit(0));
    assert_eq!(held(&told, None), [(0, 2_000_000, 12_000_000, 2000, 1000)]);
}

#[test]
fn a_pause_before_a_resume_is_no_time_of_the_run() {
    let mut told = Told::new(SMALL);
    told.submitted(1.0, "simulate[i=1]", 1);
    told.started(2.0, "simulate[i=1]", 1);
    // Killed after its last event at 2 s; the next day it goes on, and the attempt is found lost.
    told.tell(86_400.0, Event::RunResumed { version: "0".into(), reopened: Vec::new() });
    told.ended("simulate[i=1]", 1, (86_400.5, 86_400.5), Ending::NodeLost);
    told.ran("simulate[i=2]", 86_402.0, 86_405.0);
    told.over(86_406.0, Outcome::Done);
    assert_eq!(held(&told, None), [(0, 2_000_000, 2_500_000, 2000, 1000), (0, 4_000_000, 7_000_000, 2000, 1000)]);
    assert_eq!((told.timeline.makespan(None), told.timeline.resumed()), (8_000_000, 1));
    assert_eq!(told.timeline.paused(), 86_398_000_000);
}

#[test]
fn where_clocks_differ_only_the_time_between_start_and_end_counts() {
    let mut told = Told::new(SMALL);
    told.submitted(1.0, "simulate[i=1]", 1);
    told.started(2.0, "simulate[i=1]", 1);
    // The node's clock is slow by a minute.
    told.ended_as_heard(5.5, "simulate[i=1]", (-58.0, -55.0));
    assert_eq!(held(&told, None), [(0, 2_500_000, 5_500_000, 2000, 1000)]);
}

#[test]
fn before_anything_happened_there_is_nothing() {
    let told = Told::new(SMALL);
    assert_eq!(held(&told, None), []);
    assert_eq!(Timeline::default().makespan(None), 0);
}
