//! From logs and profiles to a whole report: analysed, merged on one clock, with its findings.

use crate::analysis::Analysis;
use crate::collect;
use crate::darshan::JobSet;
use crate::find;
use crate::merge;
use crate::report::{Report, Wanted};

impl Report {
    /// Reads logs and profiles.
    pub fn of(set: &JobSet, wanted: &Wanted) -> Result<Report, collect::Error> {
        let mut analysis = Analysis::of_some(set, &wanted.part);
        let mut report = Report::from(set, &mut analysis, wanted);
        if !wanted.profiles.is_empty() {
            let (activities, unread) = merge::read(&wanted.profiles)?;
            let writers: Vec<_> = activities
                .iter()
                .filter(|(_, activity)| merge::is_compared(activity.kind))
                .map(|(_, activity)| activity.writer.clone())
                .collect();
            let ranks = merge::ranks(set, &analysis.hosts, report.job.trainers, &writers);
            let io = merge::Io {
                all: &mut analysis.io_union(),
                of_ranks: &|ranks| analysis.io_union_of(ranks),
                processes: report.job.processes,
                run_time: report.job.run_time,
                start: (report.job.start, report.job.start_uncertainty),
            };
            let mut pipeline = merge::merge(io, activities, ranks, wanted.shift);
            let covered = pipeline.span.unwrap_or((0.0, 0.0));
            for burst in &mut report.checkpoints {
                if burst.start >= covered.0 && burst.end <= covered.1 {
                    let mut writes = analysis.checkpoints.within(burst.start, burst.end);
                    burst.exposed = Some(writes.without(&mut pipeline.compute).length());
                }
            }
            report.pipeline = Some(pipeline);
            report.damage.extend(unread.into_iter().map(|unread| format!("{}: {}", unread.path.display(), unread.why)));
        }
        report.findings = find::findings(&report);
        Ok(report)
    }
}
