//! How attempts of a pilot end: what they left is measured, said, and remembered until the driver knows it.

use super::{Agent, Held, REMEMBERED, REMEMBERED_BYTES, State, release, stop_waiting};
use crate::Notice;
use crate::pilot::ending::{self, Measured};
use crate::pilot::message::{Ended, Message, Stage, Stream};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{Ending, Report};
use tulpar_core::live::LiveLine;

impl Agent {
    /// From the threads of the launcher.
    pub(in crate::pilot) fn notice(&self, notice: Notice) {
        match notice {
            Notice::Started(attempt) => {
                if let Some(outbox) = &self.state().outbox {
                    outbox.push_lazily(|to| Message::Started(vec![attempt]).lay(to));
                }
            }
            Notice::Ended(attempt, report) => self.ended(attempt, *report),
        }
    }

    /// What one look at all that runs saw goes over the line at once; without a line it is lost, and nobody misses it.
    pub(in crate::pilot) fn seen(&self, looks: Vec<LiveLine>) {
        if let Some(outbox) = &self.state().outbox {
            outbox.push_lazily(|to| Message::Seen(looks).lay(to));
        }
    }

    fn ended(&self, attempt: AttemptId, report: Report) {
        let record = self.records.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt).unwrap_or_default();
        let asked = self.state().attempts.get(&attempt).map(|held| held.asked).unwrap_or_default();
        // Reading and hashing happen while nobody waits for the lock.
        let measured = ending::measure(&self.folders, attempt, &report, asked);
        let mut state = self.state();
        for (digest, size) in &measured.objects {
            state.store.note(digest, *size);
        }
        let Measured { stdout, stderr, checkpoint, io, contents, .. } = measured;
        self.tell_end(&mut state, Ended { attempt, report, record, stdout, stderr, checkpoint, io, contents });
        self.start_more(&mut state);
        self.tell_change(state);
    }

    /// Ends an attempt that no process was started for.
    pub(super) fn end_unstarted(&self, state: &mut State, attempt: AttemptId, ending: Ending) {
        let nothing = || Stream::Here(Vec::new());
        stop_waiting(state, attempt);
        let ended = Ended {
            attempt,
            report: ending::unstarted(ending),
            record: Vec::new(),
            stdout: nothing(),
            stderr: nothing(),
            checkpoint: Vec::new(),
            io: None,
            contents: Vec::new(),
        };
        self.tell_end(state, ended);
    }

    fn tell_end(&self, state: &mut State, ended: Ended) {
        let attempt = ended.attempt;
        let Some(held) = state.attempts.remove(&attempt) else { return };
        release(state, &held);
        let sent: HashSet<Digest> = ended.contents.iter().map(|(digest, _)| *digest).collect();
        let outputs = ended.report.outputs.iter().map(|output| output.digest);
        let saved = ended.checkpoint.iter().map(|saved| saved.digest);
        let streams = [&ended.stdout, &ended.stderr].into_iter().filter_map(|stream| match stream {
            Stream::Here(_) => None,
            Stream::Object { digest, .. } => Some(*digest),
        });
        let log = ended.io.map(|(digest, _)| digest);
        let digests: Vec<Digest> =
            outputs.chain(saved).chain(streams).chain(log).filter(|digest| !sent.contains(digest)).collect();
        digests.iter().for_each(|digest| state.store.pin(digest));
        let mut bytes = Vec::new();
        Message::Ended(Box::new(ended)).lay(&mut bytes);
        let end: Arc<[u8]> = bytes.into();
        if let Some(outbox) = &state.outbox {
            // So long as there is something to start on every core, the driver may hear of several ends at once.
            let is_busy = state.queue.len() * 1000 > self.milli_cpus as usize;
            let lay = |to: &mut Vec<u8>| to.extend_from_slice(&end);
            if is_busy { outbox.push_lazily(lay) } else { outbox.push_all(lay) }
        }
        let held = Held { stage: Stage::Ended, spec: None, inputs: Vec::new(), end: Some((end, digests)), ..held };
        state.attempts.insert(attempt, held);
    }

    /// The driver knows their ends.
    pub(in crate::pilot) fn kept(&self, attempts: &[AttemptId]) {
        let mut state = self.state();
        for attempt in attempts {
            let ended = state.attempts.get_mut(attempt).filter(|held| held.stage == Stage::Ended);
            let Some(end) = ended.and_then(|held| held.end.as_ref().map(|(end, _)| Arc::clone(end))) else { continue };
            self.drop_held(&mut state, *attempt);
            state.known_bytes += end.len();
            state.known.push_back((*attempt, end));
            while state.known.len() > REMEMBERED || state.known_bytes > REMEMBERED_BYTES {
                let Some((_, oldest)) = state.known.pop_front() else { break };
                state.known_bytes -= oldest.len();
            }
        }
        self.tell_change(state);
    }
}
