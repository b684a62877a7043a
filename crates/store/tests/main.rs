//! The integration tests of `tulpar-store`: journals in temporary folders, questions, simulated runs, and another reader.

mod main {
    mod fixture;
    mod follows;
    #[expect(dead_code, reason = "the simulation's tests use more of it")]
    #[path = "../../../sim/tests/main/generate.rs"]
    mod generate;
    mod live;
    mod peer;
    mod provenance;
    mod questions;
    #[path = "../../../sim/tests/main/searching.rs"]
    mod searching;
    mod studies;
    mod sync;
    mod trials;
    mod wide;
}
