//! The cause of an ending decides what comes next.

use super::Bench;
use tulpar_core::event::{Input, Stopping};
use tulpar_core::job::Ending;

fn one(settings: &str) -> Bench {
    Bench::new(&format!("workflow: one\ntasks:\n  train: {{run: train{settings}}}\n"))
}

#[test]
fn out_of_memory_gets_more_memory_up_to_the_largest_node() {
    let mut bench = one(", memory: 3 GB");
    assert_eq!(bench.begin(), ["start train.1 on here-01 with 3 GB"]);
    let lines = bench.end("train", Ending::Memory);
    assert_eq!(lines, ["end train Memory", "retry train at 0 s", "due train", "start train.2 on here-01 with 6 GB"]);
    assert_eq!(bench.end("train", Ending::Memory).last().unwrap(), "start train.3 on here-01 with 8 GB");
    let lines = bench.end("train", Ending::Memory);
    assert_eq!(lines, ["end train Memory", "failed train Resources", "run Failed"]);
}

#[test]
fn out_of_time_gets_more_time() {
    let mut bench = one(", time: 10 min, retry: {times: 1, on: [out_of_time], time: 150%}");
    bench.begin();
    bench.end("train", Ending::Walltime);
    assert_eq!(bench.specs["train"].limits.time.unwrap().as_secs(), 900);
    assert_eq!(bench.end("train", Ending::Walltime)[1..], ["failed train Resources", "run Failed"]);
}

#[test]
fn a_users_error_stops_at_once() {
    let mut bench = one("");
    bench.begin();
    assert_eq!(bench.end("train", Ending::Exit(1)), ["end train Exit(1)", "failed train Task", "run Failed"]);
}

#[test]
fn evictions_do_not_use_up_the_tries() {
    let mut bench = one(", retry: {times: 0, on: [evicted]}");
    bench.begin();
    for attempt in 2..6 {
        let lines = bench.end("train", Ending::Preempted);
        assert_eq!(lines.last().unwrap(), &format!("start train.{attempt} on here-01"));
    }
    assert_eq!(bench.done("train").last().unwrap(), "run Done");
}

#[test]
fn the_loss_of_the_driver_costs_no_try_whatever_the_retry_says() {
    for retry in ["0", "{times: 0, on: [failure]}", "{times: 1, on: [exit_75]}"] {
        let mut bench = one(&format!(", retry: {retry}"));
        bench.begin();
        for attempt in 2..6 {
            let lines = bench.end("train", Ending::DriverLost);
            assert_eq!(lines.last().unwrap(), &format!("start train.{attempt} on here-01"), "{retry}");
        }
        assert_eq!(bench.done("train").last().unwrap(), "run Done");
    }
}

#[test]
fn an_interruption_by_a_person_is_no_failure_of_the_task() {
    let mut bench = one(", retry: 0");
    bench.begin();
    bench.tell(Input::Stop { how: Stopping::Interrupt });
    let lines = bench.end("train", Ending::Preempted);
    assert_eq!(lines, ["end train Preempted", "retry train at 0 s", "run Interrupted"]);
}

#[test]
fn a_checkpointed_task_goes_on_without_end() {
    let mut bench = one(", checkpoint: c.pt, retry: {times: 0, on: [out_of_memory]}");
    bench.begin();
    assert_eq!(bench.end("train", Ending::Checkpointed).last().unwrap(), "start train.2 on here-01");
    assert_eq!(bench.done("train").last().unwrap(), "run Done");
}

#[test]
fn pauses_double_and_the_engine_says_when_it_wants_to_be_woken() {
    let mut bench = one(", retry: {times: 2, on: [failure], pause: 10 s}");
    bench.begin();
    assert_eq!(bench.end("train", Ending::Signal(11))[1..], ["retry train at 10 s"]);
    assert_eq!(bench.engine.next_deadline().unwrap().0, 10_000_000);
    assert!(bench.wait(9).is_empty());
    assert_eq!(bench.wait(1), ["due train", "start train.2 on here-01"]);
    assert_eq!(bench.end("train", Ending::Exit(1))[1..], ["retry train at 30 s"]);
    bench.wait(20);
    assert_eq!(bench.end("train", Ending::Exit(1))[1..], ["failed train Task", "run Failed"]);
}

#[test]
fn one_exit_code_may_be_worth_another_try() {
    let mut bench = one(", retry: {times: 1, on: [exit_75]}");
    bench.begin();
    assert_eq!(bench.end("train", Ending::Exit(75))[1..], ["retry train at 1 s"]);
    bench.wait(1);
    assert_eq!(bench.end("train", Ending::Exit(1))[1..], ["failed train Task", "run Failed"]);
}
