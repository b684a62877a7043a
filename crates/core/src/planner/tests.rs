//! The passes on small literal workflows: how many jobs of which kind, with which names, files and order.

use super::place::place;
use super::*;
use crate::catalogue::{DataConfiguration, FileServer, ImageTransfer, Operation, Store};
use crate::resources::{Capacity, Gpu};
use crate::site::{Node, Site};
use crate::units::Bytes;

fn input(name: &str, size: u64) -> File {
    File { name: name.into(), size, ..File::default() }
}

fn result(name: &str, size: u64) -> File {
    File { stage_out: true, register: true, ..input(name, size) }
}

fn task(name: &str) -> Task {
    Task { name: name.into(), ..Task::default() }
}

fn one(builder: &mut Builder, file: File) -> GroupId {
    let file = builder.file(file);
    builder.group([file])
}

fn site(name: &str, nodes: usize, cpus: u32, gpus: usize) -> Site {
    let gpu = Gpu { id: "0".into(), memory: Bytes(16 << 30), capability: 80 };
    let capacity = Capacity {
        milli_cpus: cpus * 1000,
        memory: Bytes(64 << 30),
        disk: Bytes(1 << 40),
        gpus: vec![gpu; gpus],
        ..Capacity::default()
    };
    let node = |number| Node::new(format!("{name}-{number}"), capacity.clone());
    Site::new(name, (0..nodes).map(node).collect())
}

fn catalogue(sites: Vec<Site>) -> Catalogue {
    Catalogue { sites, ..Catalogue::default() }
}

/// On `local`, with nothing removed but the directory at the end.
fn leaf() -> Options {
    Options { cleanup: Cleanup::Leaf, ..Options::default() }
}

fn planned(graph: &Abstract, catalogue: &Catalogue, options: &Options) -> Layout {
    plan(graph, catalogue, options, &[]).expect("it can be planned")
}

fn names(graph: &Abstract, layout: &Layout) -> Vec<String> {
    layout.ids().map(|job| layout.name(graph, job)).collect()
}

