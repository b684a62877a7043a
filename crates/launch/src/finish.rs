//! From a process that is over to a report: ending, outputs, checkpoint, record.

use crate::checkpoint::Checkpoints;
use crate::collect::{self, Collected};
use crate::commit::Conclusion;
use crate::inputs::Shown;
use crate::launcher::Shared;
use crate::process::Left;
use crate::queue::Work;
use crate::table::Running;
use crate::{Keep, Notice, prepare, sandbox, script, told};
use crossbeam_channel::Sender;
use tulpar_core::job::{Ending, IoRecord, JobSpec, OutputFile, Record, Report, ScriptReport, Told, Usage};
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
    let mut told = None;
    let collected = match ending.is_success() {
        true => told_by(shared, &running).and_then(|said| {
            told = said;
            collect_outputs(shared, &running)
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
        Err(ending) => report(shared, *running, ending, Vec::new()),
        Ok(found) if found.is_empty() => {
            running.told = told;
            report(shared, *running, ending, Vec::new());
        }
        Ok(found) => {
            running.told = told;
            // Cannot fail while this thread lives: it holds a sender, so the other end waits.
            let _ = conclusions.send(Conclusion { running, found });
        }
    }
}

/// Reports an attempt that left nothing to collect, without waking another thread for it. Others are given back.
pub(crate) fn at_once(shared: &Shared, running: Running) -> Option<Running> {
    let spec = &running.spec;
    if spec.script.is_some()
        || !spec.outputs.is_empty()
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

/// The numbers that a trial must say, once it has ended well.
fn told_by(shared: &Shared, running: &Running) -> Result<Option<Box<Told>>, Ending> {
    if running.spec.objectives.is_empty() {
        return Ok(None);
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

fn collect_outputs(shared: &Shared, running: &Running) -> Result<Vec<collect::Found>, Ending> {
    if running.spec.outputs.is_empty() {
        return Ok(Vec::new());
    }
    let work = running.folder.join("work");
    let shown = Shown::new(&running.spec.inputs, shared.shower(&work));
    match collect::collect(&work, &running.spec.outputs, &shown) {
        Ok(Collected::Missing(missing)) => Err(Ending::Incomplete(missing)),
        Ok(Collected::All(mut found)) => match shared.objects.stage(&mut found) {
            Ok(()) => Ok(found),
            Err(error) => Err(Ending::Refused(error.to_string())),
        },
        Err(error) => Err(Ending::Refused(error.to_string())),
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
    usage.peak_rss = usage.peak_rss.max(running.samples.peak_rss);
    usage.peak_gpu_memory = running.samples.peak_gpu_memory();
    usage.gpu_utilisation = running.samples.gpu_utilisation();
    let stderr_tail = if ending.is_success() {
        String::new()
    } else {
        let tail = sandbox::tail(&running.folder.join("stderr"), TAIL_LINES, TAIL_BYTES);
        without_secrets(tail, &running.secrets)
    };
    let keep_work = match shared.options.keep_sandboxes {
        Keep::Always => true,
        Keep::Never => false,
        Keep::Failed => failed_by_itself(&ending),
    };
    let samples = running.samples.take();
    let ended = Timestamp(running.started.0 + usage.wall_us);
    let told = running.told.take();
    let report = Report { ending, started: running.started, ended, usage, outputs, stderr_tail, script, told };
    let inputs = (running.input_files, running.input_bytes);
    deliver(shared, &running.spec, report, samples, inputs, running.io.take());
    let recorded = running.spec.io.is_some();
    shared.queue.push([Work::Tidy(sandbox::Leftover {
        folder: running.folder,
        streams: running.streams,
        keep_work,
        recorded,
    })]);
}

fn failed_by_itself(ending: &Ending) -> bool {
    match ending {
        Ending::Exit(code) => *code != 0,
        Ending::Signal(_) | Ending::Walltime | Ending::Memory | Ending::Incomplete(_) | Ending::Refused(_) => true,
        Ending::Checkpointed | Ending::Preempted | Ending::NodeLost | Ending::Cancelled => false,
    }
}

/// An attempt that never had a process.
pub(crate) fn report_unstarted(shared: &Shared, spec: &JobSpec, ending: Ending) {
    let now = prepare::now();
    let report = Report {
        ending,
        started: now,
        ended: now,
        usage: Usage::default(),
        outputs: Vec::new(),
        stderr_tail: String::new(),
        script: None,
        told: None,
    };
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

/// A task may print what it should not; the tail travels into the journal, so it is masked.
fn without_secrets(mut text: String, secrets: &[String]) -> String {
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "***");
        }
    }
    text
}
