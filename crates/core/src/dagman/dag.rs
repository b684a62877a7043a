//! A DAG as it was read: nodes with everything that was said about them, and edges. Splices and sub-DAGs are in place.

use super::report::Place;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Dag {
    pub(crate) nodes: Vec<Node>,
    /// Parent and child.
    pub(crate) edges: Vec<(u32, u32)>,
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
