//! Sites where another system queues and places jobs: what Tulpar tells it of each job beside its request.
//!
//! A profile is what the users of one facility are told to write by hand; classes choose among its lines by the
//! declared run time. It knows nothing of submit files or scripts.

use crate::resources::Request;
use crate::units::micros_if_any;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    Htcondor,
    Slurm,
}

impl System {
    pub const ALL: [(&'static str, Self); 2] = [("htcondor", Self::Htcondor), ("slurm", Self::Slurm)];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).expect("all values are listed").0
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Jobs in a queue at a time when nobody says how many.
const AT_MOST: u32 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub system: System,
    /// Jobs that may be there at a time, waiting or running.
    pub at_most: u32,
    /// Lines in the system's own language for every job: `request_disk` of HTCondor, `--account` of Slurm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(String, String)>,
    /// Lines for some jobs: the first class of each group that a job fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
}

/// Lines for jobs of one kind and length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub name: String,
    /// Only for jobs with, or without, GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<bool>,
    /// Only for jobs that say they take at most this long.
    #[serde(default, with = "micros_if_any", skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Duration>,
    /// For jobs that do not say how long they take.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usual: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(String, String)>,
}

/// What a job needs to end, beside its grace: files travel, clocks differ.
const MOST_SPARE: Duration = Duration::from_secs(600);

impl Queue {
    pub fn new(system: System) -> Self {
        Self { system, at_most: AT_MOST, lines: Vec::new(), classes: Vec::new() }
    }

    /// The class of a job, by what it asks for and whether it can be taken up again after an eviction.
    pub fn class(&self, request: &Request) -> Option<&Class> {
        let fits = |class: &&Class| class.gpus.is_none_or(|gpus| gpus == (request.gpus > 0));
        let mut classes = self.classes.iter().filter(fits);
        match request.time {
            Some(time) => classes.find(|class| class.up_to.is_none_or(|up_to| time <= up_to)),
            None => {
                let usual = classes.clone().find(|class| class.usual);
                usual.or_else(|| classes.find(|class| class.up_to.is_none()))
            }
        }
    }

    /// When a job that saves its state and does not say how long it takes must do so: where its class ends, the site ends it,
    /// and what it saved would be lost.
    pub fn last_save(&self, request: &Request, grace: Duration) -> Option<Duration> {
        let limit = self.class(request).filter(|_| request.time.is_none())?.up_to?;
        let spare = (limit / 20).min(MOST_SPARE);
        limit.checked_sub(grace + spare).filter(|part| !part.is_zero())
    }
}

/// What a facility tells its users to write.
pub struct Profile {
    pub name: &'static str,
    /// Where it holds.
    pub about: &'static str,
    lines: &'static [(&'static str, &'static str)],
    classes: &'static [Row],
}

/// Name, GPUs, hours, whether it is the usual one, lines.
type Row = (&'static str, bool, u64, bool, &'static [(&'static str, &'static str)]);

const PROFILES: &[Profile] = &[
    Profile {
        name: "chtc",
        about: "CHTC, University of Wisconsin–Madison: GPU Lab by job length",
        lines: &[],
        classes: &[
            ("short", true, 12, false, &[("+WantGPULab", "true"), ("+GPUJobLength", "\"short\"")]),
            ("medium", true, 24, true, &[("+WantGPULab", "true"), ("+GPUJobLength", "\"medium\"")]),
            ("long", true, 7 * 24, false, &[("+WantGPULab", "true"), ("+GPUJobLength", "\"long\"")]),
            ("cpu", false, 72, true, &[]),
        ],
    },
    Profile {
        name: "ospool",
        about: "OSPool: duration categories",
        lines: &[],
        classes: &[
            ("medium", false, 10, true, &[("+JobDurationCategory", "\"Medium\"")]),
            ("long", false, 20, false, &[("+JobDurationCategory", "\"Long\"")]),
            ("medium", true, 10, true, &[("+JobDurationCategory", "\"Medium\"")]),
            ("long", true, 20, false, &[("+JobDurationCategory", "\"Long\"")]),
        ],
    },
];

pub fn profiles() -> &'static [Profile] {
    PROFILES
}

pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Adds what the facility wants to what the user wrote; the user's own classes come first.
    pub fn apply(&self, queue: &mut Queue) {
        let owned = |lines: &[(&str, &str)]| -> Vec<(String, String)> {
            lines.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        queue.lines.extend(owned(self.lines));
        queue.classes.extend(self.classes.iter().map(|(name, gpus, hours, usual, lines)| Class {
            name: (*name).to_owned(),
            gpus: Some(*gpus),
            up_to: Some(Duration::from_secs(hours * 3600)),
            usual: *usual,
            lines: owned(lines),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(gpus: u32, hours: Option<u64>) -> Request {
        Request { gpus, time: hours.map(|hours| Duration::from_secs(hours * 3600)), ..Request::default() }
    }

    #[test]
    fn the_declared_run_time_chooses_the_class() {
        let mut queue = Queue::new(System::Htcondor);
        profile("chtc").unwrap().apply(&mut queue);
        let class = |gpus, hours| queue.class(&request(gpus, hours)).map(|class| class.name.as_str());
        assert_eq!(class(1, Some(2)), Some("short"));
        assert_eq!(class(1, Some(13)), Some("medium"));
        assert_eq!(class(1, None), Some("medium"));
        assert_eq!(class(2, Some(100)), Some("long"));
        assert_eq!(class(1, Some(1000)), None, "no class of the GPU Lab takes six weeks");
        assert_eq!(class(0, Some(2)), Some("cpu"));
    }

    #[test]
    fn a_job_that_saves_its_state_does_so_before_its_class_ends() {
        let mut queue = Queue::new(System::Htcondor);
        let grace = Duration::from_secs(60);
        assert_eq!(queue.last_save(&request(1, None), grace), None);
        profile("chtc").unwrap().apply(&mut queue);
        let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
        assert_eq!(queue.last_save(&request(1, None), grace), minutes(24 * 60 - 11));
        // Its own limit comes first.
        assert_eq!(queue.last_save(&request(1, Some(12)), grace), None);
        queue.classes.iter_mut().for_each(|class| class.up_to = Some(grace));
        assert_eq!(queue.last_save(&request(1, None), grace), None);
    }
}
