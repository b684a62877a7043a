//! What the study found, as questions that simulated and measured times answer: yes, no, or not to be told from noise.
//!
//! It knows neither how the times came about nor where the answers are shown.

use std::collections::BTreeMap;
use tulpar_lab::published::ScenarioName;

/// A time in seconds, and the standard error of its mean: nought if it was simulated, infinite if it was measured once.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    pub mean: f64,
    pub error: f64,
}

impl Time {
    pub fn exact(mean: f64) -> Self {
        Self { mean, error: 0.0 }
    }

    /// Two standard errors of the difference: what is smaller may be chance.
    fn noise(&self, other: &Self) -> f64 {
        2.0 * self.error.hypot(other.error)
    }

    /// Nothing where noise decides.
    pub fn is_less_than(&self, other: &Self) -> Option<bool> {
        let (more, noise) = (other.mean - self.mean, self.noise(other));
        match more.abs() > noise || noise == 0.0 {
            true => Some(more > 0.0),
            false => None,
        }
    }

    /// Whether both differ by no more than a part of the other; nothing where noise is larger than that.
    pub fn equals(&self, other: &Self, part: f64) -> Option<bool> {
        let (apart, most, noise) = ((self.mean - other.mean).abs(), part * other.mean, self.noise(other));
        match () {
            () if apart + noise <= most => Some(true),
            () if apart - noise > most => Some(false),
            () => None,
        }
    }
}

/// What a scenario came to.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub makespan: Time,
    pub compute: Time,
    pub stage_in: Time,
    pub stage_out: Time,
}

/// A workflow with what each of its scenarios came to.
pub type Told = (String, BTreeMap<ScenarioName, Seen>);

pub struct Finding {
    pub what: &'static str,
    /// In how many places it is so.
    holds: usize,
    /// Where it is not so.
    pub exceptions: Vec<String>,
    /// Where runs differ too much among themselves to tell.
    unclear: Vec<String>,
}

impl Finding {
    pub fn words(&self) -> String {
        let verdict = match (self.holds, self.exceptions.len(), self.unclear.len()) {
            (0, 0, 0) => "open   ",
            (_, 0, 0) => "yes    ",
            (0, _, 0) => "no     ",
            (0, 0, _) => "unclear",
            _ => "partly ",
        };
        let mut words = format!("{verdict} {}", self.what);
        if !self.exceptions.is_empty() {
            words += &format!("; not {}", self.exceptions.join(", "));
        }
        if !self.unclear.is_empty() {
            words += &format!("; within the noise {}", self.unclear.join(", "));
        }
        words
    }
}

/// The order in which staging falls in the study, two by two.
const FALLS: [(ScenarioName, ScenarioName); 5] = [
    (ScenarioName::ContainerInstalled, ScenarioName::Baseline),
    (ScenarioName::Nfs, ScenarioName::Baseline),
    (ScenarioName::Nfs, ScenarioName::ContainerInstalled),
    (ScenarioName::Clustering, ScenarioName::Nfs),
    (ScenarioName::Clustering, ScenarioName::Baseline),
];

