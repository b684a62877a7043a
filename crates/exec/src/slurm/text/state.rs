//! What the states and reasons of Slurm mean for an attempt.

use tulpar_core::job::Ending;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    /// Somebody must act before it can start.
    Held,
    Running,
    /// It has stopped running and is still being tidied up; it may yet wait again.
    Leaving,
    Over(Over),
}

/// How Slurm says that a job ended. What the task itself did is in the report of `launch`, when there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Completed,
    Failed,
    Cancelled,
    Timeout,
    Memory,
    NodeFailed,
    Preempted,
}

impl Over {
    /// How an attempt ended that left no report. After `Completed` and `Failed` Slurm cannot know.
    pub fn ending(self) -> Option<Ending> {
        match self {
            Over::Completed | Over::Failed => None,
            Over::Cancelled => Some(Ending::Cancelled),
            Over::Timeout => Some(Ending::Walltime),
            Over::Memory => Some(Ending::Memory),
            Over::NodeFailed => Some(Ending::NodeLost),
            Over::Preempted => Some(Ending::Preempted),
        }
    }
}

/// Reads a state as `squeue`, `scontrol` or `sacct` print it: `CANCELLED by 1000` and `CANCELLED+` are `CANCELLED`.
pub fn phase(state: &str) -> Phase {
    let word = state.split([' ', '+', ',']).next().unwrap_or("");
    match word {
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "POWER_UP_NODE" => Phase::Waiting,
        "REQUEUE_HOLD" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => Phase::Held,
        "RUNNING" | "SUSPENDED" | "STOPPED" | "RESIZING" | "SIGNALING" => Phase::Running,
        "COMPLETED" => Phase::Over(Over::Completed),
        "FAILED" | "LAUNCH_FAILED" | "RECONFIG_FAIL" => Phase::Over(Over::Failed),
        "CANCELLED" => Phase::Over(Over::Cancelled),
        "TIMEOUT" | "DEADLINE" => Phase::Over(Over::Timeout),
        "OUT_OF_MEMORY" => Phase::Over(Over::Memory),
        "NODE_FAIL" | "BOOT_FAIL" | "REVOKED" => Phase::Over(Over::NodeFailed),
        "PREEMPTED" => Phase::Over(Over::Preempted),
        // COMPLETING, STAGE_OUT, and what later versions invent: it is still there, so it is still watched.
        _ => Phase::Leaving,
    }
}

/// Reasons with which a job waits until somebody acts, by how they begin, and what to do. Limits that the end of other
/// jobs lifts (`AssocMaxJobsLimit`, `QOSGrpCpuLimit`, `Priority`, `Resources`) are not here: such a job only waits.
const STUCK: &[(&str, &str)] = &[
    ("JobHeldUser", "release it with `scontrol release`"),
    ("JobHeldAdmin", "an administrator of the cluster held it; ask them to release it"),
    ("JobHoldMaxRequeue", "its nodes failed too often; look at them, then `scontrol release` it"),
    ("launch failed requeued held", "its node could not start it; look at the node, then `scontrol release` it"),
    ("DependencyNeverSatisfied", "what it depends on failed; cancel it"),
    ("BadConstraints", "no node has what its lines ask for; change the lines of the site"),
    (
        "PartitionNodeLimit",
        "it asks for more nodes than its partition allows; ask for fewer, or name another partition",
    ),
    ("PartitionTimeLimit", "it asks for more time than its partition allows; ask for less, or name another partition"),
    ("PartitionConfig", "its partition cannot take it; name another in the lines of the site"),
    ("PartitionDown", "its partition is closed; name another in the lines of the site, or wait for it"),
    ("PartitionInactive", "its partition is closed; name another in the lines of the site, or wait for it"),
    ("NodeDown", "the nodes that it needs are down; wait for them, or ask for others"),
    ("ReqNodeNotAvail", "the nodes that it needs are down, drained or reserved; wait for them, or ask for others"),
    ("ReservationDeleted", "its reservation is gone; take it out of the lines of the site"),
    ("InvalidAccount", "the account may not be used; change `account` in the lines of the site"),
    ("AccountNotAllowed", "the account may not use this partition; change the lines of the site"),
    ("InvalidQOS", "the QOS may not be used; change `qos` in the lines of the site"),
    ("QOSNotAllowed", "the QOS may not be used here; change `qos` in the lines of the site"),
    ("QOSJobLimit", "it is above a limit of its QOS; ask for less, or change `qos` in the lines of the site"),
    ("QOSResourceLimit", "it is above a limit of its QOS; ask for less, or change `qos` in the lines of the site"),
    ("QOSTimeLimit", "its QOS has no time left; ask for less, or change `qos` in the lines of the site"),
    ("QOSUsageThreshold", "its QOS has been used up; wait, or change `qos` in the lines of the site"),
    ("AssociationTimeLimit", "the account has no time left; wait, or change `account` in the lines of the site"),
    ("AssociationResourceLimit", "it is above a limit of the account; ask for less"),
    ("OutOfMemory", "Slurm had no memory to start it; `scontrol release` it"),
    ("SystemFailure", "Slurm itself failed; ask an administrator of the cluster"),
];

