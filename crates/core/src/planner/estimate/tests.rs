//! Predictions that can be computed by hand, and bounds that hold for all.

use super::super::abstraction::{Abstract, Builder, File, Lists, Task, TaskId};
use super::super::layout::{Job, JobId, JobKind, Layout, SiteId, Traffic};
use super::super::options::Options;
use super::{Costs, Estimate, Protocol, estimate, estimate_with};
use crate::catalogue::{Catalogue, Link};
use crate::resources::{Capacity, Gpu};
use crate::site::{Node, Site};
use crate::units::Bytes;
use proptest::prelude::*;
use std::time::Duration;

const FAR: SiteId = SiteId(1);

/// `far` with these nodes, 100 bytes a second and 1 s a file away.
fn catalogue(nodes: &[(u32, u32)]) -> Catalogue {
    let node = |(at, (cpus, gpus)): (usize, &(u32, u32))| Node {
        kind: Default::default(),
        folder: None,
        name: at.to_string(),
        capacity: Capacity {
            milli_cpus: cpus * 1000,
            memory: Bytes(100),
            disk: Bytes(0),
            gpus: (0..*gpus).map(|id| Gpu { id: id.to_string(), memory: Bytes(0), capability: 0 }).collect(),
            ..Capacity::default()
        },
    };
    let site = Site::new("far", nodes.iter().enumerate().map(node).collect());
    let link = |to: &str| Link {
        from: "local".to_owned(),
        to: to.to_owned(),
        bandwidth: Bytes(100),
        latency: Duration::from_secs(1),
    };
    Catalogue { sites: vec![site], links: vec![link("far"), link("local")], ..Catalogue::default() }
}

/// A workflow and a layout in the making.
struct Bench {
    builder: Builder,
    jobs: Vec<Job>,
    tasks: Vec<TaskId>,
    parents: Vec<(u32, JobId)>,
}

fn traffic(files: u64, bytes: u64) -> Traffic {
    Traffic { files, bytes }
}

impl Bench {
    fn new() -> Self {
        Self { builder: Builder::new("bench"), jobs: Vec::new(), tasks: Vec::new(), parents: Vec::new() }
    }

    /// A compute job of tasks with these run times and CPUs, at `far`.
    fn compute(&mut self, tasks: &[(f64, u32)], inward: Traffic, outward: Traffic, parents: &[JobId]) -> JobId {
        let task =
            |(runtime, cpus): &(f64, u32)| Task { runtime: Some(*runtime), milli_cpus: cpus * 1000, ..Task::default() };
        self.compute_of(tasks.iter().map(task).collect(), inward, outward, parents)
    }

    fn compute_of(&mut self, tasks: Vec<Task>, inward: Traffic, outward: Traffic, parents: &[JobId]) -> JobId {
        let first = self.tasks.len() as u32;
        for task in tasks {
            self.tasks.push(self.builder.task(task));
        }
        let mut job = Job::new(JobKind::Compute, FAR, SiteId::LOCAL, 0, 0);
        (job.tasks, job.inward, job.outward) = (first..self.tasks.len() as u32, inward, outward);
        self.add(job, parents)
    }

    fn add(&mut self, job: Job, parents: &[JobId]) -> JobId {
        let id = JobId(self.jobs.len() as u32);
        self.jobs.push(job);
        self.parents.extend(parents.iter().map(|parent| (id.0, *parent)));
        id
    }

    fn finish(self) -> (Abstract, Layout) {
        let graph = self.builder.finish().expect("no circle");
        let layout = Layout {
            sites: vec!["local".to_owned(), "far".to_owned()],
            parents: Lists::from_sorted(self.jobs.len(), self.parents),
            jobs: self.jobs,
            tasks: self.tasks,
            files: Vec::new(),
            job_of: Vec::new(),
            cluster_names: Default::default(),
            decisions: Vec::new(),
        };
        (graph, layout)
    }

