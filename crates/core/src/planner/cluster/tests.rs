//! Every strategy on workflows small enough to see, and what holds for all of them on random ones.

use super::super::abstraction::{Abstract, Builder, Task, TaskId};
use super::super::estimate::{Estimate, estimate};
use super::super::layout::{Decision, Pass, SiteId};
use super::super::options::{Clustering, Options};
use super::super::partition::Partition;
use super::super::plan;
use super::{Given, cluster};
use crate::catalogue::Catalogue;
use crate::resources::Capacity;
use crate::site::{Node, Site};
use crate::units::Bytes;
use crate::workflow::ClusterHint;
use proptest::prelude::*;
use std::time::Duration;

/// Tasks as `name`, program and run time; edges by name, parent first.
fn graph(tasks: &[(&str, &str, f64)], edges: &[(&str, &str)], change: impl Fn(&str, &mut Task)) -> Abstract {
    let mut builder = Builder::new("small");
    for (name, kind, runtime) in tasks {
        let kind = builder.kind(kind);
        let mut task = Task { name: (*name).into(), kind, runtime: Some(*runtime), ..Task::default() };
        change(name, &mut task);
        builder.task(task);
    }
    let find = |name: &str| TaskId::from(tasks.iter().position(|task| task.0 == name).expect("a known task"));
    edges.iter().for_each(|(parent, child)| builder.after(find(child), find(parent)));
    builder.finish().expect("no circle")
}

/// Clusters as `name: tasks`, tasks by themselves as their names; and the decisions in words.
fn clusters_at(
    graph: &Abstract,
    clustering: &[Clustering],
    site_of: &dyn Fn(TaskId) -> SiteId,
) -> (Vec<String>, Vec<String>) {
    let options = Options { clustering: clustering.to_vec(), ..Options::default() };
    let estimate = |_: &Partition| Estimate::default();
    let mut decisions: Vec<Decision> = Vec::new();
    let given = Given { graph, site_of, done: &[], options: &options, slots: &|_| None, estimate: &estimate };
    let partition = cluster(&given, &mut decisions);
    assert!(partition.is_sound(graph));
    let clusters = (0..partition.len()).map(|cluster| {
        let tasks: Vec<&str> = partition.tasks(cluster).iter().map(|task| &*graph.tasks[task.index()].name).collect();
        match partition.name(cluster) {
            "" => tasks.join(" "),
            name => format!("{name}: {}", tasks.join(" ")),
        }
    });
    let decisions = decisions.into_iter().map(|it| format!("{}: {}, because {}", it.about, it.what, it.why));
    (clusters.collect(), decisions.collect())
}

fn clusters(graph: &Abstract, clustering: &[Clustering]) -> Vec<String> {
    clusters_at(graph, clustering, &|_| SiteId::LOCAL).0
}

fn size(size: u32) -> Option<ClusterHint> {
    Some(ClusterHint { size: Some(size), ..ClusterHint::default() })
}

fn count(count: u32) -> Option<ClusterHint> {
    Some(ClusterHint { count: Some(count), ..ClusterHint::default() })
}

fn at_most(seconds: u64) -> Option<ClusterHint> {
    Some(ClusterHint { runtime: Some(Duration::from_secs(seconds)), ..ClusterHint::default() })
}

/// Five equal tasks that one other waits for.
fn fan() -> Abstract {
    let tasks = [
        ("a", "cut", 5.0),
        ("b", "cut", 4.0),
        ("c", "cut", 3.0),
        ("d", "cut", 2.0),
        ("e", "cut", 1.0),
        ("end", "glue", 1.0),
    ];
    graph(&tasks, &[("a", "end"), ("b", "end"), ("c", "end"), ("d", "end"), ("e", "end")], |_, _| {})
}

#[test]
fn without_a_strategy_every_task_is_by_itself_and_nothing_is_said() {
    let (clusters, decisions) = clusters_at(&fan(), &[], &|_| SiteId::LOCAL);
    assert_eq!((clusters.len(), decisions.len()), (6, 0));
}

