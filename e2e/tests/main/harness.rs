//! A running pool as tests see it: a fresh folder that the submit host sees too, and commands that run there as an
//! ordinary user. It starts no pool, and it knows nothing of what is tested.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes this long, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Pool {
    /// `e2e/condor` or `e2e/slurm`.
    script: PathBuf,
    /// What is seen inside under the same path.
    share: PathBuf,
    /// Where it runs: the value of `variable`.
    home: PathBuf,
    variable: &'static str,
    /// Who else may be there at the same time.
    _company: Company,
}

/// Tests share a pool, except those that break it. A test asks for its pool once.
static CONDOR: RwLock<()> = RwLock::new(());
static SLURM: RwLock<()> = RwLock::new(());

#[expect(dead_code, reason = "held until the test ends")]
enum Company {
    Others(RwLockReadGuard<'static, ()>),
    Nobody(RwLockWriteGuard<'static, ()>),
}

impl Pool {
    /// The HTCondor pool, or a word about its absence.
    pub(crate) fn condor() -> Option<Self> {
        Self::running("TULPAR_CONDOR", "condor", "HTCondor", || shared(&CONDOR))
    }

    /// The HTCondor pool while no other test uses it: for those who kill its daemons.
    pub(crate) fn condor_alone() -> Option<Self> {
        Self::running("TULPAR_CONDOR", "condor", "HTCondor", || alone(&CONDOR))
    }

    pub(crate) fn slurm() -> Option<Self> {
        Self::running("TULPAR_SLURM", "slurm", "Slurm", || shared(&SLURM))
    }

    /// Slurm while no other test uses it.
    pub(crate) fn slurm_alone() -> Option<Self> {
        Self::running("TULPAR_SLURM", "slurm", "Slurm", || alone(&SLURM))
    }

    fn running(variable: &'static str, script: &str, name: &str, company: impl FnOnce() -> Company) -> Option<Self> {
        let Some(home) = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from) else {
            skipped(&format!(
                "no {name} runs here: start one with `e2e/{script} up` and name its folder in {variable}"
            ));
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let home = home.canonicalize().unwrap_or_else(|error| panic!("{variable}={}: {error}", home.display()));
        Some(Self { script, share: home.join("share"), home, variable, _company: company() })
    }

    /// A fresh folder that belongs to the user inside.
    pub(crate) fn project(&self, name: &str) -> Project<'_> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = self.share.join(format!("{name}-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        // Files are written from outside as root, and from inside as somebody else.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        Project { pool: self, folder }
    }

    fn enter(&self, folder: &Path, root: bool, words: &[&str]) -> Command {
        let mut command = Command::new(&self.script);
        command.env(self.variable, &self.home).current_dir(folder).arg("exec");
        if root {
            command.arg("-r");
        }
        command.args(words);
        command
    }

    /// A program of this machine that sees the pool's network: what it serves is served on the submit host.
    pub(crate) fn beside(&self, program: &str) -> Command {
        let first = fs::read_to_string(self.home.join("pid")).unwrap();
        let mut command = Command::new("nsenter");
        command.args(["-t", first.split(' ').next().unwrap(), "-n", program]).stdin(Stdio::null());
        command
    }

    /// A command as the pool's root.
    pub(crate) fn root(&self, words: &[&str]) -> Said {
        Said::of(self.enter(&self.share, true, words), words)
    }

    /// Our programs, where the pool sees them. Copied once a test process, and in one step, because processes may share
    /// the pool.
    fn programs(&self) -> PathBuf {
        static DONE: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
        let which = usize::from(self.variable == "TULPAR_SLURM");
        DONE[which]
            .get_or_init(|| {
                let target = self.share.join(format!("programs-{}", std::process::id()));
                fs::create_dir_all(&target).unwrap();
                fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
                for (name, path) in [("tulpar", tulpar()), ("tulpar-launch", launch())] {
                    if let Some(path) = path {
                        fs::copy(&path, target.join(name))
                            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    }
                }
                target
            })
            .clone()
    }
}

/// A folder of its own on the submit host.
pub(crate) struct Project<'a> {
    pool: &'a Pool,
    pub(crate) folder: PathBuf,
}

