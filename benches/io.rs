//! How long does it take to understand a log? The whole report with its page, as a process of its own, against PyDarshan's
//! HTML summary of the same log in the same run; and three million requests against merely inflating them, with the
//! memory that it takes. VaniDL needs packages that no longer install; it took 339 s for the first log.
//!
//! `cargo bench -p tulpar-benches --bench io` (PyDarshan from the PATH's python3; logs from the folder beside the project)

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use tulpar_trace::darshan::write::Writer;
use tulpar_trace::darshan::{Job, JobSet, Log, Module, Segment};
use tulpar_trace::report::{Report, Wanted};

/// What a process took.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
    memory_mb: f64,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--analyse", log, page] => analyse(Path::new(log), Path::new(page)),
        ["--inflate", log] => inflate(Path::new(log)),
        _ => compare(),
    }
}

fn analyse(log: &Path, page: &Path) {
    let report = Report::of(&JobSet::one(log).expect("a log"), &Wanted::default()).expect("a report");
    std::fs::write(page, tulpar_report::io::page(&[report])).expect("a page");
}

fn inflate(path: &Path) {
    let log = Log::open(path).expect("a log");
    let mut file = std::fs::File::open(path).expect("a log");
    let mut buffer = vec![0; 256 << 10];
    let mut sum = 0u64;
    for module in &log.header().modules {
        file.seek(SeekFrom::Start(module.offset)).expect("a module");
        let mut stream = flate2::read::ZlibDecoder::new((&file).take(module.length));
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            sum += count as u64;
        }
    }
    println!("{sum}");
}

fn compare() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let own = std::env::current_exe().expect("this program");
    let ours =
        |log: &Path| best(3, || Command::new(&own).arg("--analyse").arg(log).arg(&page).stdout(Stdio::null()).spawn());
    println!("{:<34} {:>9} {:>9} {:>9}", "", "wall (s)", "CPU (s)", "peak (MB)");
    let log = shared.join("fixtures/darshan/vanidl_test_cosmictagger.darshan");
    if log.exists() {
        let tulpar = show("CosmicTagger, Tulpar with page", ours(&log));
        let python = || {
            Command::new("python3")
                .args(["-m", "darshan", "summary", "--output"])
                .arg(folder.path().join("summary.html"))
                .arg(&log)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        };
        let has_judge = Command::new("python3").args(["-c", "import darshan"]).stderr(Stdio::null()).status();
        if has_judge.is_ok_and(|status| status.success()) {
            let theirs = show("CosmicTagger, PyDarshan summary", best(2, python));
            println!(
                "PyDarshan / Tulpar: {:.0} in wall time, {:.0} in CPU time",
                theirs.wall / tulpar.wall,
                theirs.cpu / tulpar.cpu
            );
        } else {
            println!("PyDarshan is not here (pip install darshan): no ratio");
        }
        println!("VaniDL's 339 s, as measured elsewhere / Tulpar: {:.0}", 339.0 / tulpar.wall);
    } else {
        println!("{} is not here", log.display());
    }
    let Some(large) = generated(&shared, folder.path()) else { return };
    let all = show("3,000,000 requests, report", ours(&large));
    let bare = show(
        "3,000,000 requests, inflated only",
        best(3, || Command::new(&own).arg("--inflate").arg(&large).stdout(Stdio::null()).spawn()),
    );
    println!("report / inflating: {:.2} in wall time; {:.0} MB", all.wall / bare.wall, all.memory_mb);
    assert!(all.memory_mb < 200.0, "the memory is not bounded");
    let apart = show("3,000,000 reads apart on one rank", ours(&apart(folder.path())));
    assert!(apart.memory_mb < 200.0, "the memory is not bounded where no two requests touch");
}

/// One rank, one file, and a pause after every read: no time can be joined to another.
fn apart(folder: &Path) -> PathBuf {
    let path = folder.join("apart.darshan");
    let job = Job {
        uid: 1000,
        id: 1,
        processes: 1,
        start_seconds: 1_700_000_000,
        start_nanoseconds: 0,
        end_seconds: 1_700_003_000,
        end_nanoseconds: 0,
        metadata: std::collections::BTreeMap::new(),
        command: "python train.py".to_owned(),
        mounts: Vec::new(),
        coarse: false,
    };
    let file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a log"));
    let mut writer = Writer::new(file, &job).expect("a log");
    writer.names([(7, b"/data/train.h5".to_vec())]).expect("names");
    writer
        .module(Module::DxtPosix, 1, |region| {
            region.trace(7, 0, "node", 0, 3_000_000)?;
            region.segments((0..3_000_000).map(|index| {
                let start = f64::from(index) * 1e-3;
                Segment { offset: i64::from(index) * 4096, length: 4096, start, end: start + 5e-4, thread: 0 }
            }))
        })
        .expect("segments");
    writer.finish(&[]).expect("a log");
    path
}

fn generated(shared: &Path, folder: &Path) -> Option<PathBuf> {
    let log = folder.join("large.darshan");
    let status = Command::new("python3")
        .arg(shared.join("tools/gen_darshan.py"))
        .arg(&log)
        .args(["--files", "10", "--ranks", "10", "--segs", "30000", "--dxtver", "1", "--level", "1"])
        .stdout(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("the generator of large logs, or NumPy, is not here");
        return None;
    }
    Some(log)
}

fn show(name: &str, cost: Cost) -> Cost {
    println!("{name:<34} {:>9.3} {:>9.3} {:>9.1}", cost.wall, cost.cpu, cost.memory_mb);
    cost
}

/// The least of several, by wall time.
fn best(times: usize, mut start: impl FnMut() -> std::io::Result<std::process::Child>) -> Cost {
    let mut costs: Vec<Cost> = (0..times).map(|_| measure(&mut start)).collect();
    costs.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    costs[0]
}

#[expect(clippy::zombie_processes, reason = "`wait4` waits for it, and says what it used")]
fn measure(start: &mut impl FnMut() -> std::io::Result<std::process::Child>) -> Cost {
    let begun = Instant::now();
    let child = start().expect("a process");
    let mut status = 0;
    // SAFETY: both pointers are to live values, and the child is ours and not reaped yet.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage);
        usage
    };
    let wall = begun.elapsed().as_secs_f64();
    assert!(std::process::ExitStatus::from_raw(status).success(), "it failed");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Cost { wall, cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime), memory_mb: usage.ru_maxrss as f64 / 1024.0 }
}
