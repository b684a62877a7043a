//! The I/O of the tasks of a run, a row each: those whose I/O was traced.

use serde::Serialize;
use tulpar_trace::find::Severity;
use tulpar_trace::report::Report;

use super::words::{brief, bytes, count};
use crate::words::{NONE, Table, percent, seconds};

/// What is said of one attempt; its log has the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskIo {
    pub task: String,
    /// Where the Darshan log is, for `tulpar io report`.
    pub log: String,
    pub processes: i64,
    pub run_seconds: f64,
    /// Seconds in which anything was read or written, as a union.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_seconds: Option<f64>,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub requests: u64,
    pub metadata_calls: i64,
    /// Codes and titles, worst first; notes are left out.
    pub findings: Vec<TaskFinding>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskFinding {
    pub code: &'static str,
    pub severity: &'static str,
    pub title: String,
}

impl TaskIo {
    pub fn of(task: String, log: String, report: &Report) -> TaskIo {
        let worth = report.findings.iter().filter(|finding| finding.severity != Severity::Note);
        let layers = || report.layers.iter().filter(|layer| layer.layer != "MPI-IO");
        TaskIo {
            task,
            log,
            processes: report.job.processes,
            run_seconds: report.job.run_time,
            io_seconds: report.io.as_ref().map(|io| io.overall),
            bytes_read: report.bytes_read,
            bytes_written: report.bytes_written,
            requests: layers().map(|layer| layer.read.requests.saturating_add(layer.write.requests)).sum(),
            metadata_calls: layers().map(|layer| layer.metadata_calls).sum(),
            findings: worth
                .map(|finding| TaskFinding {
                    code: finding.code,
                    severity: finding.severity.name(),
                    title: finding.title.clone(),
                })
                .collect(),
        }
    }
}

/// What stands above the table and below it.
pub(crate) const TITLE: &str = "I/O of tasks";
pub(crate) const RULE: &str = "Of tasks whose I/O was traced, at most the 200 with the largest logs; in I/O is the time in which anything was read or written, each moment once. `tulpar io \
     report` on the log of a task says more: it lies as io.darshan beside what the attempt printed.";

pub(crate) fn table(rows: &[TaskIo]) -> Option<Table> {
    let header = ["task", "found", "run time", "in I/O", "share", "read", "written", "requests", "metadata calls"];
    let mut table = Table::new(&header, 2);
    for row in rows {
        let share = row.io_seconds.filter(|_| row.run_seconds > 0.0).map(|io| percent(io / row.run_seconds));
        let found: Vec<String> =
            row.findings.iter().take(3).map(|finding| format!("{} {}", finding.code, finding.title)).collect();
        table.rows.push(vec![
            row.task.clone(),
            if found.is_empty() { NONE.to_owned() } else { found.join("; ") },
            seconds(row.run_seconds),
            row.io_seconds.map_or_else(|| NONE.to_owned(), brief),
            share.unwrap_or_else(|| NONE.to_owned()),
            bytes(row.bytes_read as f64),
            bytes(row.bytes_written as f64),
            count(row.requests),
            count(row.metadata_calls.max(0).cast_unsigned()),
        ]);
    }
    (!rows.is_empty()).then_some(table)
}
