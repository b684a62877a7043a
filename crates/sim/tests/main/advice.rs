//! Advice about the published workflow and about small ones, each piece with the figures that it must have.

use crate::main::published::{deepdrivemd, plan, summit};
use std::sync::Arc;
use tulpar_core::engine::{Mode, Order, Packing, Policy};
use tulpar_core::plan::Plan;
use tulpar_core::units::Bytes;
use tulpar_sim::advice::{Advice, Advised, ByMode, Change, USUAL_BUDGET, advise, cost, one_by_one};
use tulpar_sim::{Model, Setting};

fn setting(plan: Arc<Plan>, policy: Policy) -> Setting {
    let model = Model::of(&plan, 1);
    Setting::new(plan, policy, model)
}

fn advised_within(base: &Setting, path: &[&str], budget: u64) -> Advised {
    let mut modes = ByMode::default();
    modes.set(base.policy.mode, base.simulate());
    let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
    advise(base, &modes, &path, budget, &one_by_one)
}

fn advised(plan: Arc<Plan>, policy: Policy) -> Advised {
    advised_within(&setting(plan, policy), &[], USUAL_BUDGET)
}

fn first_fit() -> Policy {
    let (order, packing) = (Some(Order::Oldest), Packing::FirstFit);
    Policy { mode: Mode::Staggered, order, packing, ..Policy::default() }
}

/// In words and rounded seconds, what saves most first.
fn lines(advised: &Advised) -> Vec<String> {
    let line = |advice: &Advice| {
        let (before, after) = (advice.simulated.before.seconds, advice.simulated.after.seconds);
        format!("{}: {after:.0} instead of {before:.0}", advice.what)
    };
    advised.advice.iter().map(line).collect()
}

#[test]
fn more_gpu_nodes_are_weighed_against_each_other() {
    let found = advised(deepdrivemd(3, summit(16, 168)), Policy::default());
    assert_eq!(lines(&found), ["one more GPU node saves 2.3 %, two save 2.3 %, 16 save 30 %: 1206 instead of 1235"]);
    let advice = &found.advice[0];
    assert_eq!(advice.change, Change::Nodes { like: "node-00".into(), by: 1 });
    assert_eq!(advice.because, "GPUs hold the run up; each such node adds 168 cores and 6 GPUs");
    assert!((advice.saves.seconds - 29.0).abs() < 0.5 && (advice.saves.fraction - 29.0 / 1235.0).abs() < 0.001);
    let tried: Vec<String> = advice.also.iter().map(|tried| format!("{:.0}", tried.seconds)).collect();
    assert_eq!(tried, ["1206", "1206", "1206", "866"]);
    let binding: Vec<&str> = found.binding.iter().map(|binding| binding.resource).collect();
    assert_eq!(binding, ["GPUs", "cores"]);
    assert!(found.left_out.is_empty());
}

#[test]
fn cores_that_strand_gpus_are_named_with_the_number_to_ask_for() {
    let found = advised(deepdrivemd(3, summit(16, 167)), first_fit());
    let stranding = found.advice.iter().find(|advice| advice.what.contains("strand")).expect("it is said");
    assert_eq!(stranding.what, "the 32 cores of aggr0, aggr1 and aggr2 strand 5 GPUs a node: ask for 28");
    assert_eq!(
        stranding.because,
        "five of them leave 7 cores for 6 GPUs, of which each wants 4 cores for sim0, sim1 and sim2"
    );
    assert_eq!(stranding.assuming.as_deref(), Some("a task of aggr0, aggr1 and aggr2 then takes 97 s instead of 85 s"));
    let Change::Request(change) = &stranding.change else { panic!("{:?}", stranding.change) };
    assert_eq!((change.of.as_str(), change.milli_cpus), ("aggr0, aggr1 and aggr2", Some(28_000)));
    assert!(stranding.simulated.after.seconds < stranding.simulated.before.seconds * 0.99);
    let packing = found.advice.iter().find(|advice| matches!(advice.change, Change::Packing(_))).expect("it is said");
    assert_eq!(packing.what, "fill nodes with --packing protect");
    assert!((packing.simulated.after.seconds - 1323.0).abs() < 1.0, "{packing:?}");
}

#[test]
fn nothing_that_saves_less_than_a_hundredth_is_said_and_the_best_comes_first() {
    for (plan, policy) in [
        (deepdrivemd(3, summit(16, 167)), first_fit()),
        (deepdrivemd(2, summit(4, 168)), Policy::default()),
        (deepdrivemd(2, summit(4, 168)), Policy { mode: Mode::Sequential, ..Policy::default() }),
    ] {
        let found = advised(plan, policy);
        let gains: Vec<f64> = found.advice.iter().map(|advice| advice.saves.fraction).collect();
        assert!(gains.iter().all(|gain| *gain >= 0.01) && gains.is_sorted_by(|one, other| one >= other), "{gains:?}");
        for advice in &found.advice {
            let (before, after) = (advice.simulated.before.seconds, advice.simulated.after.seconds);
            assert!((advice.saves.fraction - (1.0 - after / before)).abs() < 1e-9, "{advice:?}");
        }
    }
}

#[test]
fn a_request_that_is_cut_a_little_lets_one_more_task_fit() {
    let rows = [("fit", 8, 90, 0, 100.0, None, &[][..])];
    let found = advised(plan(&rows, summit(2, 168)), Policy::default());
    let cut = found.advice.iter().find(|advice| matches!(advice.change, Change::Request(_))).expect("it is said");
    assert_eq!(cut.what, "ask for 84 instead of 90 cores for fit");
    assert_eq!(cut.because, "then two of them fit on a node instead of one");
    assert_eq!(cut.assuming.as_deref(), Some("a task of fit then takes 107 s instead of 100 s"));
    assert_eq!(format!("{:.0} {:.0}", cut.simulated.before.seconds, cut.simulated.after.seconds), "400 214");
}

