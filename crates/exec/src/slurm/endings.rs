//! How an attempt ended that left no report: from what Slurm says of its job, and from what `launch` left with.

use crate::local::now;
use crate::slurm::text::state::Over;
use tulpar_core::job::{Ending, Report};
use tulpar_core::units::Timestamp;

/// What is known of a job that is over without a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remains<'a> {
    pub(crate) over: Over,
    /// The code with which `launch` left, when it came that far.
    pub(crate) code: Option<i32>,
    pub(crate) keeps_checkpoint: bool,
    /// What `launch` said.
    pub(crate) words: &'a str,
}

pub(crate) fn ending(remains: Remains<'_>) -> (Ending, String) {
    let Remains { over, code, keeps_checkpoint, words } = remains;
    if let Some(ending) = over.ending() {
        let text = match over {
            Over::Timeout => "Slurm ended it at the time limit of its job",
            Over::Memory => "Slurm ended it because it used more memory than it had asked for",
            Over::NodeFailed => "its node failed",
            Over::Cancelled => "somebody cancelled it with scancel",
            _ => "",
        };
        return (ending, text.to_owned());
    }
    match (over, code) {
        // `launch` leaves so without a report only when it was told to stop; nobody cancelled it, so it was the
        // warning before the limit. What can go on from its checkpoint was merely taken off its place.
        (Over::Completed, _) if keeps_checkpoint => {
            (Ending::Preempted, "it was stopped shortly before the time limit of the site, and goes on later".into())
        }
        (Over::Completed, _) => (
            Ending::Walltime,
            "it was stopped shortly before the time limit of the site: say how long it takes with `time`, or let it \
             keep a checkpoint"
                .into(),
        ),
        (_, Some(code)) if !words.trim().is_empty() => {
            (Ending::Refused(format!("{} (exit code {code} of tulpar-launch)", words.trim())), String::new())
        }
        (_, Some(code @ 126..=127)) => {
            let text = format!(
                "tulpar-launch could not be started on the node (exit code {code}): is the folder of the run on a file system that all nodes see?"
            );
            (Ending::Refused(text), String::new())
        }
        _ => (
            Ending::NodeLost,
            "its job ended without saying how; when this repeats, see whether all nodes see the folder of the run"
                .into(),
        ),
    }
}

pub(crate) fn report(ending: Ending, started: Option<Timestamp>, words: String) -> Box<Report> {
    let ended = now();
    Box::new(Report { started: started.unwrap_or(ended), stderr_tail: words, ..Report::unstarted(ending, ended) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_says_becomes_an_ending() {
        let of = |over, code, keeps_checkpoint, words| ending(Remains { over, code, keeps_checkpoint, words }).0;
        assert_eq!(of(Over::Timeout, None, true, ""), Ending::Walltime);
        assert_eq!(of(Over::Memory, Some(137), false, ""), Ending::Memory);
        assert_eq!(of(Over::Completed, Some(0), true, ""), Ending::Preempted);
        assert_eq!(of(Over::Completed, Some(0), false, ""), Ending::Walltime);
        assert_eq!(of(Over::Failed, None, false, ""), Ending::NodeLost);
        assert_eq!(
            of(Over::Failed, Some(2), false, "tulpar-launch: no parcel\n"),
            Ending::Refused("tulpar-launch: no parcel (exit code 2 of tulpar-launch)".into())
        );
        assert!(matches!(of(Over::Failed, Some(127), false, ""), Ending::Refused(_)));
    }
}
