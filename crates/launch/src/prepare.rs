//! From a spec to a running process: sandbox, checkpoint, inputs, variables, command.

use crate::checkpoint::Checkpoints;
use crate::container::{self, Machine, Scene};
use crate::environment::{self, Told, Variables};
use crate::inputs::{Given, is_safe};
use crate::launcher::Shared;
use crate::marker::{self, Marker};
use crate::refusal::Refusal;
use crate::sample::Samples;
use crate::spawn::{self, Apart, Program, SpawnError};
use crate::table::{Alarm, Running, Stage};
use crate::{Notice, command, finish, sandbox, script, told};
use rustix::event::epoll;
use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use tulpar_core::ids::JobId;
use tulpar_core::job::{CommandLine, JobSpec, Usage};
use tulpar_core::rooms::rooms;
use tulpar_core::units::Timestamp;

pub(crate) fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64))
}

pub(crate) fn prepare(shared: &Shared, spec: Box<JobSpec>) {
    let stage = shared.table().stages.get(&spec.attempt).cloned();
    if let Some(Stage::Queued(Some(why))) = stage {
        finish::report_unstarted(shared, &spec, why);
        return;
    }
    let serial = shared
        .serial
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |serial| Some(marker::next_serial(serial)))
        .unwrap_or(0);
    match start(shared, spec, serial) {
        Ok(running) => register(shared, running, serial),
        Err((spec, refusal)) => {
            // Nothing ran there, so there is nothing to look at.
            sandbox::remove_attempt(&sandbox::folder_of(&shared.folders.attempts, spec.attempt));
            finish::report_unstarted(shared, &spec, refusal.ending());
        }
    }
}

/// From here the watching thread knows the attempt. `Started` goes out first: it must not come after `Ended`.
fn register(shared: &Shared, running: Running, serial: u32) {
    let attempt = running.spec.attempt;
    let now = Instant::now();
    (shared.tell)(Notice::Started(attempt));
    if !running.spec.gpus.is_empty() {
        shared.gpus.begin(shared.options.sample_every);
    }
    let mut table = shared.table();
    let deadline = running.deadline();
    let limited = running.spec.limits.memory.0 > 0;
    let is_trial = !running.spec.objectives.is_empty();
    let added =
        epoll::add(&shared.epoll, &running.pidfd, epoll::EventData::new_u64(u64::from(serial)), epoll::EventFlags::IN);
    let before = table.stages.insert(attempt, Stage::Running(serial));
    table.running.insert(serial, running);
    let mut wake = None;
    if let Some(deadline) = deadline {
        table.alarms.insert((deadline, serial, Alarm::Walltime));
        wake = Some(deadline);
    }
    if limited {
        table.memory_limited += 1;
    }
    table.trials += usize::from(is_trial);
    table.unseen += 1;
    table.has_started = true;
    let soon = now + Duration::from_millis(100);
    wake = Some(wake.map_or(soon, |wake: Instant| wake.min(soon)));
    if let Some(Stage::Queued(Some(why))) = before {
        table.stop(serial, why, now);
        wake = Some(now);
    }
    if added.is_err() {
        // Unwatched it would never end for us. Only lack of kernel memory leads here.
        table.kill(serial, now);
        wake = Some(now);
    }
    if let Some(at) = wake {
        shared.wake_before(&table, at);
    }
}

type Refused = (Box<JobSpec>, Refusal);

fn start(shared: &Shared, spec: Box<JobSpec>, serial: u32) -> Result<Running, Refused> {
    match try_start(shared, &spec, serial) {
        Ok(started) => Ok(Running {
            folder: started.folder,
            streams: started.streams,
            secrets: started.secrets,
            capture: started.capture,
            io: None,
            remove_container: started.remove_container,
            input_files: started.given.files,
            input_bytes: started.given.bytes,
            inputs_seen: started.given.seen,
            pid: started.child.pid,
            pidfd: started.child.pidfd,
            clock: started.clock,
            started: started.at,
            stop: None,
            killed: false,
            left: None,
            wall: Duration::ZERO,
            out_of_memory: false,
            seen: false,
            usage: Usage::default(),
            strays: 0,
            samples: Samples::default(),
            hearing: Default::default(),
            told: None,
            left_out: Vec::new(),
            spec,
        }),
        Err(refusal) => Err((spec, refusal)),
    }
}

