//! A folder of its own, an environment of its own, and the real binary in it.

use insta::internals::SettingsBindDropGuard;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine; only a hang reaches it.
const BOUND: Duration = Duration::from_secs(120);

/// A folder with a workflow. Snapshots of a test that holds one have times, sizes and paths taken out.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
    _filters: SettingsBindDropGuard,
}

/// What the program said, and how it ended.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit code {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        for (name, text) in [("stdout", &self.out), ("stderr", &self.err)] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}

impl Said {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn done(self) -> Self {
        self.expect(0)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl Scene {
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = tempfile::tempdir().expect("a temporary folder");
        Self { folder, home, _filters: filters().bind_to_scope() }
    }

    /// With this text as its `workflow.yaml`.
    pub(crate) fn new(workflow: &str) -> Self {
        let scene = Self::empty();
        scene.write("workflow.yaml", workflow);
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a folder").join(name)
    }

    pub(crate) fn home(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("inside the folder")).expect("a folder");
        fs::write(&path, text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The only object of the cache that holds these words.
    #[track_caller]
    pub(crate) fn object(&self, content: &str) -> PathBuf {
        let folders = fs::read_dir(self.path(".tulpar/cache/objects")).expect("a cache").flatten();
        let objects = folders.flat_map(|folder| fs::read_dir(folder.path()).expect("a folder").flatten());
        let mut found = objects
            .map(|object| object.path())
            .filter(|path| fs::read(path).is_ok_and(|bytes| bytes == content.as_bytes()));
        let first = found.next().unwrap_or_else(|| panic!("no object holds {content:?}"));
        assert!(found.next().is_none());
        first
    }

    /// The binary with nothing of our environment but the PATH.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tulpar"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("TERM", "dumb")
            .env("COLUMNS", "100")
            .stdin(Stdio::null());
        command
    }

    /// Runs `tulpar` with the words of a line; `'…'` keeps words together.
    pub(crate) fn tulpar(&self, line: &str) -> Said {
        let words = words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.say(self.command(&words))
    }

    pub(crate) fn say(&self, command: Command) -> Said {
        self.start(command).end()
    }

    pub(crate) fn start(&self, mut command: Command) -> Running {
        let out = tempfile::tempfile().expect("a file");
        let err = tempfile::tempfile().expect("a file");
        let child = command
            .stdout(out.try_clone().expect("a descriptor"))
            .stderr(err.try_clone().expect("a descriptor"))
            .spawn()
            .expect("tulpar starts");
        Running { child, out, err, folder: self.path("") }
    }
}

/// The program in the background, with what it has said so far.
pub(crate) struct Running {
    child: Child,
    out: File,
    err: File,
    folder: PathBuf,
}

impl Running {
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([format!("-{signal}"), self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }

    pub(crate) fn end(mut self) -> Said {
        let mut code = None;
        wait_for("the program ends", || {
            let status = self.child.try_wait().expect("a child");
            code = status.map(|status| status.code());
            status.is_some()
        });
        let text = |file: &File| {
            let mut bytes = vec![0; file.metadata().expect("a file").len() as usize];
            file.read_exact_at(&mut bytes, 0).expect("its whole length");
            let folder = self.folder.display().to_string();
            String::from_utf8(bytes).expect("text").replace(folder.trim_end_matches('/'), "<folder>")
        };
        Said { code: code.flatten(), out: text(&self.out), err: text(&self.err) }
    }
}

/// Looks again and again until it is true; fails after a bound that only a hang reaches.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + BOUND;
    while !condition() {
        assert!(Instant::now() < until, "waited too long until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().expect("one at least").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What differs from run to run and from machine to machine. Rows of tables are as wide as these, so spaces
/// between columns are made equal.
fn filters() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings.set_omit_expression(true);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    let version = env!("CARGO_PKG_VERSION").replace('.', r"\.");
    let filters = [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "<time>"),
        (r"\+\d+\.\d{3} s", "+<time>"),
        (r"\b[0-9a-f]{64}\b", "<digest>"),
        (r"\b[0-9a-f]{12}\b", "<digest>"),
        // Of a short task nobody may have seen the memory.
        (r", at most \d+(\.\d+)? \S+ of memory", ""),
        (r"  -  ", "  <size>  "),
        (r"\b\d+(\.\d+)? (ms|s)\b", "<duration>"),
        (r"\b\d+(\.\d+)? (B|kB|MB|GB|TB)\b", "<size>"),
        (r"\b\d+ %", "<percent>"),
        (r"process \d+", "process <number>"),
        (r"took +<duration>", "took <duration>"),
        (&format!(r"\b{version}\b"), "<version>"),
        (&format!(r"\b{}\b", host.trim()), "<host>"),
        (r"(?m)^ +\+<time>", "+<time>"),
        (r"(\S)  +", "$1  "),
        (r" +\n", "\n"),
    ];
    for (pattern, replacement) in filters {
        settings.add_filter(pattern, replacement);
    }
    settings
}

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        use std::io::Write;
        let file = File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// Every file below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}
