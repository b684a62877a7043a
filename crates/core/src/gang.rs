//! The words that start a task on several nodes at once.

use crate::resources::Request;

/// Words before the command of a task that has several nodes: one process on each, and all end when one fails.
pub fn gang(request: &Request) -> Vec<String> {
    if request.nodes < 2 {
        return Vec::new();
    }
    let nodes = request.nodes;
    let words = [
        "srun".to_owned(),
        format!("--nodes={nodes}"),
        format!("--ntasks={nodes}"),
        "--ntasks-per-node=1".to_owned(),
        format!("--cpus-per-task={}", request.milli_cpus.div_ceil(1000).max(1)),
        "--kill-on-bad-exit=1".to_owned(),
        "--export=ALL".to_owned(),
        "sh".to_owned(),
        "-c".to_owned(),
        "export TULPAR_NODE=$SLURM_NODEID APPTAINERENV_TULPAR_NODE=$SLURM_NODEID; exec \"$@\"".to_owned(),
        "tulpar".to_owned(),
    ];
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_nodes_run_one_process_each() {
        assert!(gang(&Request::default()).is_empty());
        let two = Request { nodes: 2, milli_cpus: 2000, ..Request::default() };
        assert_eq!(gang(&two)[..3], ["srun", "--nodes=2", "--ntasks=2"]);
    }
}
