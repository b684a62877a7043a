//! From inputs to events and actions: the decisions of a run, one input at a time.

use super::{Detail, Engine, State, Step, Transitions};
use crate::accept::accept;
use crate::event::{
    Action, Because, Blame, Cached, Change, Consequence, Event, FieldQuery, Input, KeyPart, Made, Outcome, Publication,
    Reason, Stopping,
};
use crate::ids::{AttemptId, JobId, SearchId, SetId};
use crate::job::{Ending, Report};
use crate::plan::SpecContext;
use crate::units::Timestamp;
use crate::workflow::Task;
use crate::workflow::condition;
use crate::workflow::{Operand, Value};
use std::collections::BTreeMap;

/// Looks that one step asks for: a key is much larger than a job, and a million may be due at once.
const MOST_LOOKS: usize = 4096;

impl Engine {
    /// Takes what the world said and decides. The events are applied already; the actions are to be
    /// performed once the events are durable.
    pub fn step(&mut self, now: Timestamp, inputs: Vec<Input>) -> Step {
        let mut step = Step::default();
        for input in inputs {
            self.take(now, input, &mut step);
        }
        self.go_on(now, &mut step);
        step
    }

    pub(super) fn record(&mut self, now: Timestamp, event: Event, step: &mut Step) -> Transitions {
        let transitions = self.apply(now, &event);
        step.events.push(event);
        transitions
    }

    fn take(&mut self, now: Timestamp, input: Input, step: &mut Step) {
        match input {
            Input::Begin => self.curtail_again(step),
            Input::Clock => {}
            Input::Looked { job, answer } => {
                if self.state(job) == State::Looking {
                    self.looked(now, job, answer.cached, &answer.fields, step);
                }
            }
            Input::Started { attempt } => {
                if self.run.holds_attempt(attempt) && self.state(attempt.job) == State::Submitted {
                    self.record(now, Event::Started { attempt }, step);
                }
            }
            Input::Held { attempt, reason } => {
                if self.run.holds_attempt(attempt) && self.state(attempt.job) != State::Held {
                    self.record(now, Event::Held { attempt, reason }, step);
                }
            }
            Input::Released { attempt } => {
                if self.run.holds_attempt(attempt) && matches!(self.state(attempt.job), State::Held | State::Running) {
                    self.record(now, Event::Released { attempt }, step);
                }
            }
            Input::Ended { attempt, report } => {
                if self.run.holds_attempt(attempt) {
                    self.ended(now, attempt, report, step);
                }
            }
            Input::Said { attempt, step: at, value } => {
                if self.run.holds_attempt(attempt) {
                    self.said(now, attempt, at, value, step);
                }
            }
            Input::Added { set, part, added } => {
                if self.graph().fits(SearchId { set, part }, &added) {
                    self.record(now, Event::Added { set, part, added }, step);
                }
            }
            Input::Node { node, present } => {
                if self.scheduler.nodes.is_absent(node) == present {
                    self.record(now, Event::Node { node, present }, step);
                }
            }
            Input::Cancel { job } => self.cancel(now, job, step),
            Input::Stop { how } => self.stop(now, how, step),
        }
    }

