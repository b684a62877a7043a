//! From a process that is over to a report: ending, outputs, checkpoint, record.

use crate::checkpoint::Checkpoints;
use crate::collect::{self, CollectError, Collected};
use crate::commit::Conclusion;
use crate::launcher::Shared;
use crate::process::Left;
use crate::queue::Work;
use crate::shown::Shown;
use crate::table::Running;
use crate::{Keep, Notice, prepare, refusal, sandbox, script, told};
use crossbeam_channel::Sender;
use tulpar_core::job::{Ending, IoRecord, JobSpec, OutputFile, Record, Report, ScriptReport, Told};
use tulpar_core::units::Timestamp;

/// A program that saved its state and wants to be continued says so with this code.
const CONTINUE_LATER: i32 = 85;
const TAIL_LINES: usize = 20;
const TAIL_BYTES: usize = 4096;

pub(crate) fn finish(shared: &Shared, mut running: Box<Running>, conclusions: &Sender<Conclusion>) {
    if !running.spec.gpus.is_empty() {
        shared.gpus.end();
    }
    if running.killed {
        remove_container(running.remove_container.take());
    }
    // Before outputs are looked for: it lies among them.
    if let Some(capture) = running.capture.take() {
        running.io = Some(Box::new(match &shared.options.recordings {
            Some(folder) => crate::capture::hand_over(capture, folder),
            None => crate::capture::finish(capture, &running.spec.command, &running.folder),
        }));
    }
    let mut ending = ending(&running);
    if running.spec.script.is_some() {
        return finish_script(shared, *running, ending);
    }
    let changed = changed_inputs(shared, &running);
    if ending.is_success() && !changed.is_empty() {
        // Nobody can say which content it read: its result belongs to no key.
        ending = Ending::InputsChanged(changed);
    }
    let (mut told, mut lacks_files) = (None, false);
    let collected = match ending.is_success() {
        true => told_by(shared, &running).and_then(|said| {
            told = said;
            let collected = collect_outputs(shared, &mut running);
            lacks_files = matches!(collected, Err(Ending::Incomplete(_)));
            collected
        }),
        false => Ok(Vec::new()),
    };
    if running.stop == Some(Ending::Checkpointed) && !went_on(shared, &running) {
        // Continued again and again it would never end.
        ending = Ending::Walltime;
    }
    // Before the outputs are moved away: a file may be both.
    save_checkpoint(shared, &running);
    match collected {
        Err(ending) if lacks_files => {
            running.told = told;
            let found = made(shared, &mut running);
            // Cannot fail while this thread lives: it holds a sender, so the other end waits.
            let _ = conclusions.send(Conclusion { running, ending, found });
        }
        Err(ending) => report(shared, *running, ending, Vec::new()),
        Ok(found) if found.is_empty() => {
            running.told = told;
            report(shared, *running, ending, Vec::new());
        }
        Ok(found) => {
            running.told = told;
            // Cannot fail while this thread lives: it holds a sender, so the other end waits.
            let _ = conclusions.send(Conclusion { running, ending, found });
        }
    }
}

/// Reports an attempt that left nothing to collect, without waking another thread for it. Others are given back.
pub(crate) fn at_once(shared: &Shared, running: Running) -> Option<Running> {
    let spec = &running.spec;
    if spec.script.is_some()
        || !spec.outputs.is_empty()
        || !spec.inputs.is_empty()
        || spec.checkpoint.is_some()
        || !spec.gpus.is_empty()
        || !spec.objectives.is_empty()
        || running.remove_container.is_some()
        || running.capture.is_some()
    {
        return Some(running);
    }
    let ending = ending(&running);
    report(shared, running, ending, Vec::new());
    None
}

/// A script has collected its outputs itself, and knows better than its exit code how it ended.
fn finish_script(shared: &Shared, mut running: Running, ending: Ending) {
    let mut result = script::result(&running.folder.join("work"));
    running.io = result.as_mut().and_then(|result| result.io.take()).map(Box::new);
    match (ending, result) {
        (Ending::Exit(_), Some(result)) => {
            (running.input_files, running.input_bytes) = (result.input_files, result.input_bytes);
            let script = Some(Box::new(result.report));
            running.told = result.told;
            report_with(shared, running, result.ending, result.outputs, script);
        }
        (Ending::Exit(0), None) => {
            report(shared, running, Ending::Refused("the job ended without saying how".into()), Vec::new());
        }
        // Whoever ended it knows why; what it had done is told all the same.
        (ending, result) => {
            let script = result.map(|result| Box::new(result.report));
            report_with(shared, running, ending, Vec::new(), script);
        }
    }
}

