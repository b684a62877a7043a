//! `tulpar io bench`: judges a file system by the access patterns of deep-learning applications.

use crate::failure::Exit;
use crate::print;
use clap::Args;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tulpar::Failure;
use tulpar_core::units::{BYTES_ACCEPTED, Bytes, parse_bytes};
use tulpar_kernels::{Compute, Error, Job, Kernel, Outcome, Published, Workload, bench};

#[derive(Debug, Args)]
pub(crate) struct IoBenchArguments {
    /// imagenet, cosmictagger, ffn, cosmoflow, frnn, or all of them
    #[arg(value_name = "KERNEL", default_value = "all")]
    pub(crate) kernel: String,
    /// The folder to judge; what is made there is kept and used again [default: a folder that is removed, here]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// About how many bytes of data each kernel has
    #[arg(long, value_name = "SIZE", default_value = "256 MB")]
    pub(crate) scale: String,
    /// How long a step computes, in milliseconds; or the share of the time that I/O is to have, as in `20%`;
    /// `published`: the share that was published of the application
    #[arg(long, value_name = "MS")]
    pub(crate) compute: Option<String>,
    /// Threads that read ahead; 0: the step itself reads
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u64>,
    /// Samples that are read ahead
    #[arg(long, value_name = "N")]
    pub(crate) prefetch: Option<u64>,
    /// Samples a step
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<u64>,
    /// How often the data are read
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<u64>,
    /// At most this many steps
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// The largest request of readers that have a choice (TFRecord, NPZ)
    #[arg(long, value_name = "SIZE")]
    pub(crate) request: Option<String>,
    /// Processes that read at the same time, each its share
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) processes: u64,
    /// Seed of the data and of their order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Read what the system has in memory, instead of asking it to forget first
    #[arg(long)]
    pub(crate) warm: bool,
    /// Record every read and write of the kernel, as `tulpar io record --trace` does: `kernel.darshan` beside the rest
    #[arg(long, requires = "dir")]
    pub(crate) record: bool,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KernelArguments {
    job: PathBuf,
    #[arg(long)]
    rank: Option<u64>,
}

/// Where data lie when no folder is named.
const FOLDER: &str = "tulpar-io-bench";

pub(super) fn judge(folder: Option<&Path>, arguments: &IoBenchArguments) -> Result<ExitCode, Failure> {
    let outcomes = outcomes(folder, arguments)?;
    if arguments.json {
        print::json(&outcomes.iter().map(View::of).collect::<Vec<_>>());
    } else {
        show(&outcomes);
    }
    Ok(Exit::Done.into())
}

/// Runs the kernels that were named.
fn outcomes(folder: Option<&Path>, arguments: &IoBenchArguments) -> Result<Vec<Outcome>, Failure> {
    let kernels = if arguments.kernel == "all" {
        Kernel::ALL.to_vec()
    } else {
        vec![arguments.kernel.parse().map_err(|error: Error| Failure::usage(error.to_string()))?]
    };
    let jobs = kernels.into_iter().map(|kernel| job(folder, arguments, kernel)).collect::<Result<Vec<_>, _>>()?;
    run_jobs(jobs, arguments.warm, arguments.record, arguments.dir.is_some())
}

/// Runs each kernel in a process of its own. Unless they are kept, its data are removed afterwards.
pub(in crate::verbs) fn run_jobs(
    jobs: Vec<Job>,
    warm: bool,
    record: bool,
    keep: bool,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for job in jobs {
        let kernel = job.workload.data.kernel;
        if std::io::stderr().is_terminal() {
            print::note(&format!("{kernel}: {} of data", Bytes(job.workload.data.stored())));
        }
        let program = std::env::current_exe().map_err(Failure::Launch)?;
        let start = |path: &Path| {
            let mut command = Command::new(&program);
            if record {
                let log = path.with_file_name("kernel.darshan");
                command.args(["io", "record", "--trace", "--output"]).arg(log).arg("--").arg(&program);
            }
            // What it says belongs to nobody's data.
            command.args(["io", "__kernel"]).arg(path).stdout(std::io::stderr());
            wait(kernel, &mut command)
        };
        let dir = job.dir.clone();
        let outcome = bench(job, !warm, &start).map_err(failure);
        if !keep {
            let _ = std::fs::remove_dir_all(&dir);
        }
        outcomes.push(outcome?);
    }
    Ok(outcomes)
}

/// What the arguments make of a kernel.
fn job(folder: Option<&Path>, arguments: &IoBenchArguments, kernel: Kernel) -> Result<Job, Failure> {
    let size = |text: &str| parse_bytes(text).map_err(|error| Failure::usage_with(error.to_string(), BYTES_ACCEPTED));
    let mut workload: Workload = kernel.workload(size(&arguments.scale)?.0);
    workload.data.seed = arguments.seed;
    if let Some(text) = arguments.compute.as_deref() {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let compute = match text.strip_suffix('%') {
            _ if text == "published" => Some(Compute::Share(kernel.published().io_share)),
            Some(share) => number(share).map(|share| Compute::Share(share / 100.0)),
            None => number(text).map(|milliseconds| Compute::Seconds(milliseconds / 1e3)),
        };
        workload.compute = compute.ok_or_else(|| {
            Failure::usage(format!(
                "--compute {text}: write milliseconds as in `20`, a share as in `15%`, or `published`"
            ))
        })?;
    }
    for (field, given) in [
        (&mut workload.workers, arguments.workers),
        (&mut workload.prefetch, arguments.prefetch),
        (&mut workload.batch, arguments.batch),
        (&mut workload.epochs, arguments.epochs),
    ] {
        *field = given.unwrap_or(*field);
    }
    if arguments.prefetch.is_some_and(|many| many > 0) && arguments.workers.is_none() {
        workload.workers = workload.workers.max(1);
    }
    workload.steps = arguments.steps;
    if let Some(text) = &arguments.request {
        workload.request = size(text)?.0;
    }
    workload.check().map_err(failure)?;
    if !(1..=4096).contains(&arguments.processes) {
        return Err(Failure::usage("--processes is between 1 and 4096"));
    }
    let dir = folder.unwrap_or(Path::new("")).join(arguments.dir.as_deref().unwrap_or(Path::new(FOLDER)));
    job_in(&dir, workload, arguments.processes)
}