    fn looked(
        &mut self,
        now: Timestamp,
        job: JobId,
        cached: Cached,
        fields: &BTreeMap<(String, String), serde_json::Value>,
        step: &mut Step,
    ) {
        if !self.condition_holds(job, fields) {
            self.record(now, Event::Skipped { job, because: Because::Condition }, step);
            return;
        }
        let set = self.graph().set_of(job);
        if !self.run.uses_cache(set) {
            let reason = self.reason_without_cache(set);
            self.record(now, Event::Missed { job, key: None, reason }, step);
            return;
        }
        let key = self.spec_context().key(job).digest();
        match cached {
            // An earlier trial may have said other numbers than are looked for now.
            Cached::Hit { told, .. } if !self.graph().is_answered(job, told.as_deref()) => {
                self.record(now, Event::Missed { job, key: Some(key), reason: Reason::OutputsGone }, step);
            }
            Cached::Hit { outputs, run, told } => {
                self.record(now, Event::Reused { job, key, run, outputs, told, accepted: None }, step);
                self.publish(job, true, step);
            }
            Cached::Made { files, run, attempt, told } => {
                let outputs = accept(&self.spec_context().outputs(job), &files);
                match outputs.filter(|_| self.graph().is_answered(job, told.as_deref())) {
                    Some(outputs) => {
                        let accepted = Some(attempt);
                        self.record(now, Event::Reused { job, key, run, outputs, told, accepted }, step);
                        // From now on it is a result like others, under its own key.
                        self.publish(job, false, step);
                    }
                    None => {
                        let change = Change { part: KeyPart::Outputs, before: String::new(), now: String::new() };
                        let reason = Reason::Changed(vec![change]);
                        self.record(now, Event::Missed { job, key: Some(key), reason }, step);
                    }
                }
            }
            Cached::Miss(reason) => {
                self.record(now, Event::Missed { job, key: Some(key), reason }, step);
            }
        }
    }

    pub(super) fn reason_without_cache(&self, set: SetId) -> Reason {
        if self.run.is_forced(set) { Reason::Forced } else { Reason::CacheOff }
    }

    fn condition_holds(&self, job: JobId, fields: &BTreeMap<(String, String), serde_json::Value>) -> bool {
        let task = self.plan().task(self.graph().set_of(job));
        let Some(when) = &task.when else { return true };
        let lookup = |operand: &Operand| match operand {
            Operand::Literal(value) => Some(value.clone()),
            Operand::Variable(name) => self.spec_context().value(job, name),
            Operand::Field { input, pointer } => fields.get(&(input.clone(), pointer.clone())).map(value_of),
        };
        let unread = self.detail == Detail::Times;
        if !unread && !self.run.asks_latest(self.graph().set_of(job)) {
            return condition::holds(when, &lookup);
        }
        // As long as there is no result, or it does not say, nothing speaks against the task.
        let newest = |name: &str| task.latest().any(|(position, _)| task.inputs[position as usize].name == name);
        let unknown = |operand: &Operand| match operand {
            Operand::Field { input, pointer } => {
                unread || newest(input) && !fields.contains_key(&(input.clone(), pointer.clone()))
            }
            Operand::Literal(_) | Operand::Variable(_) => false,
        };
        condition::tells(when, &lookup, &unknown).unwrap_or(true)
    }

    pub(super) fn ended(&mut self, now: Timestamp, attempt: AttemptId, mut report: Box<Report>, step: &mut Step) {
        let job = attempt.job;
        let ending = report.ending.clone();
        if let Some(told) = &mut report.told {
            self.graph().leave_out_known(job, told);
        }
        let kept = matches!(ending, Ending::Incomplete(_)) && self.keep_made(attempt, &report, step);
        let then = match self.consequence(now, job, &ending) {
            // It has computed: another try would compute the same, and only a mended declaration accepts it.
            Consequence::Retry { .. } if kept && self.graph().parameters(job).is_none() => {
                Consequence::Failed { blame: Blame::Task }
            }
            then => then,
        };
        let done = then == Consequence::Done;
        self.record(now, Event::Ended { attempt, report, then }, step);
        if done && self.detail == Detail::Full {
            self.publish(job, false, step);
        }
    }

    /// A task that has computed does not lose its files to a declaration. Whether it left any.
    fn keep_made(&self, attempt: AttemptId, report: &Report, step: &mut Step) -> bool {
        let set = self.graph().set_of(attempt.job);
        if report.outputs.is_empty() || !self.policy().cache || !self.run.cacheable(set) {
            return false;
        }
        step.actions.push(Action::Keep(Box::new(Made {
            name: self.graph().name(attempt.job),
            attempt: attempt.n,
            key: self.spec_context().key(attempt.job),
            files: report.outputs.clone(),
            told: report.told.clone(),
        })));
        true
    }