#[test]
fn a_size_fills_clusters_one_after_another() {
    let (clusters, decisions) = clusters_at(&fan(), &[Clustering::Horizontal(size(2))], &|_| SiteId::LOCAL);
    assert_eq!(clusters, ["merge_cut_1: a b", "merge_cut_2: c d", "e", "end"]);
    assert_eq!(
        decisions,
        ["cut: 5 tasks of level 0 in 2 clusters, 1 by themselves, because at most 2 tasks a cluster are asked for"]
    );
}

#[test]
fn a_number_of_clusters_spreads_evenly_and_wins_over_a_size() {
    let both = Some(ClusterHint { size: Some(5), count: Some(2), runtime: None });
    assert_eq!(clusters(&fan(), &[Clustering::Horizontal(both)]), ["merge_cut_1: a b c", "merge_cut_2: d e", "end"]);
    assert_eq!(clusters(&fan(), &[Clustering::Horizontal(count(9))]), ["a", "b", "c", "d", "e", "end"]);
}

#[test]
fn tasks_say_themselves_how_they_go_together() {
    let tasks = [("a", "cut", 1.0), ("b", "cut", 1.0), ("c", "dry", 1.0), ("d", "dry", 1.0)];
    let graph = graph(&tasks, &[], |name, task| task.hint = if name < "c" { size(2) } else { None });
    assert_eq!(clusters(&graph, &[Clustering::Horizontal(None)]), ["merge_cut_1: a b", "c", "d"]);
}

#[test]
fn without_a_size_or_a_number_nothing_goes_together_and_that_is_said() {
    let (_, decisions) = clusters_at(&fan(), &[Clustering::Horizontal(None)], &|_| SiteId::LOCAL);
    assert_eq!(
        decisions,
        ["6 tasks: left by themselves, because neither they nor the command say a size or a number of clusters"]
    );
}

#[test]
fn levels_sites_and_programs_are_kept_apart() {
    let tasks = [("a", "cut", 1.0), ("b", "cut", 1.0), ("c", "dry", 1.0), ("d", "cut", 1.0), ("e", "cut", 1.0)];
    let graph = graph(&tasks, &[("a", "e")], |_, _| {});
    let (clusters, _) =
        clusters_at(&graph, &[Clustering::Horizontal(count(1))], &|task| SiteId(u16::from(task == TaskId(3))));
    assert_eq!(clusters, ["merge_cut_1: a b", "c", "d", "e"]);
}

#[test]
fn run_times_fill_the_first_bin_that_has_room_and_longer_tasks_stay_by_themselves() {
    assert_eq!(
        clusters(&fan(), &[Clustering::Runtime(at_most(4))]),
        ["a", "b", "merge_cut_1: c e", "d", "end"],
        "5 is longer than 4; 4 fills a bin; 3 and 1 share one; 2 finds none"
    );
}

#[test]
fn a_number_of_clusters_by_run_time_fills_the_shortest() {
    assert_eq!(
        clusters(&fan(), &[Clustering::Runtime(count(2))]),
        ["merge_cut_1: a d e", "merge_cut_2: b c", "end"],
        "5 | 4, then 4+3=7, then 5+2=7, then the first of the equals"
    );
}

#[test]
fn a_size_by_run_time_closes_full_clusters() {
    assert_eq!(clusters(&fan(), &[Clustering::Runtime(size(3))]), ["merge_cut_1: a d e", "merge_cut_2: b c", "end"]);
}

fn labelled(edges: &[(&str, &str)]) -> Abstract {
    let tasks = [("a", "cut", 1.0), ("b", "dry", 1.0), ("c", "cut", 1.0), ("free", "glue", 1.0)];
    graph(&tasks, edges, |name, task| task.label = (name != "free").then(|| "left".into()))
}