struct Started {
    folder: PathBuf,
    streams: Option<sandbox::Streams>,
    secrets: Vec<String>,
    capture: Option<crate::capture::Capture>,
    remove_container: Option<Vec<String>>,
    given: Given,
    child: spawn::Child,
    clock: Instant,
    at: Timestamp,
}

fn try_start(shared: &Shared, spec: &JobSpec, serial: u32) -> Result<Started, Refusal> {
    command::check_one_environment(spec)?;
    let marker = shared.inherited.unwrap_or_else(|| shared.owner.mark(serial));
    let checkpoints = Checkpoints::of(&shared.folders.checkpoints, &shared.folders.attempts, spec);
    let shared_checkpoints = checkpoints.as_ref().map(Checkpoints::shared_folder);
    let variables = variables(shared, spec, marker, shared_checkpoints.as_deref())?;
    let secrets = spec.secrets.iter().filter_map(|name| variables.get(name).cloned()).collect();
    if let Some(checkpoints) = &checkpoints {
        checkpoints.rescue(spec.attempt.n).map_err(Refusal::Checkpoint)?;
    }
    let node = shared.node_folder(spec);
    let sandbox = shared.sandboxes.make(spec.attempt, node).map_err(Refusal::sandbox("making its folder"))?;
    if !spec.secrets.is_empty() {
        sandbox.streams.make_private().map_err(Refusal::sandbox("making its folder"))?;
    }
    let work = sandbox.folder.join("work");
    let restored = match &checkpoints {
        Some(checkpoints) => checkpoints.restore(&work).map_err(Refusal::Checkpoint)?,
        None => HashSet::new(),
    };
    let given = if spec.script.is_some() {
        write_script(shared, spec, &work)?;
        Given::default()
    } else {
        let given = shared.giver(&work).give(&spec.inputs, &restored)?;
        make_room(&work, spec)?;
        given
    };
    let mut command = Command { shared, spec, work: &work, variables, prefix: Vec::new(), remove_container: None };
    command.enter_environments()?;
    let capture = crate::capture::begin(spec, &work, &mut command.variables);
    let streams = if shared.options.inside {
        [shared.nothing.as_raw_fd(), libc::STDOUT_FILENO, libc::STDERR_FILENO]
    } else {
        [shared.nothing.as_raw_fd(), sandbox.streams.stdout.as_raw_fd(), sandbox.streams.stderr.as_raw_fd()]
    };
    let words = command.words(shared_checkpoints.as_deref(), marker)?;
    if command.remove_container.is_some() && !shared.options.inside {
        container::note_use(&shared.folders.attempts);
    }
    let at = now();
    let clock = Instant::now();
    let child = match command.execute(&words, streams, marker) {
        // What the kernel will not run (a script without `#!`) a shell may.
        Err(Refusal::NotRunnable { .. })
            if matches!(spec.command, CommandLine::Shell { .. }) && !is_through_shell(&words) =>
        {
            let own = command::words(&spec.command, |_| false)?;
            let words: Vec<String> = shared.options.around.iter().cloned().chain(own).collect();
            command.execute(&words, streams, marker)?
        }
        other => other?,
    };
    let remove_container = command.remove_container.take();
    let streams = shared.sandboxes.hold(sandbox.streams);
    Ok(Started { folder: sandbox.folder, streams, secrets, capture, remove_container, given, child, clock, at })
}

/// The folder for the attempts of what a job runs that is more than a command.
pub(crate) fn inside(shared: &Shared, job: JobId) -> PathBuf {
    crate::inside_folder(&shared.folders.attempts, job)
}

