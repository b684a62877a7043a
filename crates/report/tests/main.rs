//! What is shown of runs, from literal events.

mod main {
    mod character;
    mod export;
    mod fixture;
    mod io;
    mod report;
    mod search;
    mod statistics;
    mod timeline;
    mod traces;
}
