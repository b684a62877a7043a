//! Which tasks share a job. A partition is sound when no two of its clusters wait for each other.

use super::abstraction::{Abstract, Lists, NONE, TaskId};

#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    cluster_of: Vec<u32>,
    clusters: Lists<TaskId>,
    /// Of each cluster, what people call it; empty for a task by itself.
    names: Vec<String>,
}

impl Partition {
    /// Every task by itself.
    pub fn none(graph: &Abstract) -> Self {
        Self::new(graph, &vec![None; graph.tasks.len()], |_| String::new())
    }

    /// Tasks with the same number go together, those without one stay by themselves. Numbers need not be dense;
    /// `name` is asked once for each cluster of two or more tasks.
    pub fn new(graph: &Abstract, wanted: &[Option<u32>], mut name: impl FnMut(u32) -> String) -> Self {
        let highest = wanted.iter().flatten().max().map_or(0, |highest| *highest as usize + 1);
        let mut sizes = vec![0u32; highest];
        wanted.iter().flatten().for_each(|number| sizes[*number as usize] += 1);
        let mut dense = vec![NONE; highest];
        let mut cluster_of = vec![NONE; wanted.len()];
        let mut names = Vec::new();
        // In topological order, so that clusters come in the order of their first tasks and list theirs in it.
        for task in graph.order() {
            let number = wanted[task.index()].filter(|number| sizes[*number as usize] > 1);
            cluster_of[task.index()] = match number {
                Some(number) if dense[number as usize] != NONE => dense[number as usize],
                _ => {
                    let cluster = names.len() as u32;
                    if let Some(number) = number {
                        dense[number as usize] = cluster;
                    }
                    names.push(number.map(&mut name).unwrap_or_default());
                    cluster
                }
            };
        }
        let mut pairs: Vec<(u32, TaskId)> =
            graph.order().iter().map(|task| (cluster_of[task.index()], *task)).collect();
        pairs.sort_by_key(|(cluster, _)| *cluster);
        let clusters = Lists::from_sorted(names.len(), pairs);
        Self { cluster_of, clusters, names }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The tasks of a cluster, each after those it needs.
    pub fn tasks(&self, cluster: usize) -> &[TaskId] {
        self.clusters.row(cluster)
    }

    pub fn name(&self, cluster: usize) -> &str {
        &self.names[cluster]
    }

    pub fn cluster_of(&self, task: TaskId) -> usize {
        self.cluster_of[task.index()] as usize
    }

    /// True when clusters do not wait for each other in a circle.
    pub fn is_sound(&self, graph: &Abstract) -> bool {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for task in graph.ids() {
            let ours = self.cluster_of[task.index()];
            let theirs = graph.parents(task).iter().map(|parent| self.cluster_of[parent.index()]);
            edges.extend(theirs.filter(|parent| *parent != ours).map(|parent| (parent, ours)));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut waits = vec![0u32; self.len()];
        edges.iter().for_each(|(_, child)| waits[*child as usize] += 1);
        let children = Lists::from_sorted(self.len(), edges);
        let mut ready: Vec<usize> = (0..self.len()).filter(|cluster| waits[*cluster] == 0).collect();
        let mut done = 0;
        while let Some(cluster) = ready.pop() {
            done += 1;
            for child in children.row(cluster) {
                waits[*child as usize] -= 1;
                if waits[*child as usize] == 0 {
                    ready.push(*child as usize);
                }
            }
        }
        done == self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::abstraction::{Builder, Task};
    use super::*;

    fn chain(count: usize) -> Abstract {
        let mut builder = Builder::new("chain");
        let tasks: Vec<TaskId> = (0..count).map(|_| builder.task(Task::default())).collect();
        tasks.windows(2).for_each(|pair| builder.after(pair[1], pair[0]));
        builder.finish().expect("a chain has no circle")
    }

    #[test]
    fn tasks_with_one_number_go_together_in_their_order() {
        let partition = Partition::new(&chain(4), &[Some(7), Some(7), None, Some(3)], |number| format!("c{number}"));
        let clusters: Vec<&[TaskId]> = (0..partition.len()).map(|cluster| partition.tasks(cluster)).collect();
        assert_eq!(clusters, [&[TaskId(0), TaskId(1)][..], &[TaskId(2)], &[TaskId(3)]]);
        assert_eq!((partition.name(0), partition.name(2)), ("c7", ""));
    }

    #[test]
    fn clusters_that_wait_for_each_other_are_not_sound() {
        let graph = chain(3);
        let numbered = |wanted: &[Option<u32>]| Partition::new(&graph, wanted, |_| String::new()).is_sound(&graph);
        assert!(!numbered(&[Some(0), None, Some(0)]));
        assert!(numbered(&[Some(0), Some(0), Some(0)]));
    }
}
