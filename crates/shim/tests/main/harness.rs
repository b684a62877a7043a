//! What the tests share: a folder, programs in C and Python, a recording, and the log as numbers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use tulpar_shim::{Mode, Recording, Summary};
use tulpar_trace::darshan::{Log, Module, Operation, Record, Segment, Trace, Visitor, counters};

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        let file = File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// A folder of its own, with a file `data` of 100,000 bytes.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), vec![7; 100_000]).unwrap();
        Place { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles a program in C; `None` where there is no compiler or it cannot do that.
    pub(crate) fn compile(&self, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
        let file = self.path(&format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        let program = self.path(name);
        let output = Command::new("cc").arg("-O1").arg(&file).args(["-o"]).arg(&program).args(flags).output();
        match output {
            Ok(output) if output.status.success() => Some(program),
            Ok(output) => panic!("cc: {}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => {
                skipped("there is no C compiler: programs in C are not recorded");
                None
            }
        }
    }

    /// Records a program in C that runs in the folder.
    pub(crate) fn record_c(&self, mode: Mode, source: &str) -> Option<Recorded> {
        let program = self.compile("program", source, &["-pthread"])?;
        Some(self.record(mode, &mut Command::new(program)))
    }

    pub(crate) fn record_python(&self, mode: Mode, source: &str) -> Recorded {
        self.record(mode, Command::new(python()).args(["-c", source]))
    }

    pub(crate) fn record(&self, mode: Mode, command: &mut Command) -> Recorded {
        let recording = Recording::begin(&self.path("recording"), mode, false).unwrap();
        let preload = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, value)| value);
        let settings = recording.environment(preload);
        let status = command.current_dir(self.folder.path()).envs(settings).status().unwrap();
        let log = self.path("log.darshan");
        let summary = recording.finish(&["a".to_owned(), "command".to_owned()], &log).unwrap();
        assert!(!self.path("recording").exists(), "nothing is left behind");
        let read = Read::new(&log);
        Recorded { status, summary, log, read }
    }
}

/// The real interpreter: a wrapper that is a script of shells would be recorded too.
pub(crate) fn python() -> PathBuf {
    static FOUND: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    FOUND
        .get_or_init(|| {
            let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
            PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
        })
        .clone()
}

pub(crate) struct Recorded {
    pub(crate) status: ExitStatus,
    pub(crate) summary: Summary,
    pub(crate) log: PathBuf,
    pub(crate) read: Read,
}

impl Recorded {
    /// A counter, e.g. `POSIX_READS`, of files whose name ends so, over all processes.
    pub(crate) fn sum(&self, name: &str, counter: &str) -> i64 {
        self.read.of(name).map(|record| value(record, counter)).sum()
    }

    /// Processes that have a record of such a file.
    pub(crate) fn ranks(&self, name: &str) -> usize {
        self.read.of(name).map(|record| record.rank).collect::<std::collections::BTreeSet<_>>().len()
    }
}

fn value(record: &Record, counter: &str) -> i64 {
    let (integers, _) = counters::names(record.module).unwrap();
    integers.iter().position(|name| *name == counter).map_or(0, |index| record.integers[index])
}

/// A whole log in memory.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) names: BTreeMap<u64, String>,
    pub(crate) records: Vec<Record>,
    pub(crate) segments: Vec<(Trace, Operation, Segment)>,
    pub(crate) processes: i64,
    pub(crate) run_time: f64,
    pub(crate) metadata: BTreeMap<String, String>,
}

impl Read {
    pub(crate) fn new(path: &Path) -> Read {
        let mut log = Log::open(path).unwrap();
        let job = log.job().clone();
        let mut read = Read {
            names: log.names().iter().map(|(id, name)| (id, name.to_owned())).collect(),
            processes: job.processes,
            run_time: job.run_time(),
            metadata: job.metadata.clone(),
            ..Read::default()
        };
        let damages = log.visit(&mut read);
        assert!(damages.is_empty(), "{damages:?}");
        read
    }

    pub(crate) fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> + 'a {
        self.records.iter().filter(move |record| self.names[&record.id].ends_with(name))
    }

    pub(crate) fn segments_of(&self, name: &str) -> Vec<(Operation, i64, i64)> {
        let all = self.segments.iter().filter(|(trace, ..)| self.names[&trace.id].ends_with(name));
        all.map(|(_, operation, segment)| (*operation, segment.offset, segment.length)).collect()
    }
}

impl Visitor for Read {
    fn record(&mut self, record: &Record) {
        if [Module::Posix, Module::Stdio].contains(&record.module) {
            self.records.push(record.clone());
        }
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        self.segments.extend(segments.iter().map(|segment| (trace.clone(), operation, *segment)));
    }
}
