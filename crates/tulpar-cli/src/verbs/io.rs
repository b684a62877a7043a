//! `tulpar io …`: what a program read and wrote, recorded, explained and generated. Each part has its own words here and
//! its work in the crate that it belongs to.

mod bench;
mod report;

pub(super) use bench::{published_jobs, run_jobs};
pub(super) use report::reports_of;

use crate::verbs::record::{IoRecordArguments, record};
use clap::Subcommand;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Io {
    /// Say what a job did to its files, where its time went and what to do about it, from Darshan logs
    Report(report::IoReportArguments),
    /// Show the I/O of two jobs side by side
    Compare(report::IoCompareArguments),
    /// Run a command and record what it and all that it starts do to files, as a Darshan log
    Record(IoRecordArguments),
    /// Judge a file system by the access patterns of deep-learning applications
    Bench(bench::IoBenchArguments),
    /// The process of a kernel
    #[command(name = "__kernel", hide = true)]
    Kernel(bench::KernelArguments),
}

pub(crate) fn io(folder: Option<&Path>, verb: &Io) -> Result<ExitCode, Failure> {
    match verb {
        Io::Report(arguments) => report::report(folder, arguments),
        Io::Compare(arguments) => report::compare(folder, arguments),
        Io::Record(arguments) => record(folder, arguments),
        Io::Bench(arguments) => bench::judge(folder, arguments),
        Io::Kernel(arguments) => bench::kernel(arguments),
    }
}
