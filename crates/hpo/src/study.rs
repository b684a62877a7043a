//! A study: asked for trials, told what came of them. Any number may be on the way at once; nothing waits for others.
//!
//! What it knows is its settings, its trials and the order in which they ended; everything else is computed from these,
//! so a study that was written down, or rebuilt from recorded events, goes on exactly as it would have.

use crate::error::StudyError;
use crate::history::History;
use crate::objective::Objective;
use crate::pruner::{Decision, Judge, Pruner};
use crate::random::{Purpose, Stream};
use crate::sampler::{Context, Sampler, SamplerMemory, Strategy};
use crate::space::{Point, Space, Values};
use crate::trial::{Origin, Outcome, State, Trial};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub space: Space,
    pub objectives: Vec<Objective>,
    #[serde(default)]
    pub sampler: Sampler,
    #[serde(default)]
    pub pruner: Pruner,
    #[serde(default)]
    pub seed: u64,
    /// Asked for first, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Values>,
}

impl Settings {
    pub fn new(space: Space, objective: Objective) -> Self {
        Self {
            space,
            objectives: vec![objective],
            sampler: Sampler::default(),
            pruner: Pruner::default(),
            seed: 0,
            starts: Vec::new(),
        }
    }
}

/// What to do with a free slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proposal {
    Start {
        point: Point,
        origin: Origin,
    },
    /// A paused trial has earned to go on.
    Resume {
        number: u32,
    },
    /// Every point of the grid was given out.
    Exhausted,
}

/// What was begun.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Start { number: u32, values: Values },
    Resume { number: u32 },
    Exhausted,
}

/// What a study is made of, and all that is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    settings: Settings,
    trials: Vec<Trial>,
    ended: Vec<u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Record")]
pub struct Study {
    settings: Settings,
    trials: Vec<Trial>,
    history: History,
    judge: Judge,
    strategy: Strategy,
    starts: Vec<Point>,
    started: usize,
    /// For [`Self::ask`].
    memory: SamplerMemory,
}

/// Compares trials and the order of their ends; the rest follows from these and from the settings, which no event changes.
impl PartialEq for Study {
    fn eq(&self, other: &Self) -> bool {
        self.trials == other.trials && self.history.ended == other.history.ended && self.started == other.started
    }
}

impl Serialize for Study {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut record = serializer.serialize_struct("Record", 3)?;
        record.serialize_field("settings", &self.settings)?;
        record.serialize_field("trials", &self.trials)?;
        record.serialize_field("ended", &self.history.ended)?;
        record.end()
    }
}

impl TryFrom<Record> for Study {
    type Error = StudyError;

    fn try_from(record: Record) -> Result<Self, StudyError> {
        let mut study = Self::new(record.settings)?;
        let known = record.trials.len();
        for trial in record.trials {
            if !study.settings.space.contains(&trial.point) || trial.number as usize != study.trials.len() {
                return Err(StudyError::BadOrder { number: trial.number, known });
            }
            study.note_begin(trial);
        }
        for at in 0..known {
            for index in 0..study.trials[at].reports.len() {
                let (step, value) = study.trials[at].reports[index];
                study.judge.record(at as u32, step, study.settings.objectives[0].direction.loss(value));
            }
            if study.trials[at].state == State::Paused {
                study.judge.pause(at as u32);
            }
        }
        for number in record.ended {
            let state = study.trials.get(number as usize).map(|trial| trial.state);
            if !state.is_some_and(State::is_ended) || !study.history.pending.contains(&number) {
                return Err(StudyError::BadOrder { number, known });
            }
            study.note_end(number);
        }
        Ok(study)
    }
}