    /// Makes the results of a job visible and, if it ran here, reusable.
    fn publish(&self, job: JobId, reused: bool, step: &mut Step) {
        let publication = self.publication(job, reused);
        if !publication.outputs.is_empty() || publication.key.is_some() {
            step.actions.push(Action::Publish(Box::new(publication)));
        }
    }

    /// What there is to show of a job that ended well; with its key when it ran and may be reused.
    pub fn publication(&self, job: JobId, reused: bool) -> Publication {
        let set = self.graph().set_of(job);
        let task = self.plan().task(set);
        let temporary =
            (0..task.outputs.len() as u32).filter(|output| task.outputs[*output as usize].temporary).collect();
        // What workers of others pushed to a staging site is there, not here.
        let staged = |task: &Task| task.run.planned().is_some_and(|planned| planned.staging.is_some());
        let elsewhere = self.plan().site.queue.is_some() && staged(task);
        let remember = !reused && self.policy().cache && self.run.cacheable(set) && !elsewhere;
        let members = if remember { self.spec_context().members(job) } else { Vec::new() };
        let remember = remember && members.is_empty();
        Publication {
            job,
            name: self.graph().name(job),
            key: remember.then(|| Box::new(self.spec_context().key(job))),
            reused: reused || elsewhere,
            told: self.graph().told(job).filter(|_| remember).map(Box::new),
            outputs: self.outputs(job).cloned().unwrap_or_default(),
            temporary,
            below: self.plan().workflow.member(set).map(|member| member.name.clone()),
            members,
        }
    }

    fn cancel(&mut self, now: Timestamp, job: JobId, step: &mut Step) {
        let state = self.state(job);
        if let Some(live) = self.run.live(job) {
            let attempts = vec![AttemptId { job, n: live.n }];
            step.actions.push(Action::Cancel { attempts, ending: Ending::Cancelled });
        } else if !state.is_settled() {
            self.record(now, Event::Cancelled { job }, step);
        }
    }

    fn stop(&mut self, now: Timestamp, how: Stopping, step: &mut Step) {
        if self.outcome().is_some() || self.run.stopping() == Some(how) {
            return;
        }
        self.record(now, Event::Stopping { how }, step);
        let ending = match how {
            Stopping::Drain => return,
            Stopping::Interrupt => Ending::Preempted,
            Stopping::Cancel => Ending::Cancelled,
        };
        let attempts: Vec<AttemptId> = self.live().map(|(attempt, ..)| attempt).collect();
        if !attempts.is_empty() {
            step.actions.push(Action::Cancel { attempts, ending });
        }
    }

    /// Everything that follows from the state as it is now.
    fn go_on(&mut self, now: Timestamp, step: &mut Step) {
        self.skip_doomed(now, step);
        if self.outcome().is_some() {
            return;
        }
        if self.policy().fail_fast && self.run.hard_failures() > 0 && self.run.stopping().is_none() {
            self.record(now, Event::Stopping { how: Stopping::Drain }, step);
        }
        if self.run.stopping().is_none() && self.run.any_live() && self.interrupt_at().is_some_and(|at| at <= now) {
            self.stop(now, Stopping::Interrupt, step);
        }
        while self.run.stopping().is_none() {
            loop {
                self.grafts(now, step);
                self.looks(now, step);
                self.skip_doomed(now, step);
                // What was skipped may have been the last that a dynamic set waited for.
                if self.agenda.grafts.is_empty() {
                    break;
                }
            }
            self.wake(now, step);
            self.schedule(now, step);
            if !self.ask(now, step) {
                break;
            }
        }
        self.finish(now, step);
    }

    pub(super) fn skip_doomed(&mut self, now: Timestamp, step: &mut Step) {
        while let Some((job, because)) = self.agenda.doomed.pop_front() {
            if self.state(job) == State::Waiting {
                self.record(now, Event::Skipped { job, because }, step);
            }
        }
    }