    fn predict(self, nodes: &[(u32, u32)], change: impl Fn(&mut Options)) -> Estimate {
        let (graph, layout) = self.finish();
        let mut options = Options { threads: 1, ..Options::default() };
        change(&mut options);
        estimate(&graph, &layout, &catalogue(nodes), &options)
    }
}

const NOTHING: Traffic = Traffic { files: 0, bytes: 0 };

#[test]
fn a_job_waits_for_its_files_runs_and_sends_its_files() {
    let mut bench = Bench::new();
    bench.compute(&[(10.0, 1)], traffic(2, 300), traffic(1, 100), &[]);
    let estimate = bench.predict(&[(1, 0)], |_| {});
    // In: 3 s of bytes and 2 s of round trips; out: 1 s and 1 s.
    assert_eq!((estimate.makespan, estimate.compute), (17.0, 10.0));
    assert_eq!((estimate.fetching, estimate.sending), (5.0, 2.0));
    assert_eq!((estimate.bytes_moved, estimate.files_moved), (400, 3));
    assert_eq!(estimate.utilisation, Some(10.0 / 17.0));
    assert_eq!(estimate.busy[&JobKind::Compute], 17.0);
}

/// Two round trips to fetch a file and three to send one; ten bytes at first under way, forty at most.
fn one_by_one() -> Costs {
    let protocol = Protocol { fetch: 2.0, send: 3.0, read: 1.0, write: 1.0, first_window: 10.0, window: 40.0 };
    Costs { protocol: Some(protocol), ..Costs::default() }
}

#[test]
fn files_that_are_fetched_one_by_one_cost_round_trips_and_large_ones_wait_for_the_window() {
    let taken = |inward: Traffic, outward: Traffic| {
        let mut bench = Bench::new();
        bench.compute(&[(0.0, 1)], inward, outward, &[]);
        let (graph, layout) = bench.finish();
        let options = Options { threads: 4, ..Options::default() };
        let estimate = estimate_with(&graph, &layout, &catalogue(&[(1, 0)]), &options, &one_by_one());
        (estimate.fetching, estimate.sending)
    };
    assert_eq!(taken(traffic(8, 80), NOTHING), (2.0 * 2.0, 0.0), "two for each of four threads");
    assert_eq!(taken(traffic(1, 30), NOTHING), (3.0, 0.0), "ten bytes come at once, twenty a round trip later");
    assert_eq!(taken(traffic(1, 150), NOTHING), (6.0, 0.0), "10, 20, 40, and 80 more in two windows");
    assert_eq!(taken(NOTHING, traffic(1, 80)), (0.0, 4.0), "one connection for all: the window is open");
    assert_eq!(taken(traffic(100, 1000), NOTHING).0, 50.0, "25 a thread");
    assert_eq!(taken(traffic(100_000, 10_000_000), NOTHING).0, 25_000.0 * 4.75, "and 10, 20, 40 and 30 of 100 bytes");
}

#[test]
fn an_image_comes_before_the_files() {
    let mut bench = Bench::new();
    let image = bench.builder.image("tools.sif", 40);
    let task = Task { runtime: Some(1.0), milli_cpus: 1000, image: Some(image), ..Task::default() };
    bench.tasks.push(bench.builder.task(task));
    let mut job = Job::new(JobKind::Compute, FAR, SiteId::LOCAL, 0, 0);
    (job.tasks, job.inward, job.image_bytes) = (0..1, traffic(5, 80), 40);
    bench.add(job, &[]);
    let (graph, layout) = bench.finish();
    let options = Options { threads: 4, ..Options::default() };
    let predicted = estimate_with(&graph, &layout, &catalogue(&[(1, 0)]), &options, &one_by_one());
    // 10, 20 and then 10 of 40 bytes; after that four files of ten bytes at once.
    assert_eq!(predicted.fetching, 4.0 + 2.0);
}

