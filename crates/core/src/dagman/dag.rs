//! A DAG as it was read: nodes with everything that was said about them, and edges. Splices and sub-DAGs are in place.

use super::report::Place;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Dag {
    pub(super) nodes: Vec<Node>,
    /// Parent and child.
    pub(super) edges: Vec<(u32, u32)>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    /// With the names of the splices around it: `outer+inner+node`.
    pub(super) name: String,
    pub(super) is_final: bool,
    pub(super) submit: Submit,
    /// The folder that it is submitted from.
    pub(super) folder: String,
    /// Only its scripts run.
    pub(super) noop: bool,
    /// It was run before.
    pub(super) done: bool,
    pub(super) variables: Vec<Variable>,
    pub(super) retry: u32,
    pub(super) priority: Option<i32>,
    pub(super) pre: Option<Script>,
    pub(super) post: Option<Script>,
    /// The exit code of the PRE script that means: nothing to do.
    pub(super) pre_skip: Option<i32>,
    /// No DAG names it: nothing says which of its files others read.
    pub(super) alone: bool,
    pub(super) place: Place,
}

impl Node {
    /// A description that no DAG names.
    pub(super) fn alone(name: &str, text: &str, place: Place) -> Self {
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
pub(super) enum Submit {
    /// The path of a submit description, already joined with the folder.
    File(String),
    /// A description inside the DAG, with the place of its first line.
    Inline(Arc<str>, Place),
}

/// One `VARS` definition.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
    /// After the submit description, so that it wins over what stands there.
    pub(super) append: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) words: Vec<String>,
    pub(super) place: Place,
}