fn counts(layout: &Layout) -> Vec<(&'static str, usize)> {
    let counted = JobKind::ALL.map(|kind| (kind.name(), layout.count(kind)));
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// `parent -> child` for every edge.
fn edges(graph: &Abstract, layout: &Layout) -> Vec<String> {
    let names = names(graph, layout);
    let line = |job: JobId| {
        let names = &names;
        let parents = layout.parents(job).to_vec();
        parents.into_iter().map(move |parent| format!("{} -> {}", names[parent.index()], names[job.index()]))
    };
    layout.ids().flat_map(line).collect()
}

fn job(graph: &Abstract, layout: &Layout, name: &str) -> Job {
    let found = layout.ids().find(|job| layout.name(graph, *job) == name);
    layout.job(found.unwrap_or_else(|| panic!("no job {name} among {:?}", names(graph, layout)))).clone()
}

fn traffic(files: u64, bytes: u64) -> Traffic {
    Traffic { files, bytes }
}

#[test]
fn one_task_with_a_result_becomes_five_jobs() {
    let mut builder = Builder::new("process");
    let ls = builder.task(task("ls_ID0000001"));
    let listing = one(&mut builder, result("listing.txt", 10));
    builder.writes(ls, listing);
    let graph = builder.finish().unwrap();
    let layout = planned(&graph, &Catalogue::default(), &leaf());
    assert_eq!(
        edges(&graph, &layout),
        [
            "create_dir_process_0_local -> ls_ID0000001",
            "ls_ID0000001 -> stage_out_local_local_0_0",
            "stage_out_local_local_0_0 -> register_local_0_0",
            "register_local_0_0 -> cleanup_process_0_local",
        ]
    );
    assert_eq!(job(&graph, &layout, "ls_ID0000001").outward, traffic(1, 10));
}

#[test]
fn one_task_with_an_input_cleaned_in_place_becomes_eight_jobs() {
    let mut builder = Builder::new("held");
    let only = builder.task(task("only"));
    let read = one(&mut builder, input("f.in", 7));
    let written = one(&mut builder, result("f.out", 3));
    builder.reads(only, read);
    builder.writes(only, written);
    let graph = builder.finish().unwrap();
    let layout = planned(&graph, &Catalogue::default(), &Options::default());
    assert_eq!(layout.jobs.len(), 8);
    assert_eq!(
        edges(&graph, &layout),
        [
            "stage_in_local_local_0_0 -> only",
            "create_dir_held_0_local -> stage_in_local_local_0_0",
            "only -> stage_out_local_local_0_0",
            "stage_out_local_local_0_0 -> register_local_0_0",
            "only -> clean_up_local_level_2_0",
            "stage_out_local_local_0_0 -> clean_up_local_level_3_0",
            "register_local_0_0 -> cleanup_held_0_local",
            "clean_up_local_level_2_0 -> cleanup_held_0_local",
            "clean_up_local_level_3_0 -> cleanup_held_0_local",
        ]
    );
    assert_eq!(job(&graph, &layout, "clean_up_local_level_2_0").holds, 7);
    assert_eq!(layout.peak(), [(SiteId::LOCAL, 10)]);
}

/// Levels of twenty, two and three single jobs, each reading a file of its own and something of the level above, and
/// writing a result; as the galaxy workflow of the fixtures.
fn galaxy() -> Abstract {
    let mut builder = Builder::new("galaxy");
    let mut above: Vec<GroupId> = Vec::new();
    for (level, count) in [20, 2, 1, 1, 1].into_iter().enumerate() {
        let mut made = Vec::new();
        for number in 0..count {
            let task = builder.task(task(&format!("t{level}-{number}")));
            let own = one(&mut builder, input(&format!("in-{level}-{number}"), 100));
            builder.reads(task, own);
            above.iter().for_each(|group| builder.reads(task, *group));
            let out = one(&mut builder, result(&format!("out-{level}-{number}"), 10));
            builder.writes(task, out);
            made.push(out);
        }
        above = made;
    }
    builder.finish().unwrap()
}

#[test]
fn a_level_has_one_transfer_job_for_ten_compute_jobs() {
    let layout = planned(&galaxy(), &Catalogue::default(), &Options::default());
    let per_level = |kind| {
        let levels = layout.jobs.iter().filter(|job| job.kind == kind).map(|job| job.level);
        let mut counts = vec![0; 5];
        levels.for_each(|level| counts[level as usize] += 1);
        counts
    };
    assert_eq!(per_level(JobKind::StageIn), [2, 1, 1, 1, 1]);
    assert_eq!(per_level(JobKind::StageOut), [2, 1, 1, 1, 1]);
    assert_eq!(layout.count(JobKind::Register), 6);
    assert_eq!(layout.count(JobKind::CreateDirectory), 1);
    assert_eq!(layout.count(JobKind::LeafCleanup), 1);
    let said: Vec<String> =
        layout.decisions.iter().map(|line| format!("{}: {} — {}", line.about, line.what, line.why)).collect();
    let line = "stage-in, level 0, local: 2 jobs for 20 compute jobs; 20 files, 2 kB — one for ten, Pegasus' rule";
    assert!(said.iter().any(|said| said == line), "{said:#?}");
}

#[test]
fn a_number_of_transfer_jobs_can_be_asked_for() {
    let options = Options { stage_in_jobs: Some(7), stage_out_jobs: Some(1), ..Options::default() };
    let layout = planned(&galaxy(), &Catalogue::default(), &options);
    // One file of its own for each job of the later levels: no more jobs than files.
    assert_eq!(layout.count(JobKind::StageIn), 7 + 2 + 1 + 1 + 1);
    assert_eq!(layout.count(JobKind::StageOut), 5);
}

#[test]
fn files_are_handed_out_in_turn_and_brought_once() {
    let mut builder = Builder::new("w");
    let shared: Vec<FileId> = (0..5).map(|number| builder.file(input(&format!("s{number}"), 1))).collect();
    let shared = builder.group(shared);
    let tasks: Vec<TaskId> = (0..11).map(|number| builder.task(task(&format!("t{number}")))).collect();
    tasks.iter().for_each(|task| builder.reads(*task, shared));
    let late = builder.task(task("late"));
    builder.after(late, tasks[0]);
    builder.reads(late, shared);
    let graph = builder.finish().unwrap();
    let layout = planned(&graph, &Catalogue::default(), &leaf());
    assert_eq!(job(&graph, &layout, "stage_in_local_local_0_0").inward, traffic(3, 3));
    assert_eq!(job(&graph, &layout, "stage_in_local_local_0_1").inward, traffic(2, 2));
    assert_eq!(layout.count(JobKind::StageIn), 2);
    let edges = edges(&graph, &layout);
    for edge in ["stage_in_local_local_0_0 -> late", "stage_in_local_local_0_1 -> late", "t0 -> late"] {
        assert!(edges.iter().any(|known| known == edge), "{edge} in {edges:#?}");
    }
    assert_eq!(layout.staged_in(), traffic(60, 60));
}

#[test]
fn files_in_two_groups_are_counted_and_brought_once() {
    let mut builder = Builder::new("w");
    let files: Vec<FileId> = (0..3).map(|number| builder.file(input(&format!("f{number}"), 1))).collect();
    let (low, high) = (builder.group(files[..2].to_vec()), builder.group(files[1..].to_vec()));
    let (a, b) = (builder.task(task("a")), builder.task(task("b")));
    builder.reads(a, low);
    builder.reads(a, high);
    builder.reads(b, high);
    let graph = builder.finish().unwrap();
    let layout = planned(&graph, &Catalogue::default(), &Options::default());
    assert_eq!(job(&graph, &layout, "a").inward, traffic(3, 3));
    assert_eq!(job(&graph, &layout, "stage_in_local_local_0_0").inward, traffic(3, 3));
    let removed: u64 = layout.jobs.iter().filter(|job| job.kind == JobKind::Cleanup).map(|job| job.inward.files).sum();
    assert_eq!(removed, 3);
}

/// a -> b -> c by files; `x` is read by all, only `out` is kept.
fn pipeline() -> Abstract {
    let mut builder = Builder::new("pipeline");
    let shared = one(&mut builder, input("x", 1000));
    let (a, b, c) = (builder.task(task("a")), builder.task(task("b")), builder.task(task("c")));
    let (ab, bc) = (one(&mut builder, input("ab", 100)), one(&mut builder, input("bc", 10)));
    let out = one(&mut builder, result("out", 1));
    for (task, group) in [(a, shared), (b, shared), (c, shared), (b, ab), (c, bc)] {
        builder.reads(task, group);
    }
    for (task, group) in [(a, ab), (b, bc), (c, out)] {
        builder.writes(task, group);
    }
    builder.finish().unwrap()
}

#[test]
fn what_only_a_cluster_needs_stays_in_it() {
    let graph = pipeline();
    let options = leaf();
    let catalogue = Catalogue::default();
    let placement = place(&graph, &catalogue, &options, &[], &mut Vec::new()).unwrap();
    let partition = Partition::new(&graph, &[Some(0), Some(0), None], |_| "merge_ab".to_owned());
    let layout = lay_out(&graph, &placement, &partition, &catalogue, &options, &[]);
    let merged = job(&graph, &layout, "merge_ab");
    assert_eq!((merged.inward, merged.outward), (traffic(1, 1000), traffic(1, 10)));
    let alone = job(&graph, &layout, "c");
    assert_eq!((alone.inward, alone.outward, alone.level), (traffic(2, 1010), traffic(1, 1), 1));
    assert_eq!(layout.tasks_of(JobId(0)), [TaskId(0), TaskId(1)]);
}

#[test]
fn a_task_that_is_done_has_no_job_and_its_files_come_from_local() {
    let graph = pipeline();
    let layout = plan(&graph, &Catalogue::default(), &leaf(), &[true, false, false]).unwrap();
    assert_eq!(layout.job_of[0], None);
    assert_eq!(job(&graph, &layout, "stage_in_local_local_0_0").inward, traffic(2, 1100));
    assert_eq!(layout.decisions[0].what, "1 of 3 tasks need no job");
}

#[test]
fn what_only_done_tasks_need_is_left_out_too() {
    let graph = pipeline();
    let mut decisions = Vec::new();
    assert_eq!(reduce(&graph, &[false, true, false], &mut decisions), [true, true, false]);
    assert_eq!(decisions.len(), 1);
    assert_eq!(reduce(&graph, &[false, false, true], &mut Vec::new()), [true, true, true]);
    assert_eq!(reduce(&graph, &[true, false, false], &mut Vec::new()), [true, false, false]);
}

#[test]
fn a_result_that_shall_be_kept_keeps_its_task() {
    let mut builder = Builder::new("w");
    let (a, b) = (builder.task(task("a")), builder.task(task("b")));
    let made = one(&mut builder, result("model", 1));
    builder.writes(a, made);
    builder.reads(b, made);
    let graph = builder.finish().unwrap();
    assert_eq!(reduce(&graph, &[false, true], &mut Vec::new()), [false, true]);
}

#[test]
fn results_that_exist_here_but_belong_elsewhere_are_taken_there() {
    let graph = pipeline();
    let options = Options { output_site: Some("archive".into()), ..leaf() };
    let catalogue = catalogue(vec![site("local", 1, 8, 0), site("archive", 1, 8, 0)]);
    let layout = plan(&graph, &catalogue, &options, &[true; 3]).unwrap();
    assert_eq!(counts(&layout), [("stage-out", 1), ("registration", 1)]);
}

#[test]
fn without_a_place_for_results_their_directory_stays() {
    let options = Options { output_site: None, ..Options::default() };
    let layout = planned(&pipeline(), &Catalogue::default(), &options);
    assert_eq!(layout.count(JobKind::StageOut) + layout.count(JobKind::LeafCleanup), 0);
    let removed = layout.ids().filter(|job| layout.job(*job).kind == JobKind::Cleanup);
    assert!(removed.flat_map(|job| layout.files_of(job).to_vec()).all(|file| file != FileId(3)), "`out` is removed");
}

fn with_image() -> Abstract {
    let mut builder = Builder::new("boxes");
    let image = builder.image("galaxy.sif", 500);
    for number in 0..3 {
        let task = builder.task(Task { image: Some(image), ..task(&format!("t{number}")) });
        let own = one(&mut builder, input(&format!("f{number}"), 1));
        builder.reads(task, own);
    }
    builder.finish().unwrap()
}

#[test]
fn images_come_with_every_job_once_a_node_or_not_at_all() {
    let graph = with_image();
    let cluster = catalogue(vec![site("cluster", 2, 8, 0)]);
    let staged = |images, bypass| {
        let layout = planned(&graph, &cluster, &Options { images, bypass, ..leaf() });
        let bypassed: Traffic = layout.jobs.iter().map(|job| job.bypassed).sum();
        let brought: Traffic =
            layout.jobs.iter().filter(|job| job.kind == JobKind::StageIn).map(|job| job.inward).sum();
        (layout.staged_in(), bypassed, brought)
    };
    assert_eq!(staged(ImageTransfer::EveryJob, false), (traffic(6, 1503), traffic(0, 0), traffic(4, 503)));
    assert_eq!(staged(ImageTransfer::OnceANode, false), (traffic(5, 1003), traffic(0, 0), traffic(4, 503)));
    assert_eq!(staged(ImageTransfer::Installed, false), (traffic(3, 3), traffic(0, 0), traffic(3, 3)));
    assert_eq!(staged(ImageTransfer::EveryJob, true), (traffic(6, 1503), traffic(6, 1503), traffic(0, 0)));
    let mut listed = site("cluster", 2, 8, 0);
    listed.containers = vec!["galaxy.sif".into()];
    assert_eq!(planned(&graph, &catalogue(vec![listed]), &leaf()).staged_in(), traffic(3, 3));
}

#[test]
fn on_a_shared_file_system_inputs_are_links_and_programs_are_made_executable() {
    let mut builder = Builder::new("shared");
    let at = builder.location(vec!["hpc".into()]);
    let program = one(&mut builder, File { program: true, ..input("tool", 5) });
    let data = one(&mut builder, File { at, ..input("data", 1000) });
    let (a, b) = (builder.task(task("a")), builder.task(task("b")));
    for task in [a, b] {
        builder.reads(task, program);
        builder.reads(task, data);
    }
    let graph = builder.finish().unwrap();
    let options = Options { data: Some(DataConfiguration::SharedFs), ..leaf() };
    let layout = planned(&graph, &catalogue(vec![site("hpc", 4, 8, 0)]), &options);
    assert_eq!(
        edges(&graph, &layout),
        [
            "stage_in_local_hpc_0_0 -> a",
            "chmod_a_0 -> a",
            "stage_in_remote_hpc_0_0 -> a",
            "stage_in_local_hpc_0_0 -> b",
            "chmod_a_0 -> b",
            "stage_in_remote_hpc_0_0 -> b",
            "create_dir_shared_0_hpc -> stage_in_local_hpc_0_0",
            "stage_in_local_hpc_0_0 -> chmod_a_0",
            "create_dir_shared_0_hpc -> stage_in_remote_hpc_0_0",
            "a -> cleanup_shared_0_hpc",
            "b -> cleanup_shared_0_hpc",
        ]
    );
    let a = job(&graph, &layout, "a");
    assert_eq!((a.links, a.inward), (true, traffic(2, 0)));
    assert_eq!(job(&graph, &layout, "stage_in_local_hpc_0_0").inward, traffic(1, 5));
    assert_eq!(job(&graph, &layout, "stage_in_remote_hpc_0_0").inward, traffic(1, 0));
}

#[test]
fn between_two_staging_sites_files_go_by_a_job_of_their_own() {
    let mut builder = Builder::new("two");
    let make = builder.task(Task { site: Some("east".into()), ..task("make") });
    let group = one(&mut builder, input("model", 9));
    builder.writes(make, group);
    let uses: Vec<TaskId> = (0..2)
        .map(|number| builder.task(Task { site: Some("west".into()), ..task(&format!("use{number}")) }))
        .collect();
    uses.iter().for_each(|task| builder.reads(*task, group));
    let graph = builder.finish().unwrap();
    let servers = vec![FileServer { url: "http://head".into(), operation: Operation::All }];
    let scratch = Store { path: "/scratch".into(), shared: false, servers, space: None };
    let mut sites = vec![site("east", 1, 8, 0), site("west", 1, 8, 0)];
    sites.iter_mut().for_each(|site| site.scratch = Some(scratch.clone()));
    let options = Options { data: Some(DataConfiguration::NonSharedFs), ..Options::default() };
    let layout = planned(&graph, &catalogue(sites), &options);
    assert_eq!(
        edges(&graph, &layout),
        [
            "create_dir_two_0_east -> make",
            "make -> use0",
            "stage_inter_local_west_1_0 -> use0",
            "make -> use1",
            "stage_inter_local_west_1_0 -> use1",
            "make -> stage_inter_local_west_1_0",
            "create_dir_two_0_west -> stage_inter_local_west_1_0",
            "stage_inter_local_west_1_0 -> clean_up_east_level_2_0",
            "use0 -> clean_up_west_level_3_0",
            "use1 -> clean_up_west_level_3_0",
            "clean_up_east_level_2_0 -> cleanup_two_0_east",
            "clean_up_west_level_3_0 -> cleanup_two_0_east",
            "clean_up_east_level_2_0 -> cleanup_two_0_west",
            "clean_up_west_level_3_0 -> cleanup_two_0_west",
        ]
    );
}

fn chosen(graph: &Abstract, catalogue: &Catalogue, options: &Options) -> Vec<String> {
    let placement = place(graph, catalogue, options, &[], &mut Vec::new()).unwrap();
    graph.ids().map(|task| placement.place(placement.site_of(task)).name.clone()).collect()
}

#[test]
fn tasks_go_where_their_data_are_and_ties_to_the_lesser_load() {
    let mut builder = Builder::new("w");
    let at = builder.location(vec!["west".into()]);
    let data = one(&mut builder, File { at, ..input("data", 1000) });
    let near = builder.task(task("near"));
    builder.reads(near, data);
    let child_of_near = builder.task(task("child"));
    let made = one(&mut builder, input("made", 10));
    builder.writes(near, made);
    builder.reads(child_of_near, made);
    builder.task(task("free0"));
    builder.task(Task { gpus: 1, ..task("trains") });
    let graph = builder.finish().unwrap();
    let sites = catalogue(vec![site("east", 2, 8, 0), site("west", 1, 8, 1)]);
    let options = Options { sites: vec!["east".into(), "west".into()], ..Options::default() };
    assert_eq!(chosen(&graph, &sites, &options), ["west", "west", "east", "west"]);
    let by_load = Options { choice: SiteChoice::Load, ..options };
    // `near` goes to the first of two empty sites, `free0` to the other; east has twice the CPUs.
    assert_eq!(chosen(&graph, &sites, &by_load), ["east", "east", "west", "west"]);
}

#[test]
fn a_site_that_nothing_has_is_named_with_one_that_is_near() {
    let mut builder = Builder::new("w");
    builder.task(Task { site: Some("clutser".into()), ..task("t") });
    let graph = builder.finish().unwrap();
    let error = plan(&graph, &catalogue(vec![site("cluster", 1, 8, 0)]), &Options::default(), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the task `t` names the site `clutser`, which no catalogue has; did you mean `cluster`?"
    );
}

#[test]
fn a_task_that_fits_nowhere_is_named() {
    let mut builder = Builder::new("w");
    builder.task(Task { gpus: 2, memory: 1 << 30, ..task("train") });
    let graph = builder.finish().unwrap();
    let error = plan(&graph, &catalogue(vec![site("cluster", 1, 8, 1)]), &Options::default(), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no site has what the task `train` asks for: 1 CPUs, 2 GPUs, 1.1 GB of memory; considered: cluster. Ask for less, or let tasks go to a site that has more"
    );
}

#[test]
fn a_cluster_goes_where_most_of_its_run_time_was() {
    let mut builder = Builder::new("w");
    for (name, site, seconds) in [("a", "east", 5.0), ("b", "west", 9.0), ("c", "east", 1.0)] {
        builder.task(Task { site: Some(site.into()), runtime: Some(seconds), ..task(name) });
    }
    let graph = builder.finish().unwrap();
    let (options, sites) = (leaf(), catalogue(vec![site("east", 1, 8, 0), site("west", 1, 8, 0)]));
    let placement = place(&graph, &sites, &options, &[], &mut Vec::new()).unwrap();
    let partition = Partition::new(&graph, &[Some(0); 3], |_| "all".to_owned());
    let layout = lay_out(&graph, &placement, &partition, &sites, &options, &[]);
    assert_eq!(layout.site(layout.job(JobId(0)).site), "west");
}

/// Ten pipelines of two tasks; each reads 100 bytes and hands on 50.
fn pipelines() -> Abstract {
    let mut builder = Builder::new("pipelines");
    for number in 0..10 {
        let (first, second) = (builder.task(task(&format!("a{number}"))), builder.task(task(&format!("b{number}"))));
        let read = one(&mut builder, input(&format!("in{number}"), 100));
        let between = one(&mut builder, input(&format!("mid{number}"), 50));
        builder.reads(first, read);
        builder.writes(first, between);
        builder.reads(second, between);
    }
    builder.finish().unwrap()
}

#[test]
fn under_a_limit_of_space_jobs_wait_for_clean_ups() {
    let graph = pipelines();
    let within = |limit| {
        let options = Options { cleanup: Cleanup::Space(Bytes(limit)), stage_in_jobs: Some(10), ..Options::default() };
        let layout = planned(&graph, &Catalogue::default(), &options);
        (layout.peak(), layout.count(JobKind::Cleanup), layout.decisions[layout.decisions.len() - 2].clone())
    };
    let (peak, cleanups, said) = within(10_000);
    assert_eq!((peak, cleanups), (vec![(SiteId::LOCAL, 1500)], 0));
    assert_eq!(said.why, "all of it fits into 10 kB; fewer than Pegasus: none before the end");
    let (peak, cleanups, _) = within(400);
    assert!(peak[0].1 <= 400, "{peak:?}");
    assert_eq!(cleanups, 4);
    let (_, _, said) = within(120);
    assert!(said.why.starts_with("the limit of 120 B cannot be kept in this order: 30 B too much"), "{}", said.why);
}

/// `late` frees `x` without leaving anything itself, so nothing but the first clean-up can hold the second one back.
#[test]
fn a_clean_up_waits_for_the_one_before_it() {
    let mut builder = Builder::new("gates");
    let [first, makes, late, last] = ["first", "makes", "late", "last"].map(|name| builder.task(task(name)));
    let [x, big, made, more] =
        [("x", 10), ("big", 100), ("made", 50), ("more", 100)].map(|(name, size)| one(&mut builder, input(name, size)));
    for (task, group) in [(first, x), (first, big), (late, x), (last, made), (last, more)] {
        builder.reads(task, group);
    }
    builder.writes(makes, made);
    builder.after(last, late);
    let graph = builder.finish().unwrap();
    let options = Options { cleanup: Cleanup::Space(Bytes(155)), ..Options::default() };
    let layout = planned(&graph, &Catalogue::default(), &options);
    let edges = edges(&graph, &layout);
    let of_gates: Vec<&String> = edges.iter().filter(|edge| edge.contains("clean_up")).collect();
    assert_eq!(
        of_gates,
        [
            "clean_up_local_level_0_0 -> makes",
            "clean_up_local_level_1_0 -> stage_in_local_local_1_0",
            "first -> clean_up_local_level_0_0",
            "first -> clean_up_local_level_1_0",
            "late -> clean_up_local_level_1_0",
            "clean_up_local_level_0_0 -> clean_up_local_level_1_0",
        ]
    );
}

#[test]
fn many_tasks_that_share_a_large_group_do_not_wait_for_everything_one_by_one() {
    let mut builder = Builder::new("wide");
    let files: Vec<FileId> = (0..3000).map(|number| builder.file(input(&format!("f{number}"), 1))).collect();
    let group = builder.group(files);
    for number in 0..20_000 {
        let task = builder.task(task(&format!("t{number}")));
        builder.reads(task, group);
    }
    let graph = builder.finish().unwrap();
    let layout = planned(&graph, &Catalogue::default(), &leaf());
    assert_eq!(layout.staged_in(), traffic(60_000_000, 60_000_000));
    assert!(layout.edges() < 300_000, "{}", layout.edges());
    assert!(layout.decisions.iter().any(|line| line.why.contains("fewer than Pegasus")));
}