/// A workload whose data and words lie in this folder.
fn job_in(dir: &Path, workload: Workload, processes: u64) -> Result<Job, Failure> {
    let dir = std::path::absolute(dir).map_err(|source| Failure::Read { path: dir.to_owned(), source })?;
    let out = dir.join(format!("{}.out", workload.data.kernel));
    Ok(Job { workload, dir, out, processes })
}

/// Every kernel with about so many bytes of data, computing as long as was published of its application.
pub(in crate::verbs) fn published_jobs(dir: &Path, scale: Bytes) -> Result<Vec<Job>, Failure> {
    let job = |kernel: Kernel| {
        let mut workload = kernel.workload(scale.0);
        workload.compute = Compute::Share(kernel.published().io_share);
        workload.check().map_err(failure)?;
        job_in(dir, workload, 1)
    };
    Kernel::ALL.into_iter().map(job).collect()
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Workload(_) | Error::Damaged { .. } => Failure::usage(error.to_string()),
        _ => Failure::Site { message: error.to_string(), hint: None },
    }
}

fn wait(kernel: Kernel, command: &mut Command) -> Result<(), Error> {
    let kernel = kernel.name();
    let status = command.status().map_err(|source| Error::Start { kernel, source })?;
    if status.success() { Ok(()) } else { Err(Error::Process { kernel, status: status.to_string() }) }
}

/// The hidden verb that is the process of a kernel, and starts those of the others.
pub(super) fn kernel(arguments: &KernelArguments) -> Result<ExitCode, Failure> {
    let job = Job::read(&arguments.job).map_err(failure)?;
    if job.processes == 1 || arguments.rank.is_some() {
        job.run(arguments.rank.unwrap_or(0)).map_err(failure)?;
        return Ok(Exit::Done.into());
    }
    let program = std::env::current_exe().map_err(Failure::Launch)?;
    let mut children = Vec::new();
    for rank in 0..job.processes {
        let mut command = Command::new(&program);
        command.args(["io", "__kernel"]).arg(&arguments.job).args(["--rank", &rank.to_string()]);
        children.push(command.spawn().map_err(Failure::Launch)?);
    }
    let mut failed = None;
    for mut child in children {
        let status = child.wait().map_err(Failure::Launch)?;
        if !status.success() {
            failed = Some(status);
        }
    }
    let kernel = job.workload.data.kernel.name();
    failed.map_or(Ok(Exit::Done.into()), |status| Err(failure(Error::Process { kernel, status: status.to_string() })))
}

#[derive(Serialize)]
struct View<'a> {
    read_bytes_per_second: f64,
    raw_bytes_per_second: f64,
    ratio: f64,
    samples_per_second: f64,
    wait_share: f64,
    io_share: f64,
    hidden_share: f64,
    sequential_share: f64,
    published: Published,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

impl View<'_> {
    fn of(outcome: &Outcome) -> View<'_> {
        View {
            read_bytes_per_second: outcome.read_bytes_per_second(),
            raw_bytes_per_second: outcome.raw.bytes_per_second(),
            ratio: outcome.ratio(),
            samples_per_second: outcome.samples_per_second(),
            wait_share: outcome.wait_share(),
            io_share: outcome.io_share(),
            hidden_share: outcome.hidden_share(),
            sequential_share: outcome.sequential_share(),
            published: outcome.kernel.published(),
            outcome,
        }
    }
}

fn show(outcomes: &[Outcome]) {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let rows: Vec<Vec<String>> = outcomes
        .iter()
        .map(|outcome| {
            let rate = |bytes: f64| format!("{:.0}", bytes / 1e6);
            let [half, most, nearly_all] = outcome.latencies().map(|seconds| format!("{:.3}", 1e3 * seconds));
            let (read, byte) = outcome.sizes();
            vec![
                outcome.kernel.to_string(),
                outcome.kernel.published().format.to_owned(),
                rate(outcome.read_bytes_per_second()),
                rate(outcome.raw.bytes_per_second()),
                format!("{:.2}", outcome.ratio()),
                format!("{:.0}", outcome.samples_per_second()),
                half,
                most,
                nearly_all,
                percent(outcome.wait_share()),
                percent(outcome.io_share()),
                percent(outcome.hidden_share()),
                percent(outcome.sequential_share()),
                Bytes(read).to_string(),
                Bytes(byte).to_string(),
            ]
        })
        .collect();
    let header = [
        "KERNEL",
        "FORMAT",
        "MB/S",
        "RAW",
        "RATIO",
        "SAMPLES/S",
        "P50 MS",
        "P95",
        "P99",
        "WAITING",
        "I/O",
        "HIDDEN",
        "IN ORDER",
        "READ",
        "BYTE IN",
    ];
    print::table(&header, &rows);
}
