//! Several plans as one, so that their workflows share a run and its resources.
//!
//! Each stays what it was: its tasks see only its own data, results and parameters.

use super::Plan;
use crate::ids::{DataId, SetId};
use crate::workflow::{AxisValues, FileSource, Member, Metadata, Run, Task, Workflow};
use std::collections::BTreeSet;

/// So many workflows are named in the name of the whole.
const MOST_NAMED: usize = 3;

impl Plan {
    /// One plan for all: task sets follow each other in the order of the plans and are called `workflow/task`. `weights`
    /// say how the members share resources; who has none has 1. All plans are for the site of the first. A plan alone
    /// stays as it is.
    pub fn join(mut plans: Vec<Plan>, weights: &[u32]) -> Plan {
        if plans.len() == 1 {
            return plans.swap_remove(0);
        }
        let names = names(&plans);
        let site = plans.first().map(|plan| plan.site.clone()).unwrap_or_default();
        let until_all = plans.iter().all(|plan| plan.until.is_empty());
        let mut whole = Plan::new(Workflow::default(), Vec::new(), site);
        let weights = weights.iter().copied().chain(std::iter::repeat(1));
        for ((plan, name), weight) in plans.into_iter().zip(&names).zip(weights) {
            whole.append(plan, name, weight, until_all);
        }
        whole.workflow.name = match names.len() {
            few @ ..=MOST_NAMED => names[..few].join("+"),
            many => format!("{}+{}-more", names[..MOST_NAMED].join("+"), many - MOST_NAMED),
        };
        whole
    }

    fn append(&mut self, plan: Plan, name: &str, weight: u32, until_all: bool) {
        let shift = Shift { sets: self.workflow.tasks.len(), data: self.workflow.data.len() };
        let Plan { workflow: other, files, environments, forced, until, .. } = plan;
        self.workflow.members.push(Member {
            name: name.to_owned(),
            first: SetId::from(shift.sets),
            weight,
            params: other.params,
        });
        let count = other.tasks.len();
        self.workflow.data.extend(other.data);
        self.workflow.hooks.extend(other.hooks);
        let Metadata { workflow, tasks, files: described } = other.metadata;
        let metadata = &mut self.workflow.metadata;
        metadata.workflow.extend(workflow.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
        metadata.tasks.extend(tasks.into_iter().map(|(task, words)| (format!("{name}/{task}"), words)));
        metadata.files.extend(described);
        self.workflow.tasks.extend(other.tasks.into_iter().map(|mut task| {
            task.name = format!("{name}/{}", task.name);
            shift.task(&mut task);
            task
        }));
        self.files.extend(files);
        self.environments.extend(environments);
        self.forced.extend(forced.into_iter().map(|set| shift.set(set)));
        match until.is_empty() {
            // All of it, though another member stops early.
            true if !until_all => self.until.extend((0..count).map(|set| shift.set(SetId::from(set)))),
            _ => self.until.extend(until.into_iter().map(|set| shift.set(set))),
        }
    }
}

/// What every member is called: as its workflow, in letters that folders can have, each once.
fn names(plans: &[Plan]) -> Vec<String> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let mut free = |wanted: &str| {
        let plain: String = wanted.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
        let plain = match plain.trim_start_matches('.') {
            "" => "workflow".to_owned(),
            plain => plain.to_owned(),
        };
        let numbered = (2u32..).map(|number| format!("{plain}-{number}"));
        let name = std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = name.unwrap_or(plain);
        taken.insert(name.clone());
        name
    };
    plans.iter().map(|plan| free(&plan.workflow.name)).collect()
}

/// How far the ids of a member move.
struct Shift {
    sets: usize,
    data: usize,
}

impl Shift {
    fn set(&self, set: SetId) -> SetId {
        SetId::from(set.index() + self.sets)
    }

    fn source(&self, source: &mut FileSource) {
        match source {
            FileSource::Data(data) => *data = DataId::from(data.index() + self.data),
            FileSource::Output { task, .. } | FileSource::Latest { task, .. } | FileSource::Search { task, .. } => {
                *task = self.set(*task);
            }
        }
    }

