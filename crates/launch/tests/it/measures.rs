//! Known amounts, measured within five per cent, while the tasks run and in the end; what the processes need for their own
//! start is allowed for.

use super::programs::task;
use super::scene::*;
use std::time::Duration;
use tulpar_core::job::{Ending, Sample, Usage};

const MB: u64 = 1 << 20;

fn close_to(measured: u64, known: u64, start: u64) -> bool {
    measured as f64 >= known as f64 * 0.95 && measured as f64 <= (known + start) as f64 * 1.05
}

fn cpu_ms(usage: &Usage) -> u64 {
    (usage.user_us + usage.system_us) / 1000
}

/// A file of 100 MB.
fn scene_with_data() -> (Scene, String) {
    let scene = Scene::with(|options| options.sample_every = Duration::from_millis(50));
    std::fs::write(scene.path("data"), vec![7; 100 << 20]).unwrap();
    let data = scene.path("data").display().to_string();
    (scene, data)
}

/// 500 MB, 100 MB read twice, three seconds of CPU in four children and two in their parent, which needs part of it to do
/// the rest; beside that, what five processes are before they do anything.
fn assert_known(usage: &Usage) {
    assert!(close_to(usage.peak_rss, 500 * MB, 80 * MB), "{}", usage.peak_rss);
    assert!(close_to(cpu_ms(usage), 5000, 50), "{}", cpu_ms(usage));
    assert!(close_to(usage.read_bytes, 200 * MB, MB), "{}", usage.read_bytes);
}

fn assert_seen(sample: &Sample) {
    assert!(close_to(sample.rss, 500 * MB, 80 * MB), "{}", sample.rss);
    assert!(close_to(sample.cpu_us / 1000, 5000, 50), "{}", sample.cpu_us);
    assert!(close_to(sample.read_bytes, 200 * MB, MB), "{}", sample.read_bytes);
}

/// The kernel counts CPU time in hundredths of a second, twice a process, and rounds down. The two seconds of the parent are
/// more than its memory and its reads cost on the slowest machine, so both are behind it by then.
fn all_is_used(sample: &Sample) -> bool {
    sample.cpu_us >= 4_850_000
}

#[test]
fn memory_cpu_of_children_and_reads_are_measured() {
    let (mut scene, data) = scene_with_data();
    let go = scene.fifo("go");
    let children = ["child:cpu:750"; 4].join(" ");
    scene.launch(task(&format!("{children} memory:500 read:{data} read:{data} cpu:2000 join wait:{}", go.0.display())));
    let seen = scene.see(all_is_used);
    assert_seen(&seen);
    go.open();
    let usage = scene.ended().1.usage;
    assert_known(&usage);
    assert!(usage.read_calls >= 200 && usage.minor_faults > 125_000);
    scene.close();
    let record = &scene.records()[0];
    assert_eq!(record.usage, usage);
    assert!(record.samples.contains(&seen), "{seen:?} {:?}", record.samples);
}

/// The kernel shows root the counters of a zombie, and may refuse them to its owner.
#[test]
fn reads_and_writes_are_measured_for_an_ordinary_user_too() {
    const NAME: &str = "reads_and_writes_are_measured_for_an_ordinary_user_too";
    if rustix::process::geteuid().is_root() {
        let program = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).current_dir("/");
        let Ok(said) = command.args([&format!("measures::{NAME}"), "--exact", "--nocapture"]).output() else {
            return skip(&format!("{NAME} (no setpriv)"));
        };
        if said.status.code().is_some_and(|code| code == 126 || code == 127) {
            return skip(&format!("{NAME} (others may not run {})", program.display()));
        }
        assert!(
            said.status.success(),
            "{}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
        return;
    }
    let scene = Scene::with(|_| {});
    std::fs::write(scene.path("data"), vec![7; 20 << 20]).unwrap();
    let line = format!("cat {} > copy", scene.path("data").display());
    let usage = scene.run(shell(&line)).usage;
    assert!(close_to(usage.read_bytes, 20 * MB, MB), "{usage:?}");
    assert!(close_to(usage.write_bytes, 20 * MB, MB), "{usage:?}");
    assert!(usage.read_calls > 0 && usage.write_calls > 0, "{usage:?}");
}

