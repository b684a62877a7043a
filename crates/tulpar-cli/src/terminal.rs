//! The library's words on a terminal: notes, warnings and findings to stderr, and a bar while data files are read.

use crate::{findings, print};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use tulpar::findings::Text;
use tulpar::{DataReading, Messages};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::units::Bytes;
use tulpar_exec::data::Progress;

/// Shows every message of the library.
pub(crate) struct Terminal;

impl Messages for Terminal {
    fn note(&self, words: &str) {
        print::note(words);
    }

    fn warning(&self, words: &str) {
        print::warning(words);
    }

    fn findings(&self, text: &Text<'_>, findings: &[Diagnostic]) {
        findings::show(text, findings);
    }

    fn reading(&self) -> Box<dyn DataReading> {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("reading data {bar:24} {pos}/{len} files {msg}");
        bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
        Box::new(Bar(bar))
    }
}

struct Bar(ProgressBar);

impl DataReading for Bar {
    fn progress(&self, progress: Progress) {
        self.0.set_length(progress.of_files);
        self.0.set_position(progress.files);
        self.0.set_message(Bytes(progress.bytes).to_string());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