#[test]
fn tasks_with_one_label_are_one_job() {
    let (clusters, decisions) = clusters_at(&labelled(&[("a", "b")]), &[Clustering::Label], &|_| SiteId::LOCAL);
    assert_eq!(clusters, ["merge_left_1: a c b", "free"]);
    assert_eq!(decisions, ["label left: 3 tasks in one job, because they have one label"]);
}

#[test]
fn a_label_that_would_wait_for_itself_is_split() {
    let graph = labelled(&[("a", "free"), ("free", "b")]);
    let (clusters, decisions) = clusters_at(&graph, &[Clustering::Label], &|_| SiteId::LOCAL);
    assert_eq!(clusters, ["merge_left_1: a c", "free", "b"]);
    assert_eq!(
        decisions,
        [
            "label left: 3 tasks in 2 jobs, because one job would wait for itself: other jobs need some of its tasks and others of its tasks need those"
        ]
    );
}

#[test]
fn without_labels_that_is_said() {
    let (_, decisions) = clusters_at(&fan(), &[Clustering::Label], &|_| SiteId::LOCAL);
    assert_eq!(decisions, ["all tasks: left by themselves, because no task has a label"]);
}

#[test]
fn the_whole_workflow_is_one_job_a_site() {
    assert_eq!(clusters(&fan(), &[Clustering::Whole]), ["merge_whole_1: a b c d e end"]);
    let there = |task: TaskId| SiteId(u16::from(task.0 < 2));
    let (clusters, _) = clusters_at(&fan(), &[Clustering::Whole], &there);
    assert_eq!(clusters, ["merge_whole_2: a b", "merge_whole_1: c d e end"]);
}

#[test]
fn a_task_that_must_be_alone_stays_outside_and_is_gone_around() {
    let tasks = [("a", "cut", 1.0), ("b", "grow", 1.0), ("c", "glue", 1.0), ("d", "cut", 1.0)];
    let graph = graph(&tasks, &[("a", "b"), ("b", "c")], |name, task| {
        task.alone = (name == "b").then_some("it writes a workflow");
    });
    let (clusters, decisions) = clusters_at(&graph, &[Clustering::Whole], &|_| SiteId::LOCAL);
    assert_eq!(clusters, ["merge_whole_1: a d", "b", "c"]);
    assert_eq!(decisions[0], "b: not put together with other tasks, because it writes a workflow");
}

#[test]
fn a_later_strategy_takes_what_earlier_ones_left() {
    let tasks = [("a", "cut", 1.0), ("b", "dry", 1.0), ("c", "cut", 1.0), ("d", "cut", 1.0)];
    let graph = graph(&tasks, &[("a", "b")], |name, task| task.label = (name < "c").then(|| "left".into()));
    assert_eq!(
        clusters(&graph, &[Clustering::Label, Clustering::Horizontal(count(1))]),
        ["merge_left_1: a b", "merge_cut_1: c d"]
    );
    assert_eq!(clusters(&graph, &[Clustering::Horizontal(count(1)), Clustering::Label]), ["merge_cut_1: a c d", "b"]);
}

#[test]
fn levels_are_those_after_earlier_clusters() {
    // `p` and `q` are both roots; together with `x` and `y` they become one node, and `r` comes after it.
    let tasks = [("p", "one", 1.0), ("x", "two", 1.0), ("r", "cut", 1.0), ("s", "cut", 1.0), ("t", "cut", 1.0)];
    let graph = graph(&tasks, &[("p", "x"), ("p", "r"), ("s", "x")], |name, task| {
        task.label = ["p", "x"].contains(&name).then(|| "one".into());
    });
    assert_eq!(
        clusters(&graph, &[Clustering::Label, Clustering::Horizontal(count(1))]),
        ["merge_one_1: p x", "merge_cut_1: s t", "r"],
        "s comes before the cluster and r after it: {{r, s}} would wait for itself"
    );
}

