//! What is shown of runs, from literal events.

mod main {
    mod export;
    mod fixture;
    mod report;
    mod timeline;
}
