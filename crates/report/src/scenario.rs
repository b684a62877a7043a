//! Several runs side by side: those of one workflow that were run the same way are a scenario, with the mean and the
//! standard deviation of every figure.

use crate::character::{Figure, JOB_FIGURES, Values, WORKFLOW_FIGURES};
use crate::summary::RunReport;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that a report shows: the page, the Markdown, the tables and the JSON are made of this.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    pub runs: Vec<RunReport>,
    /// Empty for a single run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<Scenario>,
    /// What others found about the same, said by whoever made the document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asides: Vec<Aside>,
}

/// A table with lines below it. What it is about is not known here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aside {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub lines: Vec<String>,
}

/// Runs that somebody gave a name to, by the names of the runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedRuns {
    pub name: String,
    pub runs: Vec<String>,
}

/// A figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    /// Of a sample: divided by n − 1. Absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The runs that know it.
    pub runs: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub name: String,
    pub workflow: String,
    pub simulated: bool,
    pub runs: Vec<String>,
    /// In the order of [`WORKFLOW_FIGURES`].
    pub workflow_level: Vec<Option<Spread>>,
    /// By kind of task, in the order of [`JOB_FIGURES`].
    pub job_level: Vec<(String, Vec<Option<Spread>>)>,
}

impl Document {
    /// `given` are scenarios by name; other runs are grouped by workflow and by what was chosen about them.
    pub fn new(mut runs: Vec<RunReport>, given: &[NamedRuns]) -> Self {
        crate::summary::compare(&mut runs);
        let scenarios = if runs.len() > 1 { scenarios(&runs, given) } else { Vec::new() };
        Self { runs, scenarios, asides: Vec::new() }
    }
}

impl Spread {
    /// Of what is known; `None` when nothing is.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let known: Vec<f64> = values.into_iter().flatten().collect();
        if known.is_empty() {
            return None;
        }
        let count = known.len() as f64;
        let mean = known.iter().sum::<f64>() / count;
        let squares: f64 = known.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (known.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        // Equal numbers differ from their mean only by its rounding.
        let deviation = deviation.map(|deviation| if deviation < mean.abs() * 1e-12 { 0.0 } else { deviation });
        Some(Self { mean, deviation, runs: known.len() as u64 })
    }
}

fn scenarios(runs: &[RunReport], given: &[NamedRuns]) -> Vec<Scenario> {
    let mut groups: Vec<(String, String, bool, Vec<&RunReport>)> = Vec::new();
    for run in runs {
        let named = given.iter().find(|scenario| scenario.runs.contains(&run.facts.run));
        let name = named.map_or_else(|| chosen(run), |scenario| scenario.name.clone());
        let same = |group: &&mut (String, String, bool, Vec<&RunReport>)| {
            group.0 == name && group.1 == run.workflow && group.2 == run.facts.simulated
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.3.push(run),
            None => groups.push((name, run.workflow.clone(), run.facts.simulated, vec![run])),
        }
    }
    // In the order in which people named them; the others behind.
    groups.sort_by_key(|group| given.iter().position(|scenario| scenario.name == group.0).unwrap_or(given.len()));
    groups.into_iter().map(|(name, workflow, simulated, runs)| scenario(name, workflow, simulated, &runs)).collect()
}

/// What runs are compared by when nobody says it.
fn chosen(run: &RunReport) -> String {
    let mut words = run.characterisation.scenario.clone();
    if let Some(mode) = run.facts.mode.as_deref().filter(|mode| *mode != "adaptive") {
        words.push_str(&format!(", {mode}"));
    }
    if run.facts.simulated {
        words.push_str(", simulated");
    }
    words
}

fn scenario(name: String, workflow: String, simulated: bool, runs: &[&RunReport]) -> Scenario {
    let of_workflow = |place: usize| Spread::of(runs.iter().map(|run| run.characterisation.workflow[place]));
    let mut kinds: Vec<(String, Vec<&Values<8>>)> = Vec::new();
    for job in runs.iter().flat_map(|run| &run.characterisation.jobs) {
        match kinds.iter_mut().find(|(kind, _)| *kind == job.task_set) {
            Some((_, values)) => values.push(&job.values),
            None => kinds.push((job.task_set.clone(), vec![&job.values])),
        }
    }
    let job_level = kinds.into_iter().map(|(kind, values)| {
        let spread = |place: usize| Spread::of(values.iter().map(|values| values[place]));
        (kind, (0..JOB_FIGURES.len()).map(spread).collect())
    });
    Scenario {
        name,
        workflow,
        simulated,
        runs: runs.iter().map(|run| run.facts.run.clone()).collect(),
        workflow_level: (0..WORKFLOW_FIGURES.len()).map(of_workflow).collect(),
        job_level: job_level.collect(),
    }
}

impl Scenario {
    /// One figure of the whole workflow.
    pub fn figure(&self, key: &str) -> Option<Spread> {
        let place = WORKFLOW_FIGURES.iter().position(|figure| figure.key == key)?;
        self.workflow_level[place]
    }
}

impl Serialize for Scenario {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        type Named = BTreeMap<&'static str, Spread>;
        fn named(figures: &[Figure], spreads: &[Option<Spread>]) -> Named {
            let known = figures.iter().zip(spreads);
            known.filter_map(|(figure, spread)| Some((figure.key, (*spread)?))).collect()
        }
        #[derive(Serialize)]
        struct Kind<'s> {
            task_set: &'s str,
            #[serde(flatten)]
            figures: Named,
        }
        #[derive(Serialize)]
        struct Whole<'s> {
            name: &'s str,
            workflow: &'s str,
            simulated: bool,
            runs: &'s [String],
            workflow_level: Named,
            job_level: Vec<Kind<'s>>,
        }
        let kinds = self.job_level.iter();
        let job_level = kinds.map(|(task_set, spreads)| Kind { task_set, figures: named(&JOB_FIGURES, spreads) });
        Whole {
            name: &self.name,
            workflow: &self.workflow,
            simulated: self.simulated,
            runs: &self.runs,
            workflow_level: named(&WORKFLOW_FIGURES, &self.workflow_level),
            job_level: job_level.collect(),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let spread = Spread::of([Some(2.0), Some(4.0), None, Some(9.0)]).expect("known");
        assert_eq!((spread.mean, spread.runs), (5.0, 3));
        assert!((spread.deviation.expect("three runs") - 13f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of([Some(3.0)]), Some(Spread { mean: 3.0, deviation: None, runs: 1 }));
        assert_eq!(Spread::of([None, None]), None);
    }
}
