//! What the attempts of a task set used, summed up as their ends are recorded; and why one did not end well.

use crate::{declared, progress};
use tulpar_core::job::Report;

/// What the attempts of a task set used, together.
#[derive(Clone, Default)]
pub(crate) struct Used {
    /// Attempts that ended well.
    pub(crate) good: u32,
    pub(crate) good_wall_us: u64,
    pub(crate) max_wall_us: u64,
    pub(crate) wall_us: u64,
    pub(crate) cpu_us: u64,
    pub(crate) peak_rss: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

impl Used {
    pub(crate) fn add(&mut self, report: &Report) {
        let usage = &report.usage;
        if report.ending.is_success() {
            self.good += 1;
            self.good_wall_us += usage.wall_us;
            self.max_wall_us = self.max_wall_us.max(usage.wall_us);
        }
        self.wall_us += usage.wall_us;
        self.cpu_us += usage.user_us + usage.system_us;
        self.peak_rss = self.peak_rss.max(usage.peak_rss);
        self.read_bytes += usage.read_bytes;
        self.write_bytes += usage.write_bytes;
    }
}

/// How it ended, and the last thing that it said.
pub(crate) fn why(report: &Report) -> String {
    let made = declared::made(report).map(|made| format!("; it made {made}")).unwrap_or_default();
    let ending = progress::ending(&report.ending) + &made;
    match report.stderr_tail.lines().last() {
        Some(last) => format!("{ending}: {}", last.trim()),
        None => ending,
    }
}