/// A job that is more than a command becomes a process of this very program, which finds all it needs in its folder.
fn write_script(shared: &Shared, spec: &JobSpec, work: &Path) -> Result<(), Refusal> {
    let told = script::Told {
        spec: spec.clone(),
        project: shared.folders.project.clone(),
        objects: shared.folders.objects.clone(),
        checkpoints: shared.folders.checkpoints.clone(),
        attempts: inside(shared, spec.attempt.job),
        node: shared.node_folder(spec).map(Path::to_owned),
        run: shared.options.run.clone(),
        keep: shared.options.keep_sandboxes.into(),
        link_large: shared.options.link_large,
    };
    script::write(work, &told).map_err(Refusal::sandbox("writing its script"))
}

fn make_room(work: &Path, spec: &JobSpec) -> Result<(), Refusal> {
    for folder in rooms(&spec.outputs, &spec.command).into_iter().filter(|folder| is_safe(folder)) {
        std::fs::create_dir_all(work.join(folder)).map_err(Refusal::sandbox("making room for outputs"))?;
    }
    Ok(())
}

fn is_through_shell(words: &[String]) -> bool {
    words.iter().rev().nth(1).is_some_and(|word| word == "-c")
}

fn variables(
    shared: &Shared,
    spec: &JobSpec,
    marker: Marker,
    checkpoints: Option<&Path>,
) -> Result<Variables, Refusal> {
    let told = Told { run: &shared.options.run, marker, checkpoints };
    let mut variables = environment::variables(&shared.outside, spec, &told, &*shared.options.secrets)?;
    if spec.script.is_none() {
        variables.insert(told::VARIABLE.into(), told::FILE.into());
    } else {
        // They end with the script: what it runs sees a clean set again.
        for name in script::staging_names() {
            if let Some(value) = (shared.options.secrets)(name) {
                variables.insert(name.into(), value);
            }
        }
        // Nodes that are played on one machine have nothing in common either.
        if let (Some(kept), Some(_)) = (variables.get_mut(script::NODE_FOLDER), shared.node_folder(spec)) {
            *kept = Path::new(&kept).join(&spec.node).to_string_lossy().into_owned();
        }
    }
    Ok(variables)
}

struct Command<'a> {
    shared: &'a Shared,
    spec: &'a JobSpec,
    work: &'a Path,
    variables: Variables,
    /// Words before the command, from conda.
    prefix: Vec<String>,
    remove_container: Option<Vec<String>>,
}