#[test]
fn threads_share_the_round_trips_but_not_the_bytes() {
    let mut bench = Bench::new();
    bench.compute(&[(0.0, 1)], traffic(8, 800), NOTHING, &[]);
    assert_eq!(bench.predict(&[], |options| options.threads = 4).makespan, 8.0 + 8.0 / 4.0);
}

#[test]
fn jobs_share_a_link_one_after_another() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.compute(&[(1.0, 1)], traffic(1, 500), NOTHING, &[]);
    }
    let estimate = bench.predict(&[], |_| {});
    assert_eq!(estimate.makespan, 15.0 + 1.0 + 1.0, "5 s each on the link, then the last round trip, then it runs");
    assert_eq!(estimate.fetching, 6.0 + 11.0 + 16.0);
    assert_eq!(estimate.utilisation, None);
}

#[test]
fn the_longest_way_starts_first_where_there_is_room_for_one() {
    let mut bench = Bench::new();
    bench.compute(&[(1.0, 1)], NOTHING, NOTHING, &[]);
    let first = bench.compute(&[(2.0, 1)], NOTHING, NOTHING, &[]);
    let last = bench.compute(&[(5.0, 1)], NOTHING, NOTHING, &[first]);
    let estimate = bench.predict(&[(1, 0)], |_| {});
    assert_eq!((estimate.makespan, estimate.utilisation), (8.0, Some(1.0)));
    assert_eq!(estimate.critical_path, [first, last, JobId(0)], "the short one waits for the node");
}

#[test]
fn a_small_job_goes_beside_one_that_waits_for_more() {
    let mut bench = Bench::new();
    bench.compute(&[(10.0, 3)], NOTHING, NOTHING, &[]);
    bench.compute(&[(9.0, 2)], NOTHING, NOTHING, &[]);
    bench.compute(&[(8.0, 1)], NOTHING, NOTHING, &[]);
    assert_eq!(bench.predict(&[(4, 0)], |_| {}).makespan, 19.0);
}

#[test]
fn tasks_share_devices_as_far_as_their_shares_go() {
    let makespan = |gpus: u32, gpu_share: u32, count: u32| {
        let mut bench = Bench::new();
        for _ in 0..count {
            let task = Task { runtime: Some(100.0), gpus, gpu_share, milli_cpus: 100, ..Task::default() };
            bench.compute_of(vec![task], NOTHING, NOTHING, &[]);
        }
        let estimate = bench.predict(&[(8, 1), (8, 1)], |_| {});
        (estimate.makespan, estimate.gpu_utilisation)
    };
    assert_eq!(makespan(1, 250, 8), (100.0, Some(1.0)), "four on each device");
    assert_eq!(makespan(1, 250, 9).0, 200.0);
    assert_eq!(makespan(1, 600, 3).0, 200.0, "two of 0.6 do not fit on one device");
    assert_eq!(makespan(1, 0, 8), (400.0, Some(1.0)), "a device each");
}

#[test]
fn a_gang_holds_all_its_nodes_at_once() {
    let makespan = |nodes: &[u32]| {
        let mut bench = Bench::new();
        for nodes in nodes {
            let task = Task { runtime: Some(10.0), milli_cpus: 1000, nodes: *nodes, ..Task::default() };
            bench.compute_of(vec![task], NOTHING, NOTHING, &[]);
        }
        let estimate = bench.predict(&[(1, 0), (1, 0)], |_| {});
        (estimate.makespan, estimate.utilisation, estimate.impossible)
    };
    assert_eq!(makespan(&[2]), (10.0, Some(1.0), 0));
    assert_eq!(makespan(&[2, 2]), (20.0, Some(1.0), 0));
    assert_eq!(makespan(&[1, 1, 2]), (20.0, Some(1.0), 0));
    assert_eq!(makespan(&[3]).2, 1, "there are only two");
}

