//! The graph in which every cluster is one node: levels in it, and the splitting of clusters that would wait for
//! each other in a circle. It does not know why tasks are together.

use super::super::abstraction::{Abstract, Lists, NONE, TaskId};
use super::super::partition::Partition;
use rustc_hash::FxHashMap;

/// A graph of the clusters of a sound partition.
pub(super) struct Contracted {
    parents: Lists<u32>,
    /// Every node after those that it needs.
    order: Vec<u32>,
    levels: Vec<u32>,
}

impl Contracted {
    pub(super) fn new(graph: &Abstract, partition: &Partition) -> Self {
        let count = partition.len();
        let ours = |task: TaskId| partition.cluster_of(task) as u32;
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(graph.edges());
        for task in graph.ids() {
            let parents = graph.parents(task).iter().map(|parent| (ours(task), ours(*parent)));
            pairs.extend(parents.filter(|(child, parent)| child != parent));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut reversed: Vec<(u32, u32)> = pairs.iter().map(|(child, parent)| (*parent, *child)).collect();
        reversed.sort_unstable();
        let parents = Lists::from_sorted(count, pairs);
        let children = Lists::from_sorted(count, reversed);
        let mut waits: Vec<usize> = (0..count).map(|node| parents.row(node).len()).collect();
        let mut order: Vec<u32> = (0..count as u32).filter(|node| waits[*node as usize] == 0).collect();
        let mut levels = vec![0; count];
        let mut next = 0;
        while next < order.len() {
            let node = order[next] as usize;
            next += 1;
            for child in children.row(node) {
                let child = *child as usize;
                levels[child] = levels[child].max(levels[node] + 1);
                waits[child] -= 1;
                if waits[child] == 0 {
                    order.push(child as u32);
                }
            }
        }
        Self { parents, order, levels }
    }

    pub(super) fn len(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn level(&self, node: usize) -> u32 {
        self.levels[node]
    }

    /// Makes a wish sound: nodes with one number shall go together (`NONE`: by itself), and numbers that wait for
    /// each other in a circle are split into parts that do not. Answers the numbers that were split, with their parts.
    ///
    /// Inside a circle every node gets a stage: that of its parents, one more where the number changes. Parts are equal
    /// number and equal stage, so that what leads from one part to another always leads to a later stage.
    pub(super) fn split_circles(&self, wanted: &mut [u32]) -> Vec<(u32, Vec<u32>)> {
        let mut free = wanted.iter().filter(|number| **number != NONE).max().map_or(0, |highest| *highest + 1);
        let first_free = free;
        // Nodes by themselves are numbered after the others, and only in here.
        let number = |wanted: &[u32], node: usize| match wanted[node] {
            NONE => first_free + node as u32,
            number => number,
        };
        let total = first_free as usize + self.len();
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for node in 0..self.len() {
            let ours = number(wanted, node);
            let theirs = self.parents.row(node).iter().map(|parent| number(wanted, *parent as usize));
            edges.extend(theirs.filter(|parent| *parent != ours).map(|parent| (parent, ours)));
        }
        edges.sort_unstable();
        edges.dedup();
        let circles = circles(&Lists::from_sorted(total, edges), total);
        if circles.iter().all(|circle| *circle == NONE) {
            return Vec::new();
        }
        let mut stages = vec![0u32; self.len()];
        let mut parts: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut split: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut place: FxHashMap<u32, usize> = FxHashMap::default();
        let mut numbers: Vec<(usize, u32)> = Vec::new();
        for node in self.order.iter().map(|node| *node as usize) {
            let ours = number(wanted, node);
            let circle = circles[ours as usize];
            if circle == NONE {
                continue;
            }
            for parent in self.parents.row(node) {
                let theirs = number(wanted, *parent as usize);
                if circles[theirs as usize] == circle {
                    stages[node] = stages[node].max(stages[*parent as usize] + u32::from(theirs != ours));
                }
            }
            if wanted[node] != NONE {
                let part = *parts.entry((ours, stages[node])).or_insert_with(|| {
                    free += 1;
                    let at = *place.entry(ours).or_insert_with(|| {
                        split.push((ours, Vec::new()));
                        split.len() - 1
                    });
                    split[at].1.push(free - 1);
                    free - 1
                });
                numbers.push((node, part));
            }
        }
        numbers.into_iter().for_each(|(node, part)| wanted[node] = part);
        // A number that lies on a circle only because of others keeps all of its tasks.
        split.retain(|(_, parts)| parts.len() > 1);
        split
    }
}

/// Of each node, the circle (strongly connected component of two or more) that it lies on, or `NONE`. Tarjan's way,
/// with a stack of its own since graphs may be a million deep.
fn circles(children: &Lists<u32>, count: usize) -> Vec<u32> {
    let mut circle = vec![NONE; count];
    let (mut seen, mut low) = (vec![NONE; count], vec![0u32; count]);
    let mut open = vec![false; count];
    let (mut path, mut stack): (Vec<(u32, u32)>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut clock = 0;
    for root in 0..count {
        if seen[root] != NONE {
            continue;
        }
        path.push((root as u32, 0));
        while let Some((node, next)) = path.last_mut() {
            let at = *node as usize;
            if *next == 0 {
                seen[at] = clock;
                low[at] = clock;
                clock += 1;
                stack.push(*node);
                open[at] = true;
            }
            if let Some(child) = children.row(at).get(*next as usize) {
                *next += 1;
                let child = *child as usize;
                if seen[child] == NONE {
                    path.push((child as u32, 0));
                } else if open[child] {
                    low[at] = low[at].min(seen[child]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent as usize] = low[*parent as usize].min(low[at]);
            }
            if low[at] == seen[at] {
                let alone = stack.last() == Some(&(at as u32));
                while let Some(member) = stack.pop() {
                    open[member as usize] = false;
                    if !alone {
                        circle[member as usize] = at as u32;
                    }
                    if member as usize == at {
                        break;
                    }
                }
            }
        }
    }
    circle
}

#[cfg(test)]
mod tests {
    use super::super::super::abstraction::{Builder, Task};
    use super::*;

    fn graph(count: usize, edges: &[(usize, usize)]) -> Abstract {
        let mut builder = Builder::new("graph");
        let tasks: Vec<TaskId> = (0..count).map(|_| builder.task(Task::default())).collect();
        edges.iter().for_each(|(parent, child)| builder.after(tasks[*child], tasks[*parent]));
        builder.finish().expect("no circle")
    }

    /// `-` is a task by itself. Node numbers are those of tasks in topological order, so the examples are in it.
    fn split(count: usize, edges: &[(usize, usize)], wanted: &[u32]) -> (Vec<u32>, usize) {
        let graph = graph(count, edges);
        let contracted = Contracted::new(&graph, &Partition::none(&graph));
        let mut wanted = wanted.to_vec();
        let splits = contracted.split_circles(&mut wanted).len();
        let numbers: Vec<Option<u32>> = wanted.iter().map(|number| Some(*number).filter(|it| *it != NONE)).collect();
        assert!(Partition::new(&graph, &numbers, |_| String::new()).is_sound(&graph));
        (wanted, splits)
    }

    #[test]
    fn a_cluster_around_another_task_is_split_in_two() {
        assert_eq!(split(3, &[(0, 1), (1, 2)], &[0, NONE, 0]), (vec![1, NONE, 2], 1));
    }

    #[test]
    fn two_clusters_that_need_each_other_are_split_by_stages() {
        // 0 -> 2 and 1 -> 3, wanted {0, 3} and {1, 2}: the first needs the second and the other way round.
        let (wanted, splits) = split(4, &[(0, 2), (1, 3)], &[0, 1, 1, 0]);
        assert_eq!((wanted, splits), (vec![2, 3, 4, 5], 2));
    }

    #[test]
    fn what_makes_no_circle_is_left_as_it_is() {
        assert_eq!(split(4, &[(0, 1), (1, 2), (2, 3)], &[0, 0, 1, 1]), (vec![0, 0, 1, 1], 0));
    }

    #[test]
    fn a_circle_does_not_split_clusters_outside_of_it() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 4)];
        let (wanted, _) = split(5, &edges, &[0, NONE, 0, 1, 1]);
        assert_eq!(wanted[3], wanted[4]);
        assert_ne!(wanted[0], wanted[2]);
    }
}
