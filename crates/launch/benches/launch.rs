//! 10,000 `/bin/true` through the launcher, as a ratio to a plain `posix_spawn` + `waitpid` loop in the same run.
//!
//! `cargo bench -p tulpar-launch -- [COUNT] [IN_FLIGHT]`. Rounds alternate so that a busy machine disturbs both alike.
#![allow(clippy::print_stdout, reason = "printing is what a benchmark is for")]

use std::time::{Duration, Instant};
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{CommandLine, InputFile, InputFiles, JobSpec, OutputSpec, Place, Source};
use tulpar_core::workflow::{Limits, OutputKind};
use tulpar_launch::{Folders, Launcher, Notice, Options};

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let count = numbers.first().copied().unwrap_or(10_000);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let in_flight = numbers.get(1).copied().unwrap_or(cores);
    let rounds = 5;
    let (mut plain_one, mut plain_many, mut ours) = (Spent::default(), Spent::default(), Spent::default());
    for round in 0..rounds {
        plain_one.add(|| plain(count / rounds, 1));
        plain_many.add(|| plain(count / rounds, in_flight));
        ours.add(|| launched(count / rounds, in_flight, round, |_| ()));
    }
    let done = (count / rounds * rounds) as f64;
    let rate = |spent: &Spent| done / spent.wall.as_secs_f64();
    println!("{count} x /bin/true, {in_flight} in flight, {cores} cores");
    for (name, spent) in [
        ("plain loop, one at a time", &plain_one),
        ("plain loop, as many in flight", &plain_many),
        ("tulpar-launch", &ours),
    ] {
        println!("{name:30} {:8.0} / s {:8.3} ms of CPU each", rate(spent), spent.cpu.as_secs_f64() * 1000.0 / done);
    }
    println!(
        "ratio to one at a time         {:8.2} {:8.2}",
        rate(&ours) / rate(&plain_one),
        plain_one.cpu.as_secs_f64() / ours.cpu.as_secs_f64()
    );
    println!(
        "ratio to as many in flight     {:8.2} {:8.2}",
        rate(&ours) / rate(&plain_many),
        plain_many.cpu.as_secs_f64() / ours.cpu.as_secs_f64()
    );
    let outputs = launched(1000, in_flight, 0, |spec| {
        spec.command = CommandLine::Shell { shell: "sh".into(), line: format!("echo {} > out", spec.attempt.job.0) };
        spec.outputs =
            vec![OutputSpec { name: "out".into(), path: "out".into(), kind: OutputKind::File, optional: false }];
    });
    println!("1000 with a durable output     {:8.0} / s", 1000.0 / outputs.as_secs_f64());
    many_inputs();
}

/// Wall time, and CPU time of this process and its children: the second also holds on a busy machine.
#[derive(Default)]
struct Spent {
    wall: Duration,
    cpu: Duration,
}

impl Spent {
    fn add(&mut self, act: impl FnOnce() -> Duration) {
        let before = cpu();
        self.wall += act();
        self.cpu += cpu() - before;
    }
}

fn cpu() -> Duration {
    let used = |who| {
        // SAFETY: plain data for the kernel to fill in.
        let used = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut used);
            used
        };
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        time(used.ru_utime) + time(used.ru_stime)
    };
    used(libc::RUSAGE_SELF) + used(libc::RUSAGE_CHILDREN)
}

/// What the least program could do: no sandbox, no record, no measuring.
fn plain(count: usize, in_flight: usize) -> Duration {
    let begin = Instant::now();
    let mut running = 0;
    let wait = || {
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
    };
    for _ in 0..count {
        if running == in_flight {
            wait();
            running -= 1;
        }
        let mut pid = 0;
        let arguments = [c"/bin/true".as_ptr().cast_mut(), std::ptr::null_mut()];
        let variables = [c"PATH=/usr/bin:/bin".as_ptr().cast_mut(), std::ptr::null_mut()];
        // SAFETY: both arrays end with null and outlive the call.
        let error = unsafe {
            libc::posix_spawn(
                &mut pid,
                c"/bin/true".as_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                arguments.as_ptr(),
                variables.as_ptr(),
            )
        };
        assert_eq!(error, 0);
        running += 1;
    }
    (0..running).for_each(|_| wait());
    begin.elapsed()
}