#[test]
fn a_job_that_no_node_can_take_is_counted_and_does_not_stop_the_others() {
    let mut bench = Bench::new();
    bench.compute(&[(10.0, 8)], NOTHING, NOTHING, &[]);
    bench.compute(&[(5.0, 1)], NOTHING, NOTHING, &[]);
    let estimate = bench.predict(&[(4, 0), (4, 1)], |_| {});
    assert_eq!((estimate.impossible, estimate.makespan), (1, 10.0));
}

#[test]
fn a_cluster_runs_its_tasks_in_order_or_beside_each_other() {
    let tasks = [(4.0, 1), (3.0, 1), (2.0, 1)];
    let predict = |nodes: &[(u32, u32)], parallel: bool| {
        let mut bench = Bench::new();
        bench.compute(&tasks, NOTHING, NOTHING, &[]);
        bench.predict(nodes, |options| options.parallel_clusters = parallel).makespan
    };
    assert_eq!(predict(&[(8, 0)], false), 9.0);
    assert_eq!(predict(&[(8, 0)], true), 4.0);
    assert_eq!(predict(&[(2, 0)], true), 5.0, "4 beside 3 then 2");
}

#[test]
fn transfers_beside_the_driver_are_ten_at_once_and_share_the_link() {
    let mut bench = Bench::new();
    for _ in 0..11 {
        let mut job = Job::new(JobKind::StageIn, SiteId::LOCAL, FAR, 0, 0);
        job.inward = traffic(10, 100);
        bench.add(job, &[]);
    }
    // The bytes of ten follow each other, 1 s each, then 10 s of round trips: the first is done after 11 s, and only
    // then the last begins.
    assert_eq!(bench.predict(&[], |_| {}).makespan, 11.0 + 1.0 + 10.0);
}

#[test]
fn other_jobs_cost_what_is_assumed_and_registrations_follow_each_other() {
    let mut bench = Bench::new();
    let made = bench.add(Job::new(JobKind::CreateDirectory, SiteId::LOCAL, FAR, 0, 0), &[]);
    for _ in 0..3 {
        bench.add(Job::new(JobKind::Register, SiteId::LOCAL, FAR, 0, 0), &[made]);
    }
    let (graph, layout) = bench.finish();
    let costs = Costs { create_directory: 2.0, register: 3.0, job: 0.5, ..Costs::default() };
    let estimate = estimate_with(&graph, &layout, &catalogue(&[]), &Options::default(), &costs);
    assert_eq!(estimate.makespan, 2.5 + 3.0 * 3.5);
}

#[test]
fn files_that_lie_at_the_staging_site_are_linked_and_others_come_from_where_they_are() {
    let mut bench = Bench::new();
    let here = bench.builder.location(vec!["elsewhere".into(), "far".into()]);
    let (one, two) = (File { size: 500, at: here, ..File::default() }, File { size: 300, ..File::default() });
    let files = vec![bench.builder.file(one), bench.builder.file(two)];
    let mut job = Job::new(JobKind::StageIn, FAR, FAR, 0, 0);
    (job.links, job.inward, job.files) = (true, traffic(2, 300), 0..2);
    bench.add(job, &[]);
    let (graph, mut layout) = bench.finish();
    layout.files = files;
    let estimate = estimate(&graph, &layout, &catalogue(&[]), &Options { threads: 1, ..Options::default() });
    assert_eq!(estimate.makespan, 3.0 + 1.0, "the bytes and the round trip of one; a link takes no time beside that");
}

