//! A DAG as it was read: nodes with everything that was said about them, and edges. Splices and sub-DAGs are in place.

use super::report::Place;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Dag {
    pub(crate) nodes: Vec<Node>,
    /// Parent and child.
    pub(crate) edges: Vec<(u32, u32)>,
}

impl Dag {
    /// Nodes that wait for each other, in the order of their edges. DAGMan starts such a DAG, and ends it in the middle.
    pub(crate) fn cycle(&self) -> Option<Vec<u32>> {
        // A node that is done waits for nothing.
        let counts =
            |(parent, child): &&(u32, u32)| !self.nodes[*parent as usize].done && !self.nodes[*child as usize].done;
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut waiting = vec![0u32; self.nodes.len()];
        for (parent, child) in self.edges.iter().filter(counts) {
            children[*parent as usize].push(*child);
            waiting[*child as usize] += 1;
        }
        let mut free: Vec<u32> = (0..self.nodes.len() as u32).filter(|node| waiting[*node as usize] == 0).collect();
        while let Some(node) = free.pop() {
            for child in &children[node as usize] {
                waiting[*child as usize] -= 1;
                if waiting[*child as usize] == 0 {
                    free.push(*child);
                }
            }
        }
        // Each that is left has a parent that is left: going back leads into a cycle.
        let mut parent_of = vec![u32::MAX; self.nodes.len()];
        let left = |node: u32| waiting[node as usize] > 0;
        for (parent, child) in self.edges.iter().filter(counts).filter(|(parent, child)| left(*parent) && left(*child))
        {
            parent_of[*child as usize] = *parent;
        }
        let mut here = (0..self.nodes.len() as u32).find(|node| left(*node))?;
        let mut path: Vec<u32> = Vec::new();
        let mut seen = vec![u32::MAX; self.nodes.len()];
        while seen[here as usize] == u32::MAX {
            seen[here as usize] = path.len() as u32;
            path.push(here);
            here = parent_of[here as usize];
        }
        let mut cycle = path.split_off(seen[here as usize] as usize);
        cycle.reverse();
        let first = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
        cycle.rotate_left(first);
        Some(cycle)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// With the names of the splices around it: `outer+inner+node`.
    pub(crate) name: String,
    pub(crate) is_final: bool,
    pub(crate) submit: Submit,
    /// The folder that it is submitted from.
    pub(crate) folder: String,
    /// Only its scripts run.
    pub(crate) noop: bool,
    /// It was run before.
    pub(crate) done: bool,
    pub(crate) variables: Vec<Variable>,
    pub(crate) retry: u32,
    pub(crate) priority: Option<i32>,
    pub(crate) pre: Option<Script>,
    pub(crate) post: Option<Script>,
    /// The exit code of the PRE script that means: nothing to do.
    pub(crate) pre_skip: Option<i32>,
    /// No DAG names it: nothing says which of its files others read.
    pub(crate) alone: bool,
    pub(crate) place: Place,
}

impl Node {
    /// A description that no DAG names.
    pub(crate) fn alone(name: &str, text: &str, place: Place) -> Self {
        Self {
            name: name.to_owned(),
            is_final: false,
            submit: Submit::Inline(text.into(), place.clone()),
            folder: String::new(),
            noop: false,
            done: false,
            variables: Vec::new(),
            retry: 0,
            priority: None,
            pre: None,
            post: None,
            pre_skip: None,
            alone: true,
            place,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Submit {
    /// The path of a submit description, already joined with the folder.
    File(String),
    /// A description inside the DAG, with the place of its first line.
    Inline(Arc<str>, Place),
}

/// One `VARS` definition.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
    /// After the submit description, so that it wins over what stands there.
    pub(crate) append: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) words: Vec<String>,
    pub(crate) place: Place,
}
