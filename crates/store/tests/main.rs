//! The integration tests of `tulpar-store`: journals in temporary folders, questions, and another reader.

mod main {
    mod fixture;
    mod live;
    mod peer;
    mod provenance;
    mod questions;
    mod studies;
    mod sync;
    mod trials;
    mod wide;
}