#[test]
fn less_memory_lets_one_more_task_fit() {
    let rows = [("fit", 8, 1, 0, 100.0, None, &[][..])];
    let mut whole = Plan::clone(&plan(&rows, summit(1, 168)));
    whole.site.nodes[0].capacity.memory = Bytes(100_000_000_000);
    Arc::make_mut(&mut whole.workflow.tasks[0].settings).request.memory = Bytes(30_000_000_000);
    let found = advised(Arc::new(whole), Policy::default());
    let cut = found.advice.iter().find(|advice| matches!(advice.change, Change::Request(_))).expect("it is said");
    assert_eq!(cut.what, "ask for 25 GB instead of 30 GB of memory for fit");
    assert_eq!(cut.assuming.as_deref(), Some("a task of fit needs no more than 25 GB"));
    assert_eq!(format!("{:.0} {:.0}", cut.simulated.before.seconds, cut.simulated.after.seconds), "300 200");
    assert_eq!(found.binding[0].resource, "memory");
}

#[test]
fn nodes_that_are_not_needed_are_counted() {
    let rows = [("fit", 8, 1, 0, 100.0, None, &[][..])];
    let found = advised(plan(&rows, summit(8, 168)), Policy::default());
    assert_eq!(found.advice, []);
    assert_eq!(found.notes, ["1 of the 8 nodes does as well: it takes no longer"]);
}

#[test]
fn more_cores_help_only_on_the_longest_path() {
    let rows = [("slow", 1, 4, 0, 300.0, None, &[][..]), ("side", 1, 4, 0, 100.0, None, &[])];
    let base = setting(plan(&rows, summit(1, 168)), Policy::default());
    assert_eq!(lines(&advised_within(&base, &[], USUAL_BUDGET)), Vec::<String>::new());
    let found = advised_within(&base, &["slow"], USUAL_BUDGET);
    assert_eq!(lines(&found), ["give slow 8 instead of 4 cores: 150 instead of 300"]);
    assert_eq!(found.advice[0].assuming.as_deref(), Some("a task then takes 150 s instead of 300 s"));
}

#[test]
fn what_the_budget_does_not_allow_is_left_out_and_said() {
    let base = setting(deepdrivemd(1, summit(16, 168)), Policy::default());
    let jobs = 96 + 16 + 1 + 96;
    assert_eq!(cost(&base, jobs), jobs * 11);
    let found = advised_within(&base, &[], 3 * cost(&base, jobs));
    assert_eq!((found.simulations, found.simulated_jobs), (3, 3 * jobs * 11));
    assert_eq!(found.left_out[0], "3 of 4 more nodes");
    let nothing = advised_within(&base, &[], 0);
    assert_eq!((nothing.simulations, nothing.advice.len()), (0, 0));
    assert!(nothing.left_out.contains(&"which resource binds".to_owned()), "{:?}", nothing.left_out);
}

#[test]
fn a_wall_time_that_is_too_short_is_answered_with_one_that_is_not() {
    let rows = [("long", 4, 168, 0, 100.0, None, &[][..])];
    let policy = Policy { walltime: Some(std::time::Duration::from_secs(250)), ..Policy::default() };
    let found = advised(plan(&rows, summit(1, 168)), policy);
    assert_eq!(found.advice, []);
    assert_eq!(
        found.notes.last().map(String::as_str),
        Some("within the wall time of 250 s not all tasks can end: ask for 400 s or more")
    );
}

#[test]
fn a_limit_that_holds_up_is_named() {
    let rows = [("fit", 8, 1, 0, 100.0, None, &[][..])];
    let mut whole = Plan::clone(&plan(&rows, summit(1, 168)));
    Arc::make_mut(&mut whole.workflow.tasks[0].settings).at_most = Some(2);
    let found = advised(Arc::new(whole), Policy::default());
    assert_eq!(lines(&found), ["raise `at_most: 2` of fit, or leave it out: 100 instead of 400"]);
}

#[test]
fn a_task_that_would_be_ended_early_is_told_to_ask_for_more_time() {
    let rows = [("train", 1, 1, 0, 100.0, None, &[][..])];
    let mut whole = Plan::clone(&plan(&rows, summit(1, 168)));
    let request = &mut Arc::make_mut(&mut whole.workflow.tasks[0].settings).request;
    request.time = Some(std::time::Duration::from_secs(60));
    let found = advised(Arc::new(whole), Policy::default());
    let words = "ask for more `time:`: train asks for 60 s and takes 100 s";
    assert_eq!(lines(&found), [format!("{words}: 100 instead of 160")]);
}

#[test]
fn what_the_site_adds_is_told_apart_from_what_tasks_take() {
    let rows = [("one", 10, 1, 0, 90.0, None, &[][..]), ("two", 1, 1, 0, 90.0, None, &["one"])];
    let mut base = setting(plan(&rows, summit(1, 168)), Policy::default());
    base.model.dependency_latency = std::time::Duration::from_secs(20);
    let found = advised_within(&base, &[], USUAL_BUDGET);
    assert!(
        found.notes.contains(
            &"launching, waiting in queues and moving files cost 10 %: without them it would take 180 s".to_owned()
        ),
        "{:?}",
        found.notes
    );
}
