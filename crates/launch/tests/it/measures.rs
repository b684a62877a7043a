//! Known amounts, measured within five per cent. Small sizes: the margins of a process's own start are allowed for.

use super::programs::task;
use super::scene::*;
use std::time::Duration;
use tulpar_core::job::{Ending, Usage};

const MB: u64 = 1 << 20;

fn close_to(measured: u64, known: u64, start: u64) -> bool {
    measured as f64 >= known as f64 * 0.95 && measured as f64 <= (known + start) as f64 * 1.05
}

fn cpu_ms(usage: &Usage) -> u64 {
    (usage.user_us + usage.system_us) / 1000
}

fn scene_with_data() -> (Scene, String) {
    let scene = Scene::with(|options| options.sample_every = Duration::from_millis(50));
    std::fs::write(scene.path("data"), vec![7; 20 << 20]).unwrap();
    let data = scene.path("data").display().to_string();
    (scene, data)
}

#[test]
fn memory_cpu_of_children_and_reads_are_measured() {
    let (scene, data) = scene_with_data();
    let usage = scene
        .run(task(&format!(
            "memory:100 read:{data} read:{data} child:cpu:300 child:cpu:300 child:cpu:300 child:cpu:300"
        )))
        .usage;
    assert!(close_to(usage.peak_rss, 100 * MB, 50 * MB), "{}", usage.peak_rss);
    assert!(close_to(cpu_ms(&usage), 1200, 150), "{}", cpu_ms(&usage));
    assert!(close_to(usage.read_bytes, 40 * MB, MB), "{}", usage.read_bytes);
    assert!(usage.read_calls >= 40 && usage.minor_faults > 25_000);
}

#[test]
fn a_daemon_that_left_its_session_and_lost_its_parent_is_measured_too() {
    let (scene, data) = scene_with_data();
    let done = scene.fifo("done");
    // The main process waits until the daemon, long orphaned, has ended its work and opened the pipe.
    let script = format!("daemon:memory:80+cpu:600+read:{data}+read:{data}+wait:{0}", done.0.display());
    scene.launch(task(&format!("{script} wait:{}", scene.fifo("go").0.display())));
    drop(std::fs::OpenOptions::new().write(true).open(&done.0).unwrap());
    drop(std::fs::OpenOptions::new().write(true).open(scene.path("go")).unwrap());
    let (_, report) = scene.ended();
    let usage = report.usage;
    assert_eq!(report.ending, Ending::Exit(0));
    assert!(close_to(usage.peak_rss, 80 * MB, 20 * MB), "{}", usage.peak_rss);
    assert!(close_to(cpu_ms(&usage), 600, 80), "{}", cpu_ms(&usage));
    assert!(close_to(usage.read_bytes, 40 * MB, MB), "{}", usage.read_bytes);
}

#[test]
fn a_tree_that_is_killed_is_measured_all_the_same() {
    let (scene, data) = scene_with_data();
    let report = scene.run(task(&format!("memory:80 cpu:400 read:{data} read:{data} kill")));
    assert_eq!(report.ending, Ending::Signal(9));
    assert!(close_to(report.usage.peak_rss, 80 * MB, 10 * MB), "{}", report.usage.peak_rss);
    assert!(close_to(cpu_ms(&report.usage), 400, 60), "{}", cpu_ms(&report.usage));
    assert!(close_to(report.usage.read_bytes, 40 * MB, MB), "{}", report.usage.read_bytes);
}

#[test]
fn samples_follow_the_tree_over_time() {
    let (mut scene, _) = scene_with_data();
    scene.run(task("child:memory:50+cpu:500 child:memory:50+cpu:500"));
    scene.close();
    let record = &scene.records()[0];
    assert!(record.samples.len() >= 5, "{}", record.samples.len());
    assert!(record.samples.windows(2).all(|pair| pair[0].ms < pair[1].ms));
    let most = record.samples.iter().map(|sample| sample.processes).max().unwrap();
    assert_eq!(most, 3);
    let peak = record.samples.iter().map(|sample| sample.rss).max().unwrap();
    assert!(close_to(peak, 100 * MB, 20 * MB), "{peak}");
    assert!(record.usage.peak_rss >= peak, "the sum over the tree counts, not only the largest process");
    assert!(record.samples.windows(2).all(|pair| pair[0].cpu_us <= pair[1].cpu_us), "{:?}", record.samples);
    let cpu = record.samples.last().unwrap().cpu_us / 1000;
    assert!((200..=1300).contains(&cpu), "{cpu}");
}

#[test]
fn the_size_of_the_driver_is_not_taken_for_that_of_a_small_task() {
    let ours = vec![1u8; 64 << 20];
    let scene = Scene::with(|options| options.sample_every = Duration::from_millis(50));
    let usage = scene.run(shell("true")).usage;
    assert!(usage.peak_rss < 40 * MB, "{} with {} of our own", usage.peak_rss, ours.len());
}
