//! Why HTCondor holds jobs, and what a person can do about it.

/// What a hold means for the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// A person must look at it.
    Person(String),
    /// It used more memory than it asked for: another try may ask for more.
    Memory,
    /// It ran longer than the site allows.
    Time,
}

/// How reasons begin that Tulpar gives itself.
pub const OURS: &str = "Tulpar: ";

/// The reason in HTCondor's words, and ours about what to do. Codes are those of the attribute `HoldReasonCode`.
pub fn read(code: i32, subcode: i32, reason: &str) -> Hold {
    // Where nothing else limits memory, jobs and pools say `periodic_hold = MemoryUsage > RequestMemory`.
    let by_policy = matches!(code, 3 | 26) && reason.contains("MemoryUsage");
    if code == 34 || by_policy || reason.to_ascii_lowercase().contains("memory usage exceeded") {
        return Hold::Memory;
    }
    if matches!(code, 46 | 47) {
        return Hold::Time;
    }
    let todo = match (code, subcode) {
        (1, _) if reason.starts_with(OURS) => {
            "HTCondor never would have held it: when the cause is gone, `condor_release` lets it go on"
        }
        (1, _) => "a person held it: `condor_release` lets it go on",
        (3 | 26, _) => "a policy of the job or of the pool held it: ask whoever runs the pool, then `condor_release`",
        (6, _) => "its program could not be started there: look at the slot's machine, or exclude it",
        (12, 2) => "a file that should come back was not there, or could not be written here: is the disk full?",
        (12, _) => {
            "what it made could not be brought back: look at the disk and the network here, then `condor_release`"
        }
        (13, 2) => "a file that should be sent is not there any more: restore it, then `condor_release`",
        (13, _) => "its inputs could not be brought there: look at the address, then `condor_release`",
        (14 | 15, _) => "the standard streams could not be opened: is the run's folder still there and writable?",
        (16, _) => "its inputs are still being spooled",
        (21, _) => "the schedd is short of a resource: `condor_release` later",
        (32 | 33, _) => {
            "it would move more data than the pool allows: stage it (`data: nonsharedfs`), or split the task"
        }
        (35, _) => "its container image cannot be used there: does it exist, and can the node read it?",
        _ => "when the cause is gone, `condor_release` lets it go on",
    };
    Hold::Person(format!("{} (HTCondor's code {code}.{subcode}); {todo}", reason.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_for_the_retry_policy_all_else_is_for_people() {
        assert_eq!(read(34, 0, "Error from slot1: memory usage exceeded request_memory"), Hold::Memory);
        let policy = "The job attribute PeriodicHold expression 'MemoryUsage > RequestMemory' evaluated to TRUE";
        assert_eq!(read(3, 0, policy), Hold::Memory);
        assert_eq!(read(47, 0, "The job exceeded allowed execute duration"), Hold::Time);
        let Hold::Person(words) = read(13, 2, "Transfer input files failure.") else { panic!("a person must look") };
        assert_eq!(
            words,
            "Transfer input files failure (HTCondor's code 13.2); a file that should be sent is not there any more: \
             restore it, then `condor_release`"
        );
    }
}