impl Project<'_> {
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        let mut parent = path.parent().unwrap();
        fs::create_dir_all(parent).unwrap();
        while parent != self.folder {
            fs::set_permissions(parent, fs::Permissions::from_mode(0o777)).unwrap();
            parent = parent.parent().unwrap();
        }
        fs::write(&path, text).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o666 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The file's text; empty while it is not there.
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join(name)).unwrap_or_default()).into_owned()
    }

    /// Runs a command as the user.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        Said::of(self.pool.enter(&self.folder, false, words), words)
    }

    /// Runs `tulpar` as the user, with a configuration folder of its own: `config/tulpar`.
    pub(crate) fn tulpar(&self, words: &[&str]) -> Said {
        let line = self.line(words);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        self.run(&line)
    }

    /// The same, with the folder `bin` of the project before all others that programs are looked for in.
    pub(crate) fn tulpar_with_bin(&self, words: &[&str]) -> Said {
        let mut line = self.line(words);
        let path = format!("PATH={}:/usr/local/bin:/usr/bin:/bin", self.folder.join("bin").display());
        line.insert(1, path);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        self.run(&line)
    }

    /// Starts `tulpar` and gives it back while it runs.
    pub(crate) fn start(&self, words: &[&str]) -> Running<'_> {
        let line = self.line(words);
        self.start_program(&line.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts any program as the user and gives it back while it runs.
    pub(crate) fn start_program(&self, words: &[&str]) -> Running<'_> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let note = format!(".started-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut line = vec!["sh", "-c", "echo $$ >\"$0\"; exec \"$@\"", &note];
        line.extend(words);
        let mut command = self.pool.enter(&self.folder, false, &line);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut id = String::new();
        until("the command has started", || {
            id = self.read(&note);
            id.ends_with('\n')
        });
        Running { project: self, child, id: id.trim().to_owned(), words: words.join(" ") }
    }

    fn line(&self, words: &[&str]) -> Vec<String> {
        let tulpar = self.pool.programs().join("tulpar");
        assert!(tulpar.exists(), "the program `tulpar` is not built: `cargo build`, or name it in TULPAR_BIN");
        let config = format!("XDG_CONFIG_HOME={}", self.folder.join("config").display());
        let mut line = vec!["env".to_owned(), config, tulpar.display().to_string()];
        line.extend(words.iter().map(|word| (*word).to_owned()));
        line
    }

    /// Submits what the file describes and gives the number of the cluster.
    pub(crate) fn submit(&self, file: &str) -> u32 {
        let said = self.run(&["condor_submit", "-terse", file]).good();
        let number = said.split('.').next().and_then(|number| number.trim().parse().ok());
        number.unwrap_or_else(|| panic!("condor_submit said {said:?}"))
    }
}

impl Drop for Project<'_> {
    fn drop(&mut self) {
        // What a failed test left is there to be looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A command inside that runs.
pub(crate) struct Running<'a> {
    project: &'a Project<'a>,
    child: Child,
    id: String,
    words: String,
}

impl Running<'_> {
    /// Sends a signal, by its name, to the process itself. It may have ended.
    pub(crate) fn signal(&self, name: &str) {
        self.project.pool.root(&["kill", &format!("-{name}"), &self.id]);
    }

    pub(crate) fn wait(mut self) -> Said {
        // What it says fits into a pipe, so that it never waits for a reader.
        until(&format!("`{}` ends", self.words), || self.child.try_wait().unwrap().is_some());
        let output = self.child.wait_with_output().unwrap();
        Said::from(output, &self.words)
    }
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) words: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    fn of(mut command: Command, words: &[&str]) -> Self {
        Self::from(command.stdin(Stdio::null()).output().unwrap(), &words.join(" "))
    }

    fn from(output: std::process::Output, words: &str) -> Self {
        Self {
            words: words.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Its standard output, when it succeeded.
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "`{}` failed\n{}\n{}", self.words, self.stdout, self.stderr);
        self.stdout
    }
}

fn shared(pool: &'static RwLock<()>) -> Company {
    Company::Others(pool.read().unwrap_or_else(PoisonError::into_inner))
}

fn alone(pool: &'static RwLock<()>) -> Company {
    Company::Nobody(pool.write().unwrap_or_else(PoisonError::into_inner))
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "after {PATIENCE:?} not yet: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The program that is tested: TULPAR_BIN, or what `cargo build` left beside this test.
pub(crate) fn tulpar() -> Option<PathBuf> {
    named("TULPAR_BIN").or_else(|| Some(target()?.join("debug/tulpar")).filter(|path| path.exists()))
}

/// The static program for workers: TULPAR_LAUNCH, or what `cargo launch` left.
fn launch() -> Option<PathBuf> {
    named("TULPAR_LAUNCH").or_else(|| {
        let folders = fs::read_dir(target()?).ok()?;
        folders.flatten().map(|entry| entry.path().join("launch/tulpar-launch")).find(|path| path.exists())
    })
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `target/debug/deps/main-…` is this test.
fn target() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.ancestors().nth(3)?.to_owned())
}

/// Says loudly that something could not be tried here; `./test` counts these.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        let file = fs::File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// How many times the usual work a campaign does; 1 in the everyday tests.
pub(crate) fn campaign() -> u64 {
    std::env::var("TULPAR_CAMPAIGN").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