#[test]
fn names_have_only_letters_that_a_file_name_may_have() {
    let graph = graph(&[("a", "ns::cut/1.0", 1.0), ("b", "ns::cut/1.0", 1.0)], &[], |_, _| {});
    assert_eq!(clusters(&graph, &[Clustering::Horizontal(count(1))]), ["merge_ns__cut_1.0_1: a b"]);
}

prop_compose! {
    /// Up to 40 tasks with random programs, labels, hints, run times, and edges from lower to higher numbers.
    pub(super) fn any_graph()(
        tasks in prop::collection::vec((0u32..3, prop::option::of(0u32..4), 0u32..50, prop::bool::weighted(0.1), prop::option::of(1u32..5)), 1..40),
        edges in prop::collection::vec((0usize..40, 0usize..40), 0..80),
        shared in prop::collection::vec((0usize..40, 0usize..40, 0u64..5_000_000_000), 0..40),
    ) -> Abstract {
        let mut builder = Builder::new("random");
        let kinds = ["cut", "dry", "glue"].map(|name| builder.kind(name));
        let count = tasks.len();
        for (at, (kind, label, runtime, alone, hint)) in tasks.into_iter().enumerate() {
            builder.task(Task {
                name: format!("t{at}").into(),
                kind: kinds[kind as usize],
                runtime: Some(f64::from(runtime)),
                label: label.map(|label| format!("l{label}").into()),
                hint: hint.and_then(|it| if it.is_multiple_of(2) { size(it) } else { count_hint(it) }),
                alone: alone.then_some("so it is"),
                ..Task::default()
            });
        }
        for (one, other) in edges {
            let (one, other) = (one % count, other % count);
            if one != other {
                builder.after(TaskId::from(one.max(other)), TaskId::from(one.min(other)));
            }
        }
        for (one, other, bytes) in shared {
            let (one, other) = (one % count, other % count);
            let file = builder.file(super::super::File { name: "f".into(), size: bytes, ..Default::default() });
            let group = builder.group([file]);
            if one == other {
                builder.reads(TaskId::from(one), group);
            } else if bytes.is_multiple_of(2) {
                builder.reads(TaskId::from(one), group);
                builder.reads(TaskId::from(other), group);
            } else {
                builder.writes(TaskId::from(one.min(other)), group);
                builder.reads(TaskId::from(one.max(other)), group);
            }
        }
        builder.finish().expect("edges lead upwards")
    }
}

fn count_hint(number: u32) -> Option<ClusterHint> {
    count(number)
}

fn any_strategy() -> impl Strategy<Value = Clustering> {
    let hint =
        prop_oneof![Just(None), (1u32..6).prop_map(size), (1u32..6).prop_map(count), (1u64..90).prop_map(at_most)];
    (hint, 0..4).prop_map(|(hint, which)| match which {
        0 => Clustering::Horizontal(hint),
        1 => Clustering::Runtime(hint),
        2 => Clustering::Label,
        _ => Clustering::Whole,
    })
}

/// Every task once, each after those it needs inside its cluster, none with others that must be alone or is done, and
/// no cluster at two sites.
fn check(graph: &Abstract, partition: &Partition, done: &[bool], site_of: &dyn Fn(TaskId) -> SiteId) {
    assert!(partition.is_sound(graph));
    let mut seen = vec![0; graph.tasks.len()];
    for cluster in 0..partition.len() {
        let tasks = partition.tasks(cluster);
        assert_eq!(tasks.len() > 1, !partition.name(cluster).is_empty());
        for (at, task) in tasks.iter().enumerate() {
            seen[task.index()] += 1;
            assert!(tasks.len() == 1 || (graph.tasks[task.index()].alone.is_none() && !done[task.index()]));
            assert_eq!(site_of(*task), site_of(tasks[0]));
            assert!(tasks[..at].iter().all(|earlier| !graph.parents(*earlier).contains(task)));
        }
    }
    assert!(seen.iter().all(|times| *times == 1));
}