#[test]
fn a_daemon_that_left_its_session_and_lost_its_parent_is_measured_too() {
    let (scene, data) = scene_with_data();
    let (done, go) = (scene.fifo("done"), scene.fifo("go"));
    // The main process waits until the daemon, long orphaned, has ended its work and opened the pipe.
    let children = ["child:cpu:750"; 4].join("+");
    let daemon =
        format!("daemon:{children}+memory:500+read:{data}+read:{data}+cpu:2000+join+wait:{}", done.0.display());
    scene.launch(task(&format!("{daemon} wait:{}", go.0.display())));
    assert_seen(&scene.see(all_is_used));
    done.open();
    go.open();
    let (_, report) = scene.ended();
    assert_eq!(report.ending, Ending::Exit(0));
    assert_known(&report.usage);
}

#[test]
fn a_tree_that_is_killed_is_measured_all_the_same() {
    let (scene, data) = scene_with_data();
    let (go, never) = (scene.fifo("go"), scene.fifo("never"));
    // Its children outlive it, and are ended with it.
    let child = format!("child:cpu:750+wait:{}", never.0.display());
    let children = [child.as_str(); 4].join(" ");
    scene.launch(task(&format!("{children} memory:500 read:{data} read:{data} cpu:2000 wait:{} kill", go.0.display())));
    assert_seen(&scene.see(all_is_used));
    go.open();
    let (_, report) = scene.ended();
    assert_eq!(report.ending, Ending::Signal(9));
    assert_known(&report.usage);
}

#[test]
fn samples_follow_the_tree_over_time() {
    let (mut scene, _) = scene_with_data();
    let (go, also) = (scene.fifo("go"), scene.fifo("also"));
    let child = |until: &Fifo| format!("child:memory:50+cpu:500+wait:{}", until.0.display());
    scene.launch(task(&format!("{} {}", child(&go), child(&also))));
    let seen = scene.see(|sample| sample.cpu_us >= 950_000);
    assert_eq!(seen.processes, 3);
    assert!(close_to(seen.rss, 100 * MB, 45 * MB), "{}", seen.rss);
    go.open();
    also.open();
    let usage = scene.ended().1.usage;
    scene.close();
    let record = &scene.records()[0];
    assert!(record.samples.len() >= 5, "{}", record.samples.len());
    assert!(record.samples.windows(2).all(|pair| pair[0].ms < pair[1].ms));
    assert!(record.samples.windows(2).all(|pair| pair[0].cpu_us <= pair[1].cpu_us), "{:?}", record.samples);
    assert!(usage.peak_rss >= seen.rss, "the sum over the tree counts, not only the largest process");
    let last = record.samples.last().unwrap();
    assert!(last.cpu_us <= usage.user_us + usage.system_us && last.ms * 1000 <= usage.wall_us);
}

#[test]
fn memory_that_forked_workers_share_is_counted_once() {
    let Ok(python) = std::process::Command::new("python3").arg("--version").output() else { return };
    assert!(python.status.success());
    let scene = Scene::with(|options| options.sample_every = Duration::from_millis(50));
    let go = scene.fifo("go");
    // The parent computes meanwhile, so that there are many looks at its memory also on a busy machine.
    let program = format!(
        "import os, time\nblock = b'1' * (200 << 20)\nfor _ in range(4):\n    if os.fork() == 0:\n        open('{0}').read()\n        os._exit(0)\nprint(os.getpid(), flush=True)\nwhile time.process_time() < 1.5: pass\n[os.wait() for _ in range(4)]",
        go.0.display()
    );
    scene.launch(arguments(&["python3", "-c", &program]));
    let seen = scene.see(|sample| sample.processes == 5 && sample.rss > 100 * MB);
    assert!(close_to(seen.rss, 200 * MB, 30 * MB), "{}", seen.rss);
    go.open();
    let (_, report) = scene.ended();
    assert_eq!(report.ending, Ending::Exit(0));
    assert!(close_to(report.usage.peak_rss, 200 * MB, 30 * MB), "{}", report.usage.peak_rss);
}

#[test]
fn the_size_of_the_driver_is_not_taken_for_that_of_a_small_task() {
    let ours = vec![1u8; 64 << 20];
    let scene = Scene::with(|options| options.sample_every = Duration::from_millis(50));
    let usage = scene.run(shell("true")).usage;
    assert!(usage.peak_rss < 40 * MB, "{} with {} of our own", usage.peak_rss, ours.len());
}
