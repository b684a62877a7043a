//! Runs a kernel: samples are read by the step itself or ahead of it, batches are waited for, compute is emulated, and what
//! happened is written down.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::load::{Loader, Loading};
use crate::meter::{Meter, Probe};
use crate::profile::{Profile, Step};
use crate::queue::Queue;
use crate::random::Random;
use crate::tally::Tally;
use crate::truth::{Stepped, Truth};
use crate::workload::{Checkpoints, Compute, Rank, Workload};

/// Where a kernel writes: its profile, its event file, its checkpoints and `truth.json`.
#[derive(Debug, Clone)]
pub struct Outputs {
    pub folder: PathBuf,
}

impl Outputs {
    pub fn truth(&self) -> PathBuf {
        self.folder.join("truth.json")
    }
}

/// Steps between two looks at the logs of the threads.
const FOLD: u64 = 16;

/// Reads the data set that [`crate::generate`] made below `dir`.
pub fn run(workload: &Workload, dir: &Path, outputs: &Outputs, rank: Rank) -> Result<Truth, Error> {
    let clock = Clock::start();
    let begun = clock.now();
    workload.check()?;
    fs::create_dir_all(&outputs.folder).map_err(Error::io("make the folder", &outputs.folder))?;
    let meter = Meter::new(clock);
    let mut training = Training {
        workload,
        probe: Probe::new(&meter),
        outputs,
        begun,
        meter: Arc::clone(&meter),
        tally: Tally::default(),
        stepped: Stepped::default(),
        checkpoint: None,
    };
    let mut profile = Profile::create(&mut training.probe, &outputs.folder, begun)?;
    let loading = Loading::new(workload, dir, rank)?;
    if workload.workers == 0 {
        let mut source = Source::Demand(loading.loader(), Probe::new(&meter));
        training.train(&mut source, &mut profile)?;
    } else {
        let queue = Queue::new(workload.workers);
        std::thread::scope(|scope| {
            for _ in 0..workload.workers {
                let (queue, mut loader, mut probe) = (&queue, loading.loader(), Probe::new(&meter));
                scope.spawn(move || queue.serve(|queue| load(queue, loader.as_mut(), &mut probe)));
            }
            let result = training.train(&mut Source::Ahead(&queue), &mut profile);
            queue.stop();
            result
        })?;
    }
    profile.close(&mut training.probe)?;
    let ended = clock.now();
    training.tally.fold(&meter, ended);
    let truth = Truth::new(workload, &meter, &training.tally, &training.stepped, (begun, ended));
    let path = outputs.truth();
    let text = serde_json::to_vec(&truth).map_err(|error| Error::io("write", &path)(error.into()))?;
    fs::write(&path, text).map_err(Error::io("write", &path))?;
    Ok(truth)
}

/// Reads samples ahead until there are no more or no more are wanted.
fn load(queue: &Queue, loader: &mut dyn Loader, probe: &mut Probe) -> Result<(), Error> {
    while queue.ticket() {
        match probe.pipeline(|probe| loader.next(probe))? {
            Some(sample) => queue.push(sample),
            None => break,
        }
    }
    Ok(())
}

enum Source<'a> {
    Demand(Box<dyn Loader>, Probe),
    Ahead(&'a Queue),
}

impl Source<'_> {
    fn next(&mut self) -> Result<Option<u64>, Error> {
        match self {
            Source::Demand(loader, probe) => probe.pipeline(|probe| loader.next(probe)),
            Source::Ahead(queue) => queue.pop(),
        }
    }

    /// Reading begins with the first step, so that all of it is in the time of the steps.
    fn begin(&self, ahead: u64) {
        if let Source::Ahead(queue) = self {
            queue.admit(ahead);
        }
    }

    /// The step has its batch; there is room for further samples.
    fn wake(&self) {
        if let Source::Ahead(queue) = self {
            queue.wake();
        }
    }
}

struct Training<'a> {
    workload: &'a Workload,
    outputs: &'a Outputs,
    begun: u64,
    meter: Arc<Meter>,
    probe: Probe,
    tally: Tally,
    stepped: Stepped,
    /// The last one, which the next replaces.
    checkpoint: Option<PathBuf>,
}

impl Training<'_> {
    fn train(&mut self, source: &mut Source, profile: &mut Profile) -> Result<(), Error> {
        let clock = self.meter.clock;
        for number in 0..self.workload.steps.unwrap_or(u64::MAX) {
            let begun = clock.now();
            if number == 0 {
                source.begin(self.workload.prefetch);
            }
            let mut samples = 0;
            while samples < self.workload.batch
                && let Some(bytes) = source.next()?
            {
                samples += 1;
                self.stepped.sample_bytes += bytes;
            }
            if samples == 0 {
                break;
            }
            let waited = clock.now();
            source.wake();
            let computed = self.compute(waited);
            self.tally.computed((waited, computed));
            let checkpoint = match self.workload.checkpoints {
                Some(checkpoints) if (number + 1) % checkpoints.every == 0 => {
                    self.save(checkpoints, number + 1)?;
                    Some((computed, clock.now()))
                }
                _ => None,
            };
            let ended = checkpoint.map_or(computed, |span| span.1);
            let (whole, wait, compute) = ((begun, ended), (begun, waited), (waited, computed));
            profile.step(&mut self.probe, &Step { number, whole, wait, compute, checkpoint, samples })?;
            self.stepped.steps += 1;
            self.stepped.samples += samples;
            self.stepped.time += ended - begun;
            self.stepped.wait += waited - begun;
            self.stepped.checkpoint += ended - computed;
            if number % FOLD == FOLD - 1 {
                self.tally.fold(&self.meter, clock.now());
            }
        }
        Ok(())
    }

    /// The device computes and the host waits for it; until when.
    fn compute(&mut self, from: u64) -> u64 {
        let clock = self.meter.clock;
        let length = match self.workload.compute {
            Compute::Seconds(seconds) => Duration::from_secs_f64(seconds),
            Compute::Share(share) => self.until_share(share, from),
        };
        if !length.is_zero() {
            std::thread::sleep(length);
        }
        clock.now()
    }

    /// How long to compute so that I/O comes to its share of the time.
    fn until_share(&mut self, share: f64, from: u64) -> Duration {
        self.tally.fold(&self.meter, from);
        let wanted = (self.tally.io as f64 / share) as u64;
        Duration::from_nanos(wanted.saturating_sub(from - self.begun))
    }

    fn save(&mut self, checkpoints: Checkpoints, step: u64) -> Result<(), Error> {
        let path = self.outputs.folder.join(format!("step-{step:07}.ckpt"));
        let mut block = vec![0; 1 << 20];
        Random::new(step, &[]).fill(&mut block);
        let mut file = self.probe.create(&path)?;
        let mut left = checkpoints.bytes;
        while left > 0 {
            let many = left.min(block.len() as u64);
            self.probe.write(&mut file, &block[..many as usize])?;
            left -= many;
        }
        self.probe.close(file);
        if let Some(former) = self.checkpoint.replace(path) {
            fs::remove_file(&former).map_err(Error::io("remove the former", &former))?;
        }
        Ok(())
    }
}
