//! This test binary as a task: it uses known amounts of things when the variable `ACT` says so.

use std::io::Read;
use std::process::Command;

/// The spec of a task that acts as told. Acts, one a word: `cpu:MS`, `memory:MB`, `read:PATH`, `child:ACT+ACT`,
/// `daemon:ACT+ACT` (a grandchild in its own session whose parent is gone), `join` (wait for the children), `wait:FIFO`, `kill`.
pub(super) fn task(acts: &str) -> tulpar_core::job::JobSpec {
    let mut spec = super::scene::arguments(&[
        std::env::current_exe().unwrap().to_str().unwrap(),
        "--exact",
        "it::programs::acts_as_told",
        "--quiet",
    ]);
    spec.variables.insert("ACT".into(), acts.into());
    spec
}

#[test]
fn acts_as_told() {
    let Ok(acts) = std::env::var("ACT") else { return };
    let mut memory = Vec::new();
    let mut children = Vec::new();
    for act in acts.split(' ') {
        let (verb, what) = act.split_once(':').unwrap_or((act, ""));
        match verb {
            "cpu" => burn(what.parse().unwrap()),
            "memory" => memory.push(vec![1u8; what.parse::<usize>().unwrap() << 20]),
            "read" => {
                let mut file = std::fs::File::open(what).unwrap();
                let mut buffer = vec![0; 1 << 20];
                while file.read(&mut buffer).unwrap() > 0 {}
            }
            "wait" => drop(std::fs::File::open(what).unwrap()),
            "join" => {
                children.drain(..).for_each(|mut child: std::process::Child| assert!(child.wait().unwrap().success()))
            }
            "child" => children.push(again(what).spawn().unwrap()),
            "daemon" => {
                let me = std::env::current_exe().unwrap();
                let line =
                    format!("setsid {} --exact it::programs::acts_as_told --quiet >/dev/null 2>&1 &", me.display());
                assert!(
                    Command::new("sh")
                        .args(["-c", &line])
                        .env("ACT", what.replace('+', " "))
                        .status()
                        .unwrap()
                        .success()
                );
            }
            "kill" => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            }
            other => panic!("no such act: {other}"),
        }
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    // Kept to the end, so that it is the peak.
    assert!(memory.iter().all(|block| block[block.len() / 2] == 1));
}

fn again(acts: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "it::programs::acts_as_told", "--quiet"]).env("ACT", acts.replace('+', " "));
    command
}

/// Uses this much CPU time, by the process's own clock, however busy the machine is.
fn burn(milliseconds: i64) {
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    loop {
        let time = used();
        if time.tv_sec * 1000 + time.tv_nsec / 1_000_000 >= milliseconds {
            return;
        }
        std::hint::black_box((0..10_000u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum | 1)));
    }
}