fn ending(running: &Running) -> Ending {
    let keeps_state = running.spec.checkpoint.is_some();
    let asked_to_continue = keeps_state && running.left == Some(Left::Exit(CONTINUE_LATER));
    match (&running.stop, running.left) {
        // It used the grace time well: its time limit is no reason to ask for more.
        (Some(Ending::Walltime), _) if asked_to_continue => Ending::Checkpointed,
        (Some(why), _) => why.clone(),
        (None, _) if running.out_of_memory => Ending::Memory,
        (None, _) if asked_to_continue => Ending::Checkpointed,
        (None, Some(Left::Exit(code))) => Ending::Exit(code),
        (None, Some(Left::Signal(signal))) => Ending::Signal(signal),
        (None, None) => Ending::NodeLost,
    }
}

/// The numbers that a trial must say, or the metrics that another task reported, once it has ended well.
fn told_by(shared: &Shared, running: &Running) -> Result<Option<Box<Told>>, Ending> {
    if running.spec.objectives.is_empty() {
        let values = told::metrics(&running.folder.join("work"));
        return Ok((!values.is_empty()).then(|| Box::new(Told { values, steps: Vec::new() })));
    }
    let mut ears = told::Ears::of(&running.folder);
    if shared.options.inside {
        // It prints where the job does that it is part of.
        ears.stdout = "../stdout".into();
    }
    match told::read(&ears, &running.spec.objectives) {
        Ok(told) => Ok(Some(Box::new(told))),
        Err(lacks) => Err(Ending::Incomplete(lacks.iter().map(told::Lack::words).collect())),
    }
}

/// Inputs that came for this attempt alone are its own to change.
fn changed_inputs(shared: &Shared, running: &Running) -> Vec<String> {
    if shared.options.arrived {
        return Vec::new();
    }
    shared.giver(&running.folder.join("work")).changed(&running.spec.inputs, &running.inputs_seen)
}

fn collect_outputs(shared: &Shared, running: &mut Running) -> Result<Vec<collect::Found>, Ending> {
    if running.spec.outputs.is_empty() {
        return Ok(Vec::new());
    }
    let work = running.folder.join("work");
    let shown = Shown::new(&running.spec.inputs, &running.inputs_seen, shared.giver(&work));
    match collect::collect(&work, &running.spec.outputs, &shown) {
        Ok(Collected::Missing(missing)) => Err(Ending::Incomplete(missing)),
        Ok(Collected::All { mut found, left_out }) => {
            running.left_out = left_out;
            match shared.objects.stage(&mut found) {
                Ok(()) => Ok(found),
                Err(error) => Err(refusal::ending(error.to_string(), Some(&error.error))),
            }
        }
        Err(error) => {
            let CollectError::Read { error: cause, .. } = &error;
            Err(refusal::ending(error.to_string(), Some(cause)))
        }
    }
}

