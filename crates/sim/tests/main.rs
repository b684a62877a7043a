//! The engine in virtual time: its properties over random graphs, policies and faults, and what modelled sites do.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests may touch the world")]

mod main {
    mod advice;
    mod generate;
    mod modelled;
    mod planned;
    mod properties;
    mod published;
    mod scale;
    mod searching;
    mod summit;
    mod traces;
    mod transitions;
    mod trials;

    /// Says loudly that something could not be tried here; `./test` counts these.
    #[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
    pub(crate) fn skipped(why: &str) {
        eprintln!("SKIPPED: {why}");
        if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
            use std::io::Write;
            let file = std::fs::File::options().append(true).create(true).open(path);
            let _ = file.and_then(|mut file| writeln!(file, "{why}"));
        }
    }
}
