//! Tulpar on real pools. `e2e/condor up` and `e2e/slurm up` start them; `TULPAR_CONDOR` and `TULPAR_SLURM` say where they are.

mod main {
    mod condor;
    mod event_log;
    mod harness;
    mod slurm;
}
