//! Which ready jobs start now, and where: the most urgent class first, every class until it no longer fits.

use super::{Engine, Step};
use crate::event::{Action, Blame, Event};
use crate::ids::AttemptId;
use crate::job::{Ending, Report, Usage};
use crate::units::Timestamp;

impl Engine {
    pub(super) fn schedule(&mut self, now: Timestamp, step: &mut Step) {
        let mut classes = self.ready.by_urgency();
        while let Some((order, class)) = classes.pop_first() {
            let job = order.2;
            let Some(shares) = self.ready.find(class, &self.nodes) else {
                if self.live.is_empty() && !self.nodes.could_ever_run(self.ready.request(class)) {
                    // Waiting would last for ever: nothing runs, and all of the site is not enough.
                    self.record(now, Event::Failed { job, blame: Blame::Resources }, step);
                    classes.extend(self.ready.head(class).map(|head| (head, class)));
                }
                continue;
            };
            let attempt = AttemptId { job, n: self.attempts(job) + 1 };
            let request = self.request(job).clone();
            let placement = self.nodes.placement(shares);
            let share = &placement.nodes[0];
            let node = &self.plan().site.nodes[share.node.index()].name;
            let gpus = self.nodes.names_gpu(share);
            let spec = self.spec_context().spec(attempt, 0, &request, node, gpus);
            self.record(now, Event::Submitted { attempt, request, placement, variant: 0 }, step);
            match spec {
                Ok(spec) => step.actions.push(Action::Submit(Box::new(spec))),
                Err(error) => self.refuse(now, attempt, error.to_string(), step),
            }
            classes.extend(self.ready.head(class).map(|head| (head, class)));
        }
        self.skip_doomed(now, step);
    }

    /// Ends an attempt that cannot even be handed over.
    fn refuse(&mut self, now: Timestamp, attempt: AttemptId, why: String, step: &mut Step) {
        let report = Report {
            ending: Ending::Refused(why),
            started: now,
            ended: now,
            usage: Usage::default(),
            outputs: Vec::new(),
            stderr_tail: String::new(),
            script: None,
        };
        self.ended(now, attempt, Box::new(report), step);
    }
}
