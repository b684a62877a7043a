//! What the benchmarks share: memory of this process, and where the built program lies.

use std::path::{Path, PathBuf};

/// The largest resident size of this process so far, in MB.
pub fn peak_memory_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// The program that `TULPAR_BIN` names, or the one beside this benchmark, as `cargo build --release` leaves it.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TULPAR_BIN") {
        return path.into();
    }
    let own = std::env::current_exe().expect("this program");
    let path = own.parent().and_then(Path::parent).expect("a target folder").join("tulpar");
    assert!(path.is_file(), "{} is missing: run `cargo build --release` first", path.display());
    path
}
