//! How close does a durable, sandboxed, measured task come to a bare process? Ratios in one run: a plain
//! `posix_spawn` + `waitpid` loop is 1, larger is faster; peers where they are installed.
//!
//! `cargo build --release && cargo bench -p tulpar-benches --bench local [-- TASKS]`; `TULPAR_BIN=PATH` measures another build.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::ffi::CString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let tasks = std::env::args().filter_map(|word| word.parse::<u64>().ok()).next_back().unwrap_or(10_000);
    let tulpar = tulpar_benches::binary();
    let spawn = spawn_loop(tasks.min(2000));
    println!("posix_spawn loop: {:.0} µs a process", spawn.as_secs_f64() * 1e6);
    let side = (tasks as f64).sqrt() as u64;
    let cases = [
        (format!("{tasks} independent"), tasks, independent(tasks)),
        (format!("chain of {}", tasks / 5), tasks / 5, chain(tasks / 5)),
        (format!("lattice {side} × {side}"), side * side, lattice(side)),
    ];
    println!("{:<24} {:>9} {:>12} {:>7}", "case", "seconds", "tasks/s", "ratio");
    for (name, count, workflow) in cases {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("workflow.yaml"), workflow).expect("written");
        let taken = run(&tulpar, folder.path());
        row(&name, count, taken, spawn);
    }
    peers(tasks, spawn);
}

fn row(name: &str, count: u64, taken: Duration, spawn: Duration) {
    let seconds = taken.as_secs_f64();
    let ratio = spawn.as_secs_f64() * count as f64 / seconds;
    println!("{name:<24} {seconds:>9.2} {:>12.0} {ratio:>7.2}", count as f64 / seconds);
}

fn run(tulpar: &Path, folder: &Path) -> Duration {
    let begun = Instant::now();
    let status = Command::new(tulpar)
        .args(["run", "--json"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()
        .expect("tulpar starts");
    assert!(status.success(), "the run failed");
    begun.elapsed()
}

fn spawn_loop(count: u64) -> Duration {
    let program = CString::new("/bin/true").expect("no NUL");
    let arguments = [program.as_ptr().cast_mut(), std::ptr::null_mut()];
    let environment = [std::ptr::null_mut()];
    let begun = Instant::now();
    for _ in 0..count {
        let mut pid = 0;
        let mut status = 0;
        // SAFETY: all pointers live as long as the call; the child is waited for at once.
        unsafe {
            let result = libc::posix_spawn(
                &mut pid,
                program.as_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                arguments.as_ptr(),
                environment.as_ptr(),
            );
            assert_eq!(result, 0);
            libc::waitpid(pid, &mut status, 0);
        }
    }
    begun.elapsed() / count as u32
}

fn independent(tasks: u64) -> String {
    format!("workflow: independent\ntasks:\n  work:\n    for: {{i: 1..{tasks}}}\n    run: [/bin/true]\n")
}

fn chain(tasks: u64) -> String {
    let mut text = String::from("workflow: chain\ntasks:\n  t0: {run: [/bin/true]}\n");
    for i in 1..tasks {
        let _ = writeln!(text, "  t{i}: {{after: [t{}], run: [/bin/true]}}", i - 1);
    }
    text
}

fn lattice(side: u64) -> String {
    let mut text = String::from("workflow: lattice\ntasks:\n");
    for depth in 0..side {
        for width in 0..side {
            let after: Vec<String> = match depth {
                0 => Vec::new(),
                _ => [width.wrapping_sub(1), width, width + 1]
                    .iter()
                    .filter(|column| **column < side)
                    .map(|column| format!("t{}_{column}", depth - 1))
                    .collect(),
            };
            let _ = writeln!(text, "  t{depth}_{width}: {{after: [{}], run: [/bin/true]}}", after.join(", "));
        }
    }
    text
}

/// `xargs` and `make` on the same number of independent processes.
fn peers(tasks: u64, spawn: Duration) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let numbers: String = (0..tasks).map(|i| format!("{i}\n")).collect();
    let list = folder.path().join("list");
    std::fs::write(&list, numbers).expect("written");
    let names: String = (0..tasks).map(|i| format!(" t{i}")).collect();
    let makefile = format!("all:{names}\n.PHONY: all{names}\n{}:\n\t@/bin/true\n", names.trim());
    std::fs::write(folder.path().join("Makefile"), makefile).expect("written");
    let peers = [("xargs -P 2", "xargs -P 2 -n 1 /bin/true < list"), ("make -j 2", "make -s -j 2 all")];
    for (name, line) in peers {
        let begun = Instant::now();
        let status = Command::new("sh").args(["-c", line]).current_dir(folder.path()).status();
        match status {
            Ok(status) if status.success() => row(name, tasks, begun.elapsed(), spawn),
            _ => println!("{name:<24} not available"),
        }
    }
}