/// What to do about a job that waits with this reason and would wait for ever; `None` when it only waits its turn.
pub fn stuck(reason: &str) -> Option<&'static str> {
    let listed = STUCK.iter().find(|(start, _)| reason.starts_with(start)).map(|(_, advice)| *advice);
    listed.or_else(|| limit(reason))
}

/// Limits are named `{Assoc,QOS}{Max,Min,Grp}{what}{PerJob,PerNode,…}Limit`. One job alone breaks those of a job or
/// a node; minutes are a budget that is used up; the others pass when other jobs end.
fn limit(reason: &str) -> Option<&'static str> {
    let of_limits = reason.starts_with("Assoc") || reason.starts_with("QOS") || reason.starts_with("MaxMem");
    if !of_limits {
        return None;
    }
    let alone = ["PerJob", "PerNode", "MaxWall", "MinMemory", "MinCpu", "MinGRES", "MaxMemPer"];
    if alone.iter().any(|part| reason.contains(part)) {
        return Some("it asks for more than a single job may have; ask for less, or change the lines of the site");
    }
    let budget = reason.contains("Minutes") || reason.contains("Billing");
    budget.then_some("the budget of the account is used up; wait until it is renewed, or change the lines of the site")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_meaning_in_every_spelling() {
        assert_eq!(phase("PENDING"), Phase::Waiting);
        assert_eq!(phase("CANCELLED by 1000"), Phase::Over(Over::Cancelled));
        assert_eq!(phase("CANCELLED+"), Phase::Over(Over::Cancelled));
        assert_eq!(phase("OUT_OF_MEMORY"), Phase::Over(Over::Memory));
        assert_eq!(phase("COMPLETING"), Phase::Leaving);
        assert_eq!(phase("SOMETHING_OF_2031"), Phase::Leaving);
        assert_eq!(phase("REQUEUE_HOLD"), Phase::Held);
        assert_eq!(Over::Timeout.ending(), Some(Ending::Walltime));
        assert_eq!(Over::Completed.ending(), None, "only a report can tell");
    }

    #[test]
    fn waiting_for_ones_turn_is_not_being_stuck() {
        for reason in ["None", "Priority", "Resources", "BeginTime", "AssocMaxJobsLimit", "QOSGrpCpuLimit", "Licenses"]
        {
            assert_eq!(stuck(reason), None, "{reason}");
        }
        for reason in [
            "JobHeldUser",
            "PartitionNodeLimit",
            "ReqNodeNotAvail, UnavailableNodes:n1",
            "AssocGrpCPUMinutesLimit",
            "QOSMaxGRESPerJob",
            "AssocMaxWallDurationPerJobLimit",
            "MaxMemPerLimit",
            "launch failed requeued held",
        ] {
            assert!(stuck(reason).is_some(), "{reason}");
        }
    }
}
