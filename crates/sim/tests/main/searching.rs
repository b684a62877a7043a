//! A search whose trials report on the way, pause, go on, fail and are lost, at random: a driver and its site in one.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tulpar_core::engine::{Engine, Policy};
use tulpar_core::event::{Action, Event, Input, Outcome};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, Report, Told};
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_core::{catalogue, workflow};

const SITE: &str = "sites: {here: {nodes: 1, cpus: 3, memory: 8 GB, disk: 1 TB}}";
const SEARCH: &str = "
workflow: w
tasks:
  search:
    search:
      trials: 8
      minimize: loss
      space: {lr: 'log(1e-5, 1e-1)'}
      pruner: {halving: {least: 1, factor: 2, pause: true}}
    checkpoint: state.ckpt
    retry: {times: 1, on: [failure, evicted], pause: 2 s}
    out: {model: 'model-{trial}.bin'}
    run: train --lr {lr} --trial {trial}
  train:
    in: [search.best]
    run: train --params {best}
";
const STEPS: u64 = 8;

pub(crate) fn engine() -> Engine {
    let (found, findings) = catalogue::read(SITE);
    assert_eq!(findings, []);
    let (read, findings) = workflow::read(SEARCH, &BTreeMap::new());
    assert_eq!(findings, []);
    let plan = Plan::new(read.expect("a workflow"), Vec::new(), found.sites.into_iter().next().expect("a site"));
    Engine::new(Arc::new(plan), Policy { cache: false, ..Policy::default() }).expect("no cycle")
}

/// A driver and its site. It chooses at random what it tells the engine next.
pub(crate) struct Driver {
    pub(crate) engine: Engine,
    random: ChaCha8Rng,
    now: Timestamp,
    live: BTreeSet<AttemptId>,
    stops: BTreeMap<AttemptId, Ending>,
    pub(crate) events: Vec<(Timestamp, Event)>,
}

impl Driver {
    pub(crate) fn new(seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let (live, stops) = (BTreeSet::new(), BTreeMap::new());
        Self { engine: engine(), random, now: Timestamp(0), live, stops, events: Vec::new() }
    }

    /// Another driver, to which an earlier one left these events and the attempts that they speak of.
    pub(crate) fn recover(seed: u64, events: &[(Timestamp, Event)]) -> Self {
        let mut driver = Self::new(seed);
        for (at, event) in events {
            driver.engine.apply(*at, event);
            driver.now = *at;
        }
        driver.events = events.to_vec();
        let resumed = driver.engine.resume("1".into());
        driver.engine.apply(driver.now, &resumed);
        driver.events.push((driver.now, resumed));
        driver.live = driver.engine.live().map(|(attempt, ..)| attempt).collect();
        driver
    }

    pub(crate) fn run(&mut self) -> Outcome {
        let mut inputs = vec![Input::Begin];
        for _ in 0..2000 {
            let step = self.engine.step(self.now, inputs);
            self.engine.check().unwrap_or_else(|violation| panic!("{violation}"));
            self.events.extend(step.events.into_iter().map(|event| (self.now, event)));
            for action in step.actions {
                match action {
                    Action::Submit(spec) => drop(self.live.insert(spec.attempt)),
                    Action::Cancel { attempts, ending } => {
                        self.stops.extend(attempts.into_iter().map(|attempt| (attempt, ending.clone())));
                    }
                    Action::Finish(outcome) => return outcome,
                    _ => {}
                }
            }
            inputs = vec![self.next()];
        }
        panic!("the run never ends");
    }

    fn next(&mut self) -> Input {
        if self.live.is_empty() {
            self.now = self.now.max(self.engine.next_deadline().expect("something comes"));
            return Input::Clock;
        }
        self.now = Timestamp(self.now.0 + 1_000_000);
        let attempt = *self.live.iter().nth(self.random.random_range(0..self.live.len())).expect("not empty");
        let trial = self.engine.graph().trial(attempt.job);
        let step = trial.and_then(|trial| trial.reports.last()).map_or(0, |(step, _)| *step) + 1;
        let unlucky = self.random.random_range(0..24);
        match self.stops.remove(&attempt) {
            Some(ending) if unlucky > 2 => self.end(attempt, ending),
            _ if unlucky == 0 => self.end(attempt, Ending::Exit(1)),
            _ if unlucky == 1 => self.end(attempt, Ending::NodeLost),
            _ if trial.is_none() || step > STEPS => self.end(attempt, Ending::Exit(0)),
            _ => Input::Said { attempt, step, value: self.loss(attempt.job, step) },
        }
    }

    /// A trial that learns too fast diverges.
    fn loss(&self, job: JobId, step: u64) -> f64 {
        let values = self.engine.graph().parameters(job).expect("a trial");
        let rate = values["lr"].number().expect("a number").log10();
        if rate > -1.25 && step > 1 { f64::NAN } else { (rate + 3.0).abs() + 1.0 / step as f64 }
    }

    fn end(&mut self, attempt: AttemptId, ending: Ending) -> Input {
        self.live.remove(&attempt);
        let mut report = Report::unstarted(ending, self.now);
        if report.ending.is_success() && self.engine.graph().trial(attempt.job).is_some() {
            let values = [("loss".to_owned(), self.loss(attempt.job, STEPS))].into();
            report.told = Some(Box::new(Told { values, steps: Vec::new() }));
        }
        Input::Ended { attempt, report: Box::new(report) }
    }
}
