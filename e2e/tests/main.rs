//! Tulpar on real pools. `e2e/condor up` and `e2e/slurm up` start them; `TULPAR_CONDOR` and `TULPAR_SLURM` say where they are.

mod main {
    mod checkpoints;
    mod condor;
    mod condor_images;
    mod condor_limits;
    mod condor_runs;
    mod condor_staging;
    mod condor_ways;
    mod dry_run;
    mod event_log;
    mod every_pool;
    mod executor_text;
    mod far;
    mod handed_features;
    mod handing_over;
    mod harness;
    mod recorded;
    mod searches;
    mod seen;
    mod slurm;
    mod submit_text;
}