fn folders(root: &std::path::Path) -> Folders {
    Folders {
        project: root.to_path_buf(),
        attempts: root.join("attempts"),
        objects: root.join("objects"),
        records: root.join("records.jsonl"),
        checkpoints: root.join("checkpoints"),
    }
}

fn spec(job: usize) -> JobSpec {
    JobSpec {
        attempt: AttemptId { job: JobId::from(job), n: 1 },
        name: "true".into(),
        command: CommandLine::Arguments(vec!["/bin/true".into()]),
        variables: Default::default(),
        secrets: Vec::new(),
        container: None,
        venv: None,
        conda: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        checkpoint: None,
        limits: Limits::default(),
        io: None,
        milli_cpus: 1000,
        gpus: Vec::new(),
        cores: Vec::new(),
        node: "here".into(),
        place: Place::Owned,
        script: None,
        objectives: Vec::new(),
    }
}

fn launched(count: usize, in_flight: usize, round: usize, change: impl Fn(&mut JobSpec)) -> Duration {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (sender, notices) = crossbeam_channel::unbounded();
    let launcher = Launcher::start(folders(folder.path()), Options::new(format!("bench-{round}")), move |notice| {
        drop(sender.send(notice))
    })
    .expect("it starts");
    let next = |job: usize| {
        let mut spec = spec(job);
        change(&mut spec);
        Box::new(spec)
    };
    let begin = Instant::now();
    launcher.launch((0..in_flight.min(count)).map(next).collect());
    let (mut handed_in, mut ended) = (in_flight.min(count), 0);
    while ended < count {
        if let Notice::Ended(attempt, report) = notices.recv().expect("the launcher lives") {
            assert!(report.ending.is_success(), "{attempt}: {:?}", report.ending);
            ended += 1;
            if handed_in < count {
                launcher.launch(vec![next(handed_in)]);
                handed_in += 1;
            }
        }
    }
    let time = begin.elapsed();
    launcher.shutdown();
    time
}

fn many_inputs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("data")).expect("a folder");
    let files: Vec<InputFile> = (0..30_000)
        .map(|n| {
            std::fs::write(folder.path().join(format!("data/{n}")), "").expect("a file");
            InputFile {
                path: format!("images/{n}.jpg"),
                source: Source::Path(format!("data/{n}")),
                size: 0,
                digest: Digest::of(b""),
            }
        })
        .collect();
    let (sender, notices) = crossbeam_channel::unbounded();
    let launcher =
        Launcher::start(folders(folder.path()), Options::new("bench-inputs"), move |notice| drop(sender.send(notice)))
            .expect("it starts");
    let files: std::sync::Arc<[InputFile]> = files.into();
    for task in ["first", "second"] {
        let mut spec = spec(task.len());
        spec.inputs =
            vec![InputFiles { name: "images".into(), files: files.clone(), list: Some("images.list".into()) }];
        let (begin, before) = (Instant::now(), cpu());
        launcher.launch(vec![Box::new(spec)]);
        let mut started = None;
        for notice in &notices {
            match notice {
                Notice::Started(_) => {
                    started = Some((begin.elapsed().as_secs_f64() * 1000.0, (cpu() - before).as_secs_f64() * 1000.0))
                }
                Notice::Ended(..) => break,
            }
        }
        let (wall, cpu) = started.expect("it started");
        println!("30,000 inputs, the {task:6} task  {wall:7.0} ms {cpu:8.0} ms of CPU");
    }
    launcher.shutdown();
}