impl Study {
    pub fn new(settings: Settings) -> Result<Self, StudyError> {
        let objectives = settings.objectives.len();
        if objectives == 0 {
            return Err(StudyError::NoObjective);
        }
        for (at, objective) in settings.objectives.iter().enumerate() {
            if settings.objectives[..at].iter().any(|other| other.name == objective.name) {
                return Err(StudyError::SameObjective { name: objective.name.clone() });
            }
        }
        settings.sampler.check(objectives, &settings.space)?;
        settings.pruner.check(objectives)?;
        let starts = settings.starts.iter().enumerate();
        let starts = starts.map(|(number, values)| {
            settings.space.point(values).map_err(|error| StudyError::Start { number: number + 1, error })
        });
        let starts = starts.collect::<Result<_, _>>()?;
        let directions = settings.objectives.iter().map(|objective| objective.direction).collect();
        Ok(Self {
            history: History::new(settings.space.len(), directions),
            judge: Judge::new(&settings.pruner, settings.seed),
            strategy: Strategy::new(&settings.sampler, &settings.space, settings.seed),
            trials: Vec::new(),
            starts,
            started: 0,
            memory: SamplerMemory::default(),
            settings,
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn space(&self) -> &Space {
        &self.settings.space
    }

    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    pub fn trial(&self, number: u32) -> Option<&Trial> {
        self.trials.get(number as usize)
    }

    /// The parameters of a trial by name.
    pub fn values(&self, number: u32) -> Option<Values> {
        Some(self.settings.space.values(&self.trial(number)?.point))
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Trials in the order in which they ended.
    pub fn ended(&self) -> &[u32] {
        &self.history.ended
    }

    /// Running and paused trials, by number.
    pub fn pending(&self) -> impl Iterator<Item = u32> + '_ {
        self.history.pending.iter().copied()
    }

    /// What a free slot should do. The study stays as it is: give the answer to [`Self::begin`] or [`Self::resume`],
    /// now or, where events are recorded first, when the event is applied. The memory holds what is worth keeping until the
    /// next proposal of this study.
    pub fn propose(&self, memory: &mut SamplerMemory) -> Proposal {
        if let Some(number) = self.judge.promotion() {
            return Proposal::Resume { number };
        }
        if let Some(point) = self.starts.get(self.started) {
            return Proposal::Start { point: point.clone(), origin: Origin::Start };
        }
        let number = self.trials.len() as u64;
        let mut stream = Stream::new(self.settings.seed, Purpose::Suggest, number);
        let context = Context {
            space: &self.settings.space,
            trials: &self.trials,
            history: &self.history,
            seed: self.settings.seed,
            number,
        };
        match self.strategy.suggest(&context, &mut stream, memory) {
            Some(point) => Proposal::Start { point, origin: Origin::Sampled },
            None => Proposal::Exhausted,
        }
    }

    /// A paused trial that has earned to go on.
    pub fn promotion(&self) -> Option<u32> {
        self.judge.promotion()
    }

    /// A trial begins at a point; its number is the answer.
    pub fn begin(&mut self, point: Point, origin: Origin) -> Result<u32, StudyError> {
        if !self.settings.space.contains(&point) {
            // Says what is wrong where it can be said in the words of the space.
            self.settings.space.point(&self.settings.space.values(&point))?;
            return Err(StudyError::BadPoint);
        }
        let number = self.trials.len() as u32;
        self.note_begin(Trial::new(number, point, origin));
        Ok(number)
    }

    /// A trial begins at a point that somebody asked for, kept where the source says.
    pub fn begin_requested(&mut self, source: Option<String>, values: &Values) -> Result<u32, StudyError> {
        let point = self.settings.space.point(values)?;
        let number = self.begin(point, Origin::Requested)?;
        self.trials[number as usize].source = source;
        Ok(number)
    }

    /// Proposes and begins at once.
    pub fn ask(&mut self) -> Next {
        let mut memory = std::mem::take(&mut self.memory);
        let proposal = self.propose(&mut memory);
        self.memory = memory;
        match proposal {
            Proposal::Start { point, origin } => {
                let number = self.trials.len() as u32;
                let values = self.settings.space.values(&point);
                self.note_begin(Trial::new(number, point, origin));
                Next::Start { number, values }
            }
            Proposal::Resume { number } => {
                self.trials[number as usize].state = State::Running;
                self.judge.resume(number);
                Next::Resume { number }
            }
            Proposal::Exhausted => Next::Exhausted,
        }
    }

    /// An intermediate value. The decision is advice: the caller says with [`Self::tell`] or [`Self::pause`] that it
    /// was followed. A step that was reported before is reported anew, as trials do that restart from a checkpoint.
    pub fn report(&mut self, number: u32, step: u64, value: f64) -> Result<Decision, StudyError> {
        let direction = self.settings.objectives[0].direction;
        let trial = self.open(number)?;
        if !value.is_finite() {
            // What has diverged does not come back.
            return Ok(if self.settings.pruner == Pruner::None { Decision::Continue } else { Decision::Prune });
        }
        match trial.reports.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => trial.reports[at].1 = value,
            Err(at) => trial.reports.insert(at, (step, value)),
        }
        self.judge.record(number, step, direction.loss(value));
        Ok(self.judge.decide(number, step))
    }

    /// The trial was stopped at its rung and keeps its checkpoint.
    pub fn pause(&mut self, number: u32) -> Result<(), StudyError> {
        self.open(number)?.state = State::Paused;
        self.judge.pause(number);
        Ok(())
    }

    /// A paused trial goes on, promoted or because somebody wants it.
    pub fn resume(&mut self, number: u32) -> Result<(), StudyError> {
        let trial = self.open(number)?;
        if trial.state != State::Paused {
            return Err(StudyError::NotPaused { number });
        }
        trial.state = State::Running;
        self.judge.resume(number);
        Ok(())
    }

    /// A trial ended. Values that are no numbers are a failure, whatever was meant.
    pub fn tell(&mut self, number: u32, outcome: Outcome) -> Result<(), StudyError> {
        let objectives = self.settings.objectives.len();
        let trial = self.open(number)?;
        match outcome {
            Outcome::Complete { values, constraints } => {
                if values.len() != objectives {
                    return Err(StudyError::ValueCount { number, given: values.len(), objectives });
                }
                if let Some(odd) = values.iter().chain(&constraints).find(|value| !value.is_finite()) {
                    trial.state = State::Failed;
                    trial.reason = Some(format!("it ended with {odd} instead of a number"));
                } else {
                    trial.state = State::Complete;
                    trial.values = values;
                    trial.constraints = constraints;
                }
            }
            Outcome::Pruned => trial.state = State::Pruned,
            Outcome::Simulated => trial.state = State::Simulated,
            Outcome::Failed { reason } => {
                trial.state = State::Failed;
                trial.reason = Some(reason);
            }
        }
        self.note_end(number);
        Ok(())
    }

    /// A trial that failed is run again, by whoever stopped it or found out why it failed. It goes on with what it said.
    pub fn reopen(&mut self, number: u32) -> Result<(), StudyError> {
        let trial = self.trials.get_mut(number as usize).ok_or(StudyError::NoTrial { number })?;
        if trial.state != State::Failed {
            return Err(StudyError::NotFailed { number });
        }
        trial.state = State::Running;
        trial.reason = None;
        self.history.reopen(number);
        // A pruner forgets those that ended without a result. No sampler learns from what failed, so none has to forget it.
        let direction = self.settings.objectives[0].direction;
        for (step, value) in &self.trials[number as usize].reports {
            self.judge.record(number, *step, direction.loss(*value));
        }
        Ok(())
    }

    /// A trial that somebody else runs: samplers look elsewhere while it does. [`Self::tell`] says what came of it.
    pub fn begin_elsewhere(&mut self, source: String, values: &Values) -> Result<u32, StudyError> {
        let point = self.settings.space.point(values)?;
        let number = self.begin(point, Origin::Outside)?;
        self.trials[number as usize].source = Some(source);
        Ok(number)
    }

    /// A trial that somebody else ran, with what came of it.
    pub fn add(&mut self, values: &Values, reports: &[(u64, f64)], outcome: Outcome) -> Result<u32, StudyError> {
        self.add_from(None, values, reports, outcome)
    }

    /// The same, with where it is kept.
    pub fn add_from(
        &mut self,
        source: Option<String>,
        values: &Values,
        reports: &[(u64, f64)],
        outcome: Outcome,
    ) -> Result<u32, StudyError> {
        let point = self.settings.space.point(values)?;
        if let Outcome::Complete { values, .. } = &outcome
            && values.len() != self.settings.objectives.len()
        {
            let (given, objectives) = (values.len(), self.settings.objectives.len());
            return Err(StudyError::ValueCount { number: self.trials.len() as u32, given, objectives });
        }
        let number = self.begin(point, Origin::Outside)?;
        self.trials[number as usize].source = source;
        for (step, value) in reports {
            self.report(number, *step, *value)?;
        }
        self.tell(number, outcome)?;
        Ok(number)
    }

    /// The best complete trial that keeps the constraints, of one objective; with several see
    /// [`crate::analysis::front`].
    pub fn best(&self) -> Option<&Trial> {
        let first = self.history.ranked.first().filter(|rank| rank.class == crate::history::COMPLETE)?;
        self.trial(first.number)
    }

    /// The best complete trials that keep the constraints, of one objective, the best first.
    pub fn top(&self, most: usize) -> Vec<u32> {
        let complete = self.history.ranked.iter().take_while(|rank| rank.class == crate::history::COMPLETE);
        complete.take(most).map(|rank| rank.number).collect()
    }

    fn open(&mut self, number: u32) -> Result<&mut Trial, StudyError> {
        let trial = self.trials.get_mut(number as usize).ok_or(StudyError::NoTrial { number })?;
        if trial.state.is_ended() {
            return Err(StudyError::Ended { number, state: trial.state });
        }
        Ok(trial)
    }

    fn note_begin(&mut self, trial: Trial) {
        self.started += usize::from(trial.origin == Origin::Start);
        self.history.begin(&self.settings.space, &trial);
        self.judge.begin(trial.number);
        self.strategy.begun(&trial);
        self.trials.push(trial);
    }

    fn note_end(&mut self, number: u32) {
        let trial = &self.trials[number as usize];
        self.history.end(trial);
        self.judge.end(trial);
        self.strategy.ended(&self.settings.space, &self.history, trial);
    }
}