    fn task(&self, task: &mut Task) {
        task.after.iter_mut().for_each(|set| *set = self.set(*set));
        task.inputs.iter_mut().for_each(|input| self.source(&mut input.source));
        for axis in &mut task.scatter {
            match &mut axis.values {
                AxisValues::Files { source, .. } => self.source(source),
                AxisValues::Arrivals { task, .. } => *task = self.set(*task),
                AxisValues::Range { .. } | AxisValues::Rows(_) | AxisValues::Trials(_) => {}
            }
        }
        if let Run::Planned(planned) = &mut task.run {
            planned.further.values_mut().flatten().for_each(|source| self.source(source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::InputFile;
    use crate::plan::Graph;
    use crate::workflow::{DataFile, Value};
    use std::sync::Arc;

    fn plan(text: &str) -> Plan {
        let (workflow, findings) = crate::workflow::read(text, &Default::default());
        assert_eq!(findings, []);
        let workflow = workflow.expect("a workflow");
        let file = |data: &crate::workflow::Data| {
            let path = format!("{}.csv", data.name);
            DataFile { digest: crate::ids::Digest::of(path.as_bytes()), from: path.clone(), size: 1, path }
        };
        let files = workflow.data.iter().map(|data| vec![file(data)]).collect();
        Plan::new(workflow, files, Default::default())
    }

    const ONE: &str = "
workflow: one
params: {epochs: 5}
data: {labels: labels.csv}
hooks: {start: date}
tasks:
  split: {in: [labels], out: {parts: 'p/*'}, run: 'cut {labels} {epochs}'}
  each: {for: {part: parts}, in: [labels], out: {o: 'o-{part.stem}'}, run: 'cat {part} {labels} > {o}'}
  last: {in: [o], after: [split], run: 'cat {o}'}
";
    const OTHER: &str = "
workflow: one
params: {epochs: 7}
data: {labels: other.csv}
tasks:
  split: {in: [labels], out: {parts: 'p/*'}, run: 'cut {labels} {epochs}'}
";

    #[test]
    fn every_member_keeps_its_own_data_results_and_parameters() {
        let mut first = plan(ONE);
        first.forced = vec![SetId(2)];
        let mut second = plan(ONE);
        second.until = vec![SetId(0)];
        let joined = Plan::join(vec![first, plan(OTHER), second], &[2, 1, 3]);
        let workflow = &joined.workflow;
        assert_eq!(workflow.name, "one+one-2+one-3");
        let names: Vec<&str> = workflow.tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(
            names,
            ["one/split", "one/each", "one/last", "one-2/split", "one-3/split", "one-3/each", "one-3/last"]
        );
        let members: Vec<_> =
            workflow.members.iter().map(|member| (member.name.as_str(), member.first, member.weight)).collect();
        assert_eq!(members, [("one", SetId(0), 2), ("one-2", SetId(3), 1), ("one-3", SetId(4), 3)]);
        let epochs: Vec<_> = [0, 2, 3, 4, 6].map(|set| workflow.params_of(SetId(set))["epochs"].clone()).into();
        assert_eq!(epochs, [5, 5, 7, 5, 5].map(Value::Integer));
        assert_eq!(workflow.tasks[3].inputs[0].source, FileSource::Data(DataId(1)));
        assert_eq!(workflow.tasks[5].inputs[0].source, FileSource::Data(DataId(2)));
        let parts = FileSource::Output { task: SetId(4), output: 0 };
        assert_eq!(workflow.tasks[5].scatter[0].values, AxisValues::Files { source: parts, by: None });
        assert_eq!(workflow.tasks[6].inputs[0].source, FileSource::Output { task: SetId(5), output: 0 });
        assert_eq!(workflow.tasks[6].after, [SetId(4)]);
        assert_eq!(joined.forced, [SetId(2)]);
        // The third stops early, the others go to their ends.
        assert_eq!(joined.until, [0, 1, 2, 3, 4].map(SetId));
        let paths: Vec<&str> = joined
            .files
            .iter()
            .flat_map(|files: &Arc<[InputFile]>| files.iter())
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(paths, ["labels.csv"; 3]);
        assert_eq!(workflow.hooks.len(), 2);
        Graph::new(Arc::new(joined)).expect("an order");
    }

    #[test]
    fn a_plan_alone_stays_as_it_is() {
        assert_eq!(Plan::join(vec![plan(ONE)], &[9]), plan(ONE));
    }

    #[test]
    fn names_of_members_are_names_of_folders() {
        let named = |name: &str| {
            let mut plan = plan(OTHER);
            plan.workflow.name = name.to_owned();
            plan
        };
        let joined = Plan::join(["../a b", "a", "a", "a-2", ""].map(named).into(), &[]);
        let names: Vec<&str> = joined.workflow.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["-a-b", "a", "a-2", "a-2-2", "workflow"]);
        assert_eq!(joined.workflow.name, "-a-b+a+a-2+2-more");
    }
}
