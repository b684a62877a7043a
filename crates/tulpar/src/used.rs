//! What the attempts of a task set used, summed up as their ends are recorded; and why one did not end well.

use crate::declared;
use tulpar_core::job::Report;

/// What the attempts of a task set used, together.
#[derive(Clone, Default)]
pub struct Used {
    /// Attempts that ended well.
    pub good: u32,
    pub good_wall_us: u64,
    pub max_wall_us: u64,
    pub wall_us: u64,
    pub cpu_us: u64,
    pub peak_rss: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

impl Used {
    pub fn add(&mut self, report: &Report) {
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
pub fn why(report: &Report) -> String {
    let made = declared::made(report).map(|made| format!("; it made {made}")).unwrap_or_default();
    let ending = report.ending.words() + &made;
    match report.stderr_tail.lines().last() {
        Some(last) => format!("{ending}: {}", last.trim()),
        None => ending,
    }
}