#[test]
fn on_a_shared_file_system_programs_read_and_write_file_by_file() {
    let mut bench = Bench::new();
    let file = |builder: &mut Builder, size| builder.file(File { size, ..File::default() });
    let (one, two) = (file(&mut bench.builder, 100), file(&mut bench.builder, 200));
    let (read, written) = (bench.builder.group([one, two]), bench.builder.group([]));
    bench.compute(&[(5.0, 1)], traffic(2, 0), NOTHING, &[]);
    bench.jobs[0].links = true;
    bench.jobs[0].staging = FAR;
    bench.builder.reads(TaskId(0), read);
    bench.builder.writes(TaskId(0), written);
    let (graph, layout) = bench.finish();
    let mut catalogue = catalogue(&[]);
    catalogue.links.push(Link {
        from: "far".into(),
        to: "far".into(),
        bandwidth: Bytes(10),
        latency: Duration::from_secs(2),
    });
    let estimate = estimate(&graph, &layout, &catalogue, &Options { threads: 8, ..Options::default() });
    assert_eq!((estimate.makespan, estimate.bytes_moved), (30.0 + 4.0 + 5.0, 0), "threads do not help a program");
}

#[test]
fn a_hundred_thousand_jobs_on_a_thousand_nodes_take_their_share() {
    let mut bench = Bench::new();
    for _ in 0..100_000 {
        bench.compute(&[(3.0, 1)], NOTHING, NOTHING, &[]);
    }
    let estimate = bench.predict(&vec![(10, 0); 1000], |_| {});
    assert_eq!((estimate.makespan, estimate.utilisation), (30.0, Some(1.0)));
}

proptest! {
    #[test]
    fn no_prediction_beats_the_longest_way_or_the_work_and_none_idles(
        jobs in prop::collection::vec((0u32..50, 1u32..4, 0u64..4, 0u64..900, prop::collection::vec(0u32..40, 0..3)), 1..40),
        nodes in prop::collection::vec(3u32..9, 1..4),
    ) {
        let mut bench = Bench::new();
        for (at, (seconds, cpus, files, bytes, parents)) in jobs.iter().enumerate() {
            let mut parents: Vec<JobId> = parents.iter().filter(|parent| (**parent as usize) < at).map(|it| JobId(*it)).collect();
            parents.sort_unstable();
            parents.dedup();
            bench.compute(&[(f64::from(*seconds), *cpus)], traffic(*files, *bytes), traffic(*files, *bytes), &parents);
        }
        let (graph, layout) = bench.finish();
        let nodes: Vec<(u32, u32)> = nodes.into_iter().map(|cpus| (cpus, 0)).collect();
        let estimate = estimate(&graph, &layout, &catalogue(&nodes), &Options { threads: 1, ..Options::default() });
        let undisturbed = |at: usize| {
            let (seconds, _, files, bytes, _) = &jobs[at];
            f64::from(*seconds) + 2.0 * (*files as f64 + *bytes as f64 / 100.0)
        };
        let mut ends = vec![0.0f64; jobs.len()];
        for job in layout.ids() {
            let start = layout.parents(job).iter().map(|parent| ends[parent.index()]).fold(0.0, f64::max);
            ends[job.index()] = start + undisturbed(job.index());
        }
        let longest = ends.iter().copied().fold(0.0, f64::max);
        let work: f64 = (0..jobs.len()).map(|at| f64::from(jobs[at].1) * undisturbed(at)).sum();
        let cpus: f64 = nodes.iter().map(|node| f64::from(node.0)).sum();
        let bytes: f64 = jobs.iter().map(|job| 2.0 * job.3 as f64 / 100.0).sum();
        let all: f64 = (0..jobs.len()).map(undisturbed).sum();
        let least = longest.max(work / cpus).max(bytes);
        prop_assert!(estimate.makespan >= least - 1e-6, "{} s, though it takes {least} s", estimate.makespan);
        prop_assert!(estimate.makespan <= all + 1e-6, "{} s, though one after another takes {all} s", estimate.makespan);
        let path = &estimate.critical_path;
        prop_assert!(!path.is_empty());
    }
}

#[test]
fn nothing_to_do_takes_no_time() {
    let (graph, layout) = Bench::new().finish();
    assert_eq!(estimate(&graph, &layout, &Catalogue::default(), &Options::default()), Estimate::default());
}