/// The findings of the study. Times that differ by no more than the part `equal` are equal. What needs a scenario that was
/// not tried is left open.
pub fn findings(told: &[Told], equal: f64) -> Vec<Finding> {
    use ScenarioName::{Baseline, Clustering, ContainerInstalled, Nfs};
    type Holds<'a> = &'a dyn Fn(&Seen, &Seen) -> Option<bool>;
    // Each compares one scenario with another.
    let finding = |what, pairs: &[(ScenarioName, ScenarioName)], holds: Holds| {
        let mut finding = Finding { what, holds: 0, exceptions: Vec::new(), unclear: Vec::new() };
        for (workflow, seen) in told {
            for (one, other) in pairs {
                let (Some(first), Some(second)) = (seen.get(one), seen.get(other)) else { continue };
                let place = match one == other {
                    true => format!("{workflow} with {}", one.name()),
                    false => format!("{workflow}: {} against {}", one.name(), other.name()),
                };
                match holds(first, second) {
                    Some(true) => finding.holds += 1,
                    Some(false) => finding.exceptions.push(place),
                    None => finding.unclear.push(place),
                }
            }
        }
        finding
    };
    vec![
        finding(
            "clustering is the fastest",
            &[(Clustering, Baseline), (Clustering, ContainerInstalled), (Clustering, Nfs)],
            &|one, other| one.makespan.is_less_than(&other.makespan),
        ),
        finding(
            "NFS is the slowest",
            &[(Nfs, Baseline), (Nfs, ContainerInstalled), (Nfs, Clustering)],
            &|one, other| other.makespan.is_less_than(&one.makespan),
        ),
        finding(
            "with containers installed it is faster than the baseline",
            &[(ContainerInstalled, Baseline)],
            &|one, other| one.makespan.is_less_than(&other.makespan),
        ),
        finding(
            "files take longer to come than to leave",
            &[(Baseline, Baseline), (ContainerInstalled, ContainerInstalled), (Clustering, Clustering)],
            &|seen, _| seen.stage_out.is_less_than(&seen.stage_in),
        ),
        finding("staging in falls from baseline to container installed to NFS to clustering", &FALLS, &|one, other| {
            one.stage_in.is_less_than(&other.stage_in)
        }),
        finding(
            "staging out falls from baseline to container installed to NFS to clustering",
            &FALLS,
            &|one, other| one.stage_out.is_less_than(&other.stage_out),
        ),
        finding(
            "tasks compute equally long in all but NFS",
            &[(ContainerInstalled, Baseline), (Clustering, Baseline)],
            &|one, other| one.compute.equals(&other.compute, equal),
        ),
        finding("tasks compute longer with NFS", &[(Nfs, Baseline)], &|one, other| {
            other.compute.is_less_than(&one.compute)
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_noise_decides_is_not_decided() {
        // Measured on a busy machine, twice each: 29.2 ± 11.0 s and 25.2 ± 6.6 s say nothing about which is faster.
        let (slow, fast) = (Time { mean: 29.16, error: 7.8 }, Time { mean: 25.2, error: 4.6 });
        assert_eq!(fast.is_less_than(&slow), None);
        assert_eq!(fast.equals(&slow, 0.1), None);
        assert_eq!(fast.is_less_than(&Time { mean: 141.28, error: 1.0 }), Some(true));
        assert_eq!(Time::exact(2.0).is_less_than(&Time::exact(2.0)), Some(false));
        assert_eq!(Time::exact(2.0).equals(&Time::exact(2.1), 0.1), Some(true));
        assert_eq!(Time::exact(2.0).equals(&Time::exact(3.0), 0.1), Some(false));
        let once = Time { mean: 1.0, error: f64::INFINITY };
        assert_eq!(once.is_less_than(&Time { mean: 9.0, error: f64::INFINITY }), None, "one run cannot tell");
    }

    #[test]
    fn what_was_not_tried_is_left_open_and_the_rest_is_answered() {
        let seen = |makespan, stage_out| Seen {
            makespan: Time::exact(makespan),
            compute: Time::exact(5.0),
            stage_in: Time::exact(3.0),
            stage_out: Time::exact(stage_out),
        };
        let tried =
            BTreeMap::from([(ScenarioName::Baseline, seen(10.0, 2.0)), (ScenarioName::Clustering, seen(8.0, 1.0))]);
        let words: Vec<String> = findings(&[("w".to_owned(), tried)], 0.1).iter().map(super::Finding::words).collect();
        assert_eq!(
            words,
            [
                "yes     clustering is the fastest",
                "open    NFS is the slowest",
                "open    with containers installed it is faster than the baseline",
                "yes     files take longer to come than to leave",
                "no      staging in falls from baseline to container installed to NFS to clustering; not w: clustering \
                 against baseline",
                "yes     staging out falls from baseline to container installed to NFS to clustering",
                "yes     tasks compute equally long in all but NFS",
                "open    tasks compute longer with NFS",
            ]
        );
    }
}