proptest! {
    #[test]
    fn whatever_the_strategies_the_partition_is_sound_and_whole(
        graph in any_graph(),
        clustering in prop::collection::vec(any_strategy(), 0..4),
        done in prop::collection::vec(prop::bool::weighted(0.1), 40),
        sites in 1u32..3,
    ) {
        let site_of = |task: TaskId| SiteId((task.0 % sites) as u16);
        let options = Options { clustering, ..Options::default() };
        let estimate = |_: &Partition| Estimate::default();
        let given = Given { graph: &graph, site_of: &site_of, done: &done, options: &options, slots: &|_| None, estimate: &estimate };
        let partition = cluster(&given, &mut Vec::new());
        check(&graph, &partition, &done, &site_of);
    }

    #[test]
    fn sizes_numbers_and_run_times_are_kept(graph in any_graph(), most in 1u32..6) {
        let parts = |clustering: Clustering| -> Vec<Vec<TaskId>> {
            let options = Options { clustering: vec![clustering], ..Options::default() };
            let estimate = |_: &Partition| Estimate::default();
            let given = Given { graph: &graph, site_of: &|_| SiteId::LOCAL, done: &[], options: &options, slots: &|_| None, estimate: &estimate };
            let partition = cluster(&given, &mut Vec::new());
            (0..partition.len()).map(|at| partition.tasks(at).to_vec()).collect()
        };
        let free = |task: &TaskId| graph.tasks[task.index()].alone.is_none();
        let groups = |parts: &[Vec<TaskId>]| {
            let mut groups: std::collections::BTreeMap<(u32, u32), (usize, usize)> = Default::default();
            for part in parts.iter().filter(|part| free(&part[0])) {
                let group = groups.entry((graph.level(part[0]), graph.tasks[part[0].index()].kind)).or_default();
                *group = (group.0 + 1, group.1 + part.len());
                assert!(part.iter().all(|task| graph.level(*task) == graph.level(part[0])));
            }
            groups.into_values().collect::<Vec<_>>()
        };
        let most_tasks = most as usize;
        for by_size in [parts(Clustering::Horizontal(size(most))), parts(Clustering::Runtime(size(most)))] {
            prop_assert!(by_size.iter().all(|part| part.len() <= most_tasks));
            prop_assert!(groups(&by_size).iter().all(|(parts, tasks)| *parts == tasks.div_ceil(most_tasks)));
        }
        for by_count in [parts(Clustering::Horizontal(count(most))), parts(Clustering::Runtime(count(most)))] {
            prop_assert!(groups(&by_count).iter().all(|(parts, tasks)| parts == tasks.min(&most_tasks)));
        }
        let seconds = f64::from(most * 15);
        for part in parts(Clustering::Runtime(at_most(u64::from(most) * 15))) {
            let sum: f64 = part.iter().filter_map(|task| graph.tasks[task.index()].runtime).sum();
            prop_assert!(part.len() == 1 || sum <= seconds);
        }
    }
}

