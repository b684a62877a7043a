//! The environments of a run, looked at again after the tasks that used them: nothing keeps their old content, so a
//! result that was made with another one belongs to no key.

use super::known::Known;
use super::{Place, image_digest, names_of, packages, places};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tulpar_core::engine::Engine;
use tulpar_core::event::Input;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::{Ending, Report};
use tulpar_core::plan::Plan;
use tulpar_core::site::NodeKind;

/// Of the driver's time, looks take at most a fifth, however many tasks end; but no ending waits longer than this for one.
const REST: u32 = 4;
const LONGEST_REST: Duration = Duration::from_secs(2);

pub struct Watch {
    planned: BTreeMap<String, (Place, Digest)>,
    cache: PathBuf,
    known: Known,
    /// Tasks run in pilots, which have copies of images.
    in_pilots: bool,
    /// Endings that wait for the next look.
    waiting: Vec<Input>,
    next_look: Instant,
}

impl Watch {
    pub fn new(project: &Path, cache: &Path, plan: &Plan) -> Self {
        let mut planned = BTreeMap::new();
        if !plan.environments.is_empty() {
            let places = places(project, &plan.workflow).into_iter();
            planned.extend(places.filter_map(|(name, place)| {
                let digest = *plan.environments.get(&name)?;
                Some((name, (place, digest)))
            }));
        }
        let in_pilots = plan.site.nodes.iter().any(|node| node.kind == NodeKind::Pilot);
        let (waiting, next_look) = (Vec::new(), Instant::now());
        Self { planned, cache: cache.to_owned(), known: Known::default(), in_pilots, waiting, next_look }
    }

    /// How long until the endings that wait can be judged; none when nothing waits.
    pub fn rest(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then(|| self.next_look.saturating_duration_since(Instant::now()))
    }

    /// Gives the attempts among the inputs whose environment is not the planned one any more an ending that keeps nothing of them. Each
    /// environment is looked at once, after all of these attempts have ended; until it is time for a look, they wait.
    pub fn judge(&mut self, engine: &Engine, inputs: &mut Vec<Input>) {
        if self.planned.is_empty() {
            return;
        }
        let is_judged = |input: &Input| match input {
            Input::Ended { attempt, report } => {
                leaves_something(&report.ending)
                    && attempt.job.index() < engine.graph().len()
                    && self.is_watched(engine, attempt.job)
            }
            _ => false,
        };
        let (judged, others) = std::mem::take(inputs).into_iter().partition(is_judged);
        *inputs = others;
        self.waiting.extend::<Vec<Input>>(judged);
        let began = Instant::now();
        if self.waiting.is_empty() || began < self.next_look {
            return;
        }
        let mut judged = std::mem::take(&mut self.waiting);
        self.look(engine, &mut judged);
        inputs.extend(judged);
        let ended = Instant::now();
        self.next_look = ended + ((ended - began) * REST).min(LONGEST_REST);
    }

    fn is_watched(&self, engine: &Engine, job: JobId) -> bool {
        let graph = engine.graph();
        names_of(graph.plan().task(graph.set_of(job))).into_iter().any(|name| self.planned.contains_key(name))
    }

    fn look(&mut self, engine: &Engine, inputs: &mut [Input]) {
        let graph = engine.graph();
        let mut looked: BTreeMap<String, bool> = BTreeMap::new();
        for input in inputs {
            let Input::Ended { attempt, report } = input else { continue };
            let mut changed = Vec::new();
            for name in names_of(graph.plan().task(graph.set_of(attempt.job))) {
                let is_other = match looked.get(name) {
                    Some(is_other) => *is_other,
                    None => *looked.entry(name.to_owned()).or_insert(self.is_other(name)),
                };
                if is_other {
                    changed.push(format!("the environment `{name}`"));
                }
            }
            if !changed.is_empty() {
                spoil(report, changed);
            }
        }
    }

    /// Whether an environment holds something else than the plan says.
    fn is_other(&mut self, name: &str) -> bool {
        let Some((place, planned)) = self.planned.get(name) else { return false };
        let now = match place {
            // It is gone, and the pilots go on with their copies.
            Place::Image(path) if self.in_pilots && !path.exists() => return false,
            Place::Image(path) => self.known.or_read(path, |path| image_digest(path, &self.cache)),
            Place::Packages(path) => packages(path, &mut self.known),
        };
        now != Some(*planned)
    }
}

/// Files, numbers or a checkpoint that would be taken for results of the planned content.
fn leaves_something(ending: &Ending) -> bool {
    matches!(ending, Ending::Exit(0) | Ending::Incomplete(_) | Ending::Checkpointed)
}

fn spoil(report: &mut Report, changed: Vec<String>) {
    report.ending = Ending::InputsChanged(changed);
    report.outputs.clear();
    report.told = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_image_file_is_another_one_when_its_content_is() {
        let project = tempfile::tempdir().unwrap();
        let image = project.path().join("a.sif");
        fs::write(&image, "one").unwrap();
        let place = |path: &Path| Place::Image(path.to_owned());
        let planned = BTreeMap::from([("a.sif".to_owned(), (place(&image), Digest::of(b"one")))]);
        let (cache, known) = (project.path().join("cache"), Known::default());
        let (waiting, next_look) = (Vec::new(), Instant::now());
        let mut watch = Watch { planned, cache, known, in_pilots: false, waiting, next_look };
        assert!(!watch.is_other("a.sif"));
        fs::write(&image, "two").unwrap();
        assert!(watch.is_other("a.sif"));
        fs::write(&image, "one").unwrap();
        assert!(!watch.is_other("a.sif"));
        fs::remove_file(&image).unwrap();
        assert!(watch.is_other("a.sif"));
        assert!(!watch.is_other("docker://python"));
        watch.in_pilots = true;
        assert!(!watch.is_other("a.sif"));
        fs::write(&image, "two").unwrap();
        assert!(watch.is_other("a.sif"));
    }
}