impl Command<'_> {
    fn enter_environments(&mut self) -> Result<(), Refusal> {
        if self.spec.script.is_some() {
            return Ok(());
        }
        let project = &self.shared.folders.project;
        if let Some(venv) = &self.spec.venv {
            command::enter_venv(venv, project, &mut self.variables)?;
        }
        if let Some(conda) = &self.spec.conda {
            let path = self.variables["PATH"].clone();
            self.prefix =
                command::enter_conda(conda, project, &mut self.variables, |name| command::find_program(name, &path))?;
        }
        Ok(())
    }

    fn words(&mut self, checkpoints: Option<&Path>, marker: Marker) -> Result<Vec<String>, Refusal> {
        let words = self.own_words(checkpoints, marker)?;
        Ok(self.shared.options.around.iter().cloned().chain(words).collect())
    }

    fn own_words(&mut self, checkpoints: Option<&Path>, marker: Marker) -> Result<Vec<String>, Refusal> {
        if self.spec.script.is_some() {
            let arguments = self.shared.options.script.as_ref().ok_or(Refusal::NoScripts)?;
            if script::uses_containers(self.spec) {
                self.remove_container = Some(container::removal_of_all(&container::name_of(marker, None)));
            }
            let program = std::env::current_exe().map_err(Refusal::sandbox("finding this program"))?;
            return Ok(std::iter::once(program.to_string_lossy().into_owned()).chain(arguments.clone()).collect());
        }
        // What a shell reads before the line can change what its words mean; inside another environment we cannot look.
        let needs_shell = self.spec.container.is_some()
            || !self.prefix.is_empty()
            || ["BASH_ENV", "ENV"].iter().any(|name| self.spec.variables.contains_key(*name))
            || command::looks_here(&self.variables["PATH"]);
        let words = command::words(&self.spec.command, |program| !needs_shell && self.find(program).is_some())?;
        let Some(image) = &self.spec.container else {
            return Ok(self.prefix.iter().cloned().chain(words).collect());
        };
        let path = self.variables["PATH"].clone();
        let scene = Scene {
            project: &self.shared.folders.project,
            objects: self.shared.objects.folder(),
            work: self.work,
            checkpoints,
            elsewhere: container::folders_elsewhere(&self.spec.inputs, &self.shared.folders.project),
            gpus: !self.spec.gpus.is_empty(),
            variables: &self.variables,
            name: container::name_of(marker, Some(self.spec.attempt)),
            user: (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        };
        let machine = Machine {
            find: &|name| command::find_program(name, &path),
            answers: &|client| self.shared.services.answers(client, &container::of_client(&self.variables, None)),
        };
        let contained = container::contain(image, words, &scene, &machine)?;
        self.remove_container = contained.remove;
        self.variables = contained.variables;
        Ok(contained.words)
    }

    /// Searched once a run for each program, not once a task.
    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(self.work.join(program)).filter(|file| file.exists()).map(|_| PathBuf::from(program));
        }
        let path = &self.variables["PATH"];
        let key = format!("{path}\0{program}");
        if let Some(found) = self.shared.programs.lock().expect("no panic while held").get(&key) {
            return Some(found.clone());
        }
        let found = command::find_program(program, path)?;
        self.shared.programs.lock().expect("no panic while held").insert(key, found.clone());
        Some(found)
    }

    fn execute(&self, words: &[String], streams: [i32; 3], marker: Marker) -> Result<spawn::Child, Refusal> {
        let program = words.first().ok_or(Refusal::NothingToRun)?;
        let file = self.find(program).ok_or_else(|| Refusal::NoProgram(program.clone()))?;
        match self.spawn(&file, words, streams, marker) {
            Err(SpawnError::Execute(error)) if error.kind() == io::ErrorKind::NotFound => {
                // It may have moved since it was found, or its interpreter is missing.
                self.shared.programs.lock().expect("no panic while held").clear();
                match self.find(program) {
                    Some(again) if again != file => {
                        self.spawn(&again, words, streams, marker).map_err(|error| refusal(program, error))
                    }
                    _ => Err(refusal(program, SpawnError::Execute(error))),
                }
            }
            other => other.map_err(|error| refusal(program, error)),
        }
    }

    fn spawn(
        &self,
        file: &Path,
        words: &[String],
        streams: [i32; 3],
        marker: Marker,
    ) -> Result<spawn::Child, SpawnError> {
        let zero = |_| SpawnError::Execute(io::Error::from(io::ErrorKind::InvalidInput));
        let string = |text: &str| CString::new(text).map_err(zero);
        let arguments = words.iter().map(|word| string(word)).collect::<Result<Vec<_>, _>>()?;
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| string(&format!("{name}={value}")))
            .collect::<Result<Vec<_>, _>>()?;
        spawn::spawn(&Program {
            path: &path_string(file).map_err(zero)?,
            arguments: &arguments,
            variables: &variables,
            folder: &path_string(self.work).map_err(zero)?,
            stdin: streams[0],
            stdout: streams[1],
            stderr: streams[2],
            apart: Apart::Group,
            mark: Some(marker.limit()),
            open_files: Some(self.shared.open_files),
            cpus: spawn::cpus_at(&self.spec.cores),
        })
    }
}

pub(crate) fn path_string(path: &Path) -> Result<CString, std::ffi::NulError> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
}

fn refusal(program: &str, error: SpawnError) -> Refusal {
    match error {
        SpawnError::Execute(error) => match error.raw_os_error() {
            None => Refusal::ZeroByte,
            Some(libc::E2BIG) => Refusal::TooLong,
            _ => Refusal::NotRunnable { program: program.into(), error },
        },
        error => Refusal::Start { program: program.into(), error },
    }
}
