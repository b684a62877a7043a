//! What a recorded call costs: 4 KiB reads from the page cache, through the hook and past it, in turns in one process. The
//! best of many rounds, so that a busy machine does not matter. Beside it, what two looks at the processor's clock cost.
//!
//! `cargo bench -p tulpar-shim`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Instant;

use tulpar_shim::{Mode, Recording};

const CALLS: usize = 2000;
const ROUNDS: usize = 1000;
const INSTRUCTIONS: usize = 100_000;

fn main() {
    match std::env::var("TULPAR_SHIM_BENCH").as_deref() {
        Ok("time") => measure(),
        Ok("count") => reads(INSTRUCTIONS),
        _ => compare(),
    }
}

fn compare() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("data"), vec![1; 1 << 20]).expect("written");
    let own = std::env::current_exe().expect("this program");
    let child = |words: &[&str], what: &str, mode: Option<Mode>| {
        let program = words.first().map_or(own.as_path(), |program| std::path::Path::new(program));
        let mut command = Command::new(program);
        command.args(words.iter().skip(1)).current_dir(folder.path()).env("TULPAR_SHIM_BENCH", what);
        if !words.is_empty() {
            command.arg(&own);
        }
        let recording = mode.map(|mode| {
            let recording = Recording::begin(&folder.path().join("recording"), mode, false).expect("a recording");
            command.envs(recording.environment(None)).env("TULPAR_IO_SEGMENTS", "20000000");
            recording
        });
        let output = command.output().ok().filter(|output| output.status.success());
        if let Some(recording) = recording {
            recording.discard();
        }
        output
    };
    for (name, mode) in [("not recorded", None), ("counters", Some(Mode::Count)), ("trace", Some(Mode::Trace))] {
        let said =
            child(&[], "time", mode).map_or_else(String::new, |said| String::from_utf8_lossy(&said.stdout).into());
        print!("{name:<14} {said}");
    }
    let instructions = |mode: Option<Mode>| -> Option<f64> {
        let words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let said = child(&words, "count", mode)?;
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        text.lines().find_map(|line| line.split("refs:").nth(1)?.trim().replace(',', "").parse().ok())
    };
    match (instructions(None), instructions(Some(Mode::Count))) {
        (Some(without), Some(with)) => {
            println!("counters       {:.0} instructions a call", (with - without) / INSTRUCTIONS as f64);
        }
        _ => println!("valgrind is not here: instructions are not counted"),
    }
}

type Read = unsafe extern "C" fn(i32, *mut c_void, usize, i64) -> isize;

/// In the child: both ways in turns.
fn measure() {
    let file = std::fs::File::open("data").expect("the data");
    // SAFETY: names of the C library and of one of its functions.
    let past: Read = unsafe {
        let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY);
        std::mem::transmute::<*mut c_void, Read>(libc::dlsym(library, c"pread".as_ptr()))
    };
    let mut best = [f64::MAX; 2];
    let mut buffer = [0u8; 4096];
    for _ in 0..ROUNDS {
        for (way, read) in [past, libc::pread as Read].into_iter().enumerate() {
            let start = Instant::now();
            for call in 0..CALLS {
                // SAFETY: the buffer is as long as said.
                unsafe { read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), 4096, (call % 200 * 4096) as i64) };
            }
            best[way] = best[way].min(start.elapsed().as_secs_f64() * 1e9 / CALLS as f64);
        }
    }
    let [past, hooked] = best;
    println!(
        "{past:>7.1} ns past the hook, {hooked:>7.1} through it: {:+.1} ns, {:.3} times",
        hooked - past,
        hooked / past
    );
}

fn reads(count: usize) {
    let file = std::fs::File::open("data").expect("the data");
    let mut buffer = [0u8; 4096];
    for call in 0..count {
        // SAFETY: as above.
        unsafe { libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), 4096, (call % 200 * 4096) as i64) };
    }
}