    fn grafts(&mut self, now: Timestamp, step: &mut Step) {
        while let Some(set) = self.agenda.grafts.pop_first() {
            if self.graph().graftable(set) && self.sources_settled(set) {
                let tasks = self.graph().tasks_from(set, self.run.dynamic_files(set));
                self.record(now, Event::Grafted { set, tasks }, step);
            }
        }
    }

    /// True when all jobs that decide the shape of this set have ended well, or are excused.
    fn sources_settled(&self, set: SetId) -> bool {
        self.plan().dynamic_sources(set).all(|source| {
            self.graph()
                .jobs_of(source)
                .is_some_and(|mut jobs| jobs.all(|job| self.state(job) == State::Done || self.is_excused(job)))
        })
    }

    fn looks(&mut self, now: Timestamp, step: &mut Step) {
        self.agenda.ask_late(&self.run);
        let before = step.actions.len();
        while step.actions.len() - before < MOST_LOOKS
            && let Some(job) = self.agenda.due.pop_front()
        {
            if self.state(job) != State::Looking {
                continue;
            }
            let set = self.graph().set_of(job);
            let fields = self.field_queries(job);
            let cached = self.run.uses_cache(set);
            if fields.is_empty() && !self.condition_holds(job, &BTreeMap::new()) {
                self.record(now, Event::Skipped { job, because: Because::Condition }, step);
            } else if fields.is_empty() && !cached {
                let reason = self.reason_without_cache(set);
                self.record(now, Event::Missed { job, key: None, reason }, step);
            } else {
                let key = cached.then(|| Box::new(self.spec_context().key(job)));
                let name = self.graph().name(job);
                step.actions.push(Action::Look { job, name, key, fields });
            }
        }
    }

    fn field_queries(&self, job: JobId) -> Vec<FieldQuery> {
        let task = self.plan().task(self.graph().set_of(job));
        let Some(when) = task.when.as_ref().filter(|_| self.detail == Detail::Full) else { return Vec::new() };
        let inputs = self.spec_context().inputs(job);
        let mut queries = Vec::new();
        condition::operands(when, &mut |operand| {
            if let Operand::Field { input, pointer } = operand
                && let Some(files) = inputs.iter().find(|files| files.name == *input)
                && let Some(file) = files.files.first()
            {
                queries.push(FieldQuery { input: input.clone(), pointer: pointer.clone(), file: file.clone() });
            }
        });
        queries
    }

    fn wake(&mut self, now: Timestamp, step: &mut Step) {
        while let Some((until, job)) = self.run.next_backoff() {
            if until > now {
                break;
            }
            self.record(now, Event::Due { job }, step);
        }
    }

    fn finish(&mut self, now: Timestamp, step: &mut Step) {
        if self.run.any_live() {
            return;
        }
        let outcome = match self.run.stopping() {
            Some(Stopping::Cancel) => Outcome::Cancelled,
            Some(_) if self.run.hard_failures() > 0 && self.policy().fail_fast => Outcome::Failed,
            Some(_) if !self.all_settled() => Outcome::Interrupted,
            _ if !self.all_settled() => return,
            _ if self.run.hard_failures() > 0 => Outcome::Failed,
            _ if self.run.cancellations() > 0 => Outcome::Cancelled,
            _ => Outcome::Done,
        };
        self.record(now, Event::RunEnded { outcome }, step);
        step.actions.push(Action::Finish(outcome));
    }

    /// True when no job is left to do. A dynamic set whose source failed never gets its jobs.
    fn all_settled(&self) -> bool {
        self.counts().settled() == self.counts().total()
            && (self.graph().pending().is_empty() || self.run.hard_failures() > 0 || self.run.cancellations() > 0)
    }

    /// What a job is made of: its command, inputs and key, as far as its parents have ended.
    pub fn spec_context(&self) -> SpecContext<'_> {
        SpecContext { graph: self.graph(), outputs: &self.run }
    }
}

fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Null => Value::Text(String::new()),
        other => Value::Text(other.to_string()),
    }
}