/// Stages the files of an attempt that misses a declared output. Without that, only its sandbox has them.
fn made(shared: &Shared, running: &mut Running) -> Vec<collect::Found> {
    // A job of several tasks keeps its sandbox as it is: the next task may need what is in it.
    if shared.options.inside {
        return Vec::new();
    }
    let work = running.folder.join("work");
    let shown = Shown::new(&running.spec.inputs, &running.inputs_seen, shared.giver(&work));
    let mut found = match collect::made(&work, &running.spec, &shown) {
        Ok(Ok(found)) => found,
        Ok(Err(many)) => {
            running.left_out = vec![format!("all {many} files, which are too many; its sandbox has them")];
            return Vec::new();
        }
        Err(_) => return Vec::new(),
    };
    match shared.objects.stage(&mut found) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// It saved something of its state since it started.
fn went_on(shared: &Shared, running: &Running) -> bool {
    let checkpoints = Checkpoints::of(&shared.folders.checkpoints, &shared.folders.attempts, &running.spec);
    let started = std::time::UNIX_EPOCH + std::time::Duration::from_micros(running.started.0);
    checkpoints.is_some_and(|checkpoints| checkpoints.touched_since(&running.folder.join("work"), started))
}

/// After every ending. A checkpoint that cannot be saved is a loss of time, not of the attempt.
fn save_checkpoint(shared: &Shared, running: &Running) {
    if let Some(checkpoints) = Checkpoints::of(&shared.folders.checkpoints, &shared.folders.attempts, &running.spec) {
        let _ = checkpoints.save(running.spec.attempt.n, &running.folder.join("work"));
    }
}

/// The client of a container service was killed; what it started is not its child and lives on.
pub(crate) fn remove_container(words: Option<Vec<String>>) {
    use std::process::{Command, Stdio};
    if let Some([program, arguments @ ..]) = words.as_deref() {
        let _ = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// Says how it ended, then tidies up: whoever waits for the outputs does not wait for that.
pub(crate) fn report(shared: &Shared, running: Running, ending: Ending, outputs: Vec<OutputFile>) {
    report_with(shared, running, ending, outputs, None);
}

fn report_with(
    shared: &Shared,
    mut running: Running,
    ending: Ending,
    outputs: Vec<OutputFile>,
    script: Option<Box<ScriptReport>>,
) {
    let mut usage = running.usage;
    usage.wall_us = running.wall.as_micros() as u64;
    usage.peak_rss = running.samples.peak_memory(usage.peak_rss);
    usage.peak_gpu_memory = running.samples.peak_gpu_memory();
    usage.gpu_utilisation = running.samples.gpu_utilisation();
    let stderr_tail = if ending.is_success() {
        String::new()
    } else {
        let tail = sandbox::tail(&running.folder.join("stderr"), TAIL_LINES, TAIL_BYTES);
        // A task may print what it should not; the tail travels into the journal, so it is masked.
        let tail = crate::redact::Redaction::new(running.secrets.iter().cloned()).text(tail);
        match crate::readonly::advice(&running.spec.inputs, &tail) {
            Some(advice) if failed_by_itself(&ending) => format!("{tail}\n{advice}"),
            _ => tail,
        }
    };
    let keep_work = match shared.options.keep_sandboxes {
        Keep::Always => true,
        Keep::Never => false,
        Keep::Failed => failed_by_itself(&ending),
    };
    let samples = running.samples.take();
    let ended = Timestamp(running.started.0 + usage.wall_us);
    let told = running.told.take();
    let left_out = std::mem::take(&mut running.left_out);
    let started = running.started;
    let report = Report { ending, started, ended, usage, outputs, stderr_tail, script, told, left_out };
    let counted = (running.input_files, running.input_bytes);
    deliver(shared, &running.spec, report, samples, counted, running.io.take());
    let recorded = running.spec.io.is_some();
    let given = !keep_work && running.spec.script.is_none();
    let inputs = if given { std::mem::take(&mut running.spec.inputs) } else { Vec::new() };
    shared.queue.push([Work::Tidy(sandbox::Leftover {
        folder: running.folder,
        streams: running.streams,
        keep_work,
        recorded,
        inputs,
    })]);
}

fn failed_by_itself(ending: &Ending) -> bool {
    match ending {
        Ending::Exit(code) => *code != 0,
        Ending::Signal(_) | Ending::Walltime | Ending::Memory | Ending::Incomplete(_) | Ending::Refused(_) => true,
        Ending::InputsChanged(_) => true,
        Ending::NoRoom(_)
        | Ending::Checkpointed
        | Ending::Preempted
        | Ending::NodeLost
        | Ending::DriverLost
        | Ending::Cancelled => false,
    }
}

/// An attempt that never had a process.
pub(crate) fn report_unstarted(shared: &Shared, spec: &JobSpec, ending: Ending) {
    let report = Report::unstarted(ending, prepare::now());
    deliver(shared, spec, report, Vec::new(), (0, 0), None);
}

fn deliver(
    shared: &Shared,
    spec: &JobSpec,
    report: Report,
    samples: Vec<tulpar_core::job::Sample>,
    (input_files, input_bytes): (u64, u64),
    io: Option<Box<IoRecord>>,
) {
    shared.records.append(&Record {
        attempt: spec.attempt,
        name: spec.name.clone(),
        host: shared.host.clone(),
        node: spec.node.clone(),
        gpus: spec.gpus.clone(),
        command: spec.command.clone(),
        started: report.started,
        ended: report.ended,
        ending: report.ending.clone(),
        usage: report.usage,
        samples,
        input_files,
        input_bytes,
        outputs: report.outputs.clone(),
        io,
    });
    shared.forget(spec.attempt);
    // Nobody may be listening any more; then nobody needs it.
    (shared.tell)(Notice::Ended(spec.attempt, Box::new(report)));
}