proptest! {
    // Each case makes more than a hundred plans.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn auto_is_sound_and_never_predicted_worse_than_none_label_and_whole(
        graph in any_graph(),
        parallel in any::<bool>(),
        nodes in 0usize..3,
        sites in 1u32..3,
    ) {
        let nodes = (0..nodes).map(|node| Node {
            kind: Default::default(),
            folder: None,
            name: node.to_string(),
            capacity: Capacity { milli_cpus: 2000, memory: Bytes(1000), disk: Bytes(0), gpus: Vec::new(), ..Capacity::default() },
        });
        let catalogue = Catalogue {
            sites: vec![Site::new("far", nodes.collect()), Site::new("near", Vec::new())],
            ..Catalogue::default()
        };
        let mut graph = graph;
        for (at, task) in graph.tasks.iter_mut().enumerate() {
            task.site = Some(if (at as u32).is_multiple_of(sites) { "far" } else { "near" }.into());
        }
        let predict = |clustering: Clustering| {
            let options = Options { clustering: vec![clustering], parallel_clusters: parallel, ..Options::default() };
            let layout = plan(&graph, &catalogue, &options, &[]).expect("a plan");
            (estimate(&graph, &layout, &catalogue, &options), layout)
        };
        let (auto, layout) = predict(Clustering::Auto);
        for other in [Clustering::Horizontal(size(1)), Clustering::Label, Clustering::Whole] {
            let other = predict(other).0;
            prop_assert!(auto.makespan <= other.makespan);
            prop_assert_eq!((auto.impossible, other.impossible), (0, 0));
        }
        for job in layout.ids() {
            let tasks = layout.tasks_of(job);
            prop_assert!(tasks.len() < 2 || tasks.iter().all(|task| graph.tasks[task.index()].alone.is_none()));
            prop_assert!(tasks.iter().all(|task| graph.tasks[task.index()].site == graph.tasks[tasks[0].index()].site));
        }
    }
}

/// Eight tasks that read the same gigabyte, and one that reads what they write.
fn sharing(seconds: f64) -> Abstract {
    let mut builder = Builder::new("sharing");
    let kinds = ["cut", "glue"].map(|kind| builder.kind(kind));
    let file = |builder: &mut Builder, size| {
        let file = builder.file(super::super::File { size, ..Default::default() });
        builder.group([file])
    };
    let shared = file(&mut builder, 1_000_000_000);
    let end = builder.task(Task { name: "end".into(), kind: kinds[1], runtime: Some(1.0), ..Task::default() });
    for at in 0..8 {
        let name = format!("cut{at}").into();
        let task = builder.task(Task { name, kind: kinds[0], runtime: Some(seconds), ..Task::default() });
        let made = file(&mut builder, 10_000_000);
        builder.reads(task, shared);
        builder.writes(task, made);
        builder.reads(end, made);
    }
    builder.finish().expect("no circle")
}

fn auto_at_a_far_site(graph: &Abstract) -> (Vec<usize>, Vec<Decision>) {
    let capacity =
        Capacity { milli_cpus: 4000, memory: Bytes(1000), disk: Bytes(0), gpus: Vec::new(), ..Capacity::default() };
    let nodes = vec![Node::new("1".into(), capacity.clone()), Node::new("2".into(), capacity)];
    let catalogue = Catalogue { sites: vec![Site::new("far", nodes)], ..Catalogue::default() };
    let options = Options { clustering: vec![Clustering::Auto], ..Options::default() };
    let layout = plan(graph, &catalogue, &options, &[]).expect("a plan");
    let mut sizes: Vec<usize> = layout.ids().map(|job| layout.tasks_of(job).len()).filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    let decisions = layout.decisions.into_iter().filter(|decision| decision.pass == Pass::Cluster).collect();
    (sizes, decisions)
}

#[test]
fn auto_puts_short_tasks_together_that_read_the_same() {
    // A gigabyte takes 8 s; the tasks take no time: all in one job.
    assert_eq!(auto_at_a_far_site(&sharing(0.1)).0, [9]);
}

#[test]
fn auto_leaves_long_tasks_their_parallelism_and_says_what_it_weighed() {
    // 8 × 8 s on the link, 1000 s of work each: two together would save 8 s and cost 1000.
    let (sizes, decisions) = auto_at_a_far_site(&sharing(1000.0));
    assert!(sizes.iter().all(|size| *size <= 2), "at most the last one with `end`: {sizes:?}");
    let about = |name: &str| decisions.iter().find(|decision| decision.about == name).expect("said");
    assert!(about("auto: whole").what.starts_with("8,0"), "{}", about("auto: whole").what);
    assert!(about("auto").why.contains("than every task by itself"), "{}", about("auto").why);
}
