//! The integration tests of `tulpar-exec`: real files in temporary folders.

mod main {
    mod cache;
    mod conformance;
    mod data;
    mod journal;
    mod literal_events;
    mod pilots;
    mod publish;
    mod remote;
    mod slurm;
    mod stand_ins;
}
