//! What every name of a workflow stands for, across all tasks.

use super::reader::{Reader, list};
use super::{Data, FileSource, Finding, Output, Span};
use crate::diagnostic::{AMBIGUOUS_NAME, Diagnostic, UNKNOWN_NAME};
use crate::ids::{DataId, SetId};
use rustc_hash::FxHashMap;

/// A task before its inputs are looked at: what others may refer to.
pub(super) struct Head<'d> {
    pub(super) name: &'d str,
    pub(super) span: Span,
    pub(super) outputs: Vec<Output>,
    /// It is a search.
    pub(super) searches: bool,
}

impl Head<'_> {
    /// What is meant by `best`, `trials`, `best.model`, `best(3).model` or `front.model` of a search.
    fn finding(&self, words: &str) -> Option<Finding> {
        let output = |name: &str| Some(self.outputs.iter().position(|other| other.name == name)? as u32);
        match words.split_once('.') {
            None => match words {
                "best" => Some(Finding::Best),
                "trials" => Some(Finding::Trials),
                _ => None,
            },
            Some(("best", name)) => Some(Finding::Output(output(name)?)),
            Some(("front", name)) => Some(Finding::Front(output(name)?)),
            Some((which, name)) => {
                let trials = which.strip_prefix("best(")?.strip_suffix(')')?.trim().parse().ok()?;
                Some(Finding::Top { trials, output: output(name)? }).filter(|_| trials > 0)
            }
        }
    }
}

#[derive(Default)]
pub(super) struct Index<'d> {
    data: FxHashMap<&'d str, DataId>,
    tasks: FxHashMap<&'d str, SetId>,
    /// The first task with an output of this name, and the output's position.
    outputs: FxHashMap<&'d str, (SetId, u32)>,
    /// Further tasks with an output of the same name.
    more_outputs: FxHashMap<&'d str, Vec<(SetId, u32)>>,
}

impl<'d> Index<'d> {
    pub(super) fn new(data: &'d [Data], heads: &'d [Head<'d>]) -> Self {
        let mut index = Index::default();
        for (number, entry) in data.iter().enumerate() {
            index.data.insert(&entry.name, DataId::from(number));
        }
        index.tasks.reserve(heads.len());
        index.outputs.reserve(heads.len());
        for (number, head) in heads.iter().enumerate() {
            let set = SetId::from(number);
            index.tasks.insert(head.name, set);
            for (position, output) in head.outputs.iter().enumerate() {
                let here = (set, position as u32);
                if index.outputs.try_insert_first(&output.name, here) {
                    continue;
                }
                index.more_outputs.entry(&output.name).or_default().push(here);
            }
        }
        index
    }

    pub(super) fn task(&self, name: &str) -> Option<SetId> {
        self.tasks.get(name).copied()
    }

    pub(super) fn task_names(&self) -> impl ExactSizeIterator<Item = &'d str> {
        self.tasks.keys().copied()
    }

    /// The files that a name means for one task; reports when there are none, or several candidates.
    pub(super) fn resolve(
        &self,
        reader: &mut Reader,
        heads: &[Head<'_>],
        consumer: SetId,
        name: &str,
        span: Span,
    ) -> Option<FileSource> {
        if let Some((task, output)) = name.split_once('.') {
            return self.resolve_output(reader, heads, task, output, span);
        }
        let data = self.data.get(name).copied();
        let first = self.outputs.get(name).copied();
        let rest = self.more_outputs.get(name).map(Vec::as_slice).unwrap_or_default();
        let all = || first.into_iter().chain(rest.iter().copied());
        // A task never reads what it makes itself, so its own output of that name is not meant.
        let others = all().filter(|(task, _)| *task != consumer).count();
        let only_own = others == 0 && data.is_none();
        let mut meant = all().filter(|(task, _)| only_own || *task != consumer);
        match (data, meant.next(), meant.next()) {
            (Some(data), None, _) => Some(FileSource::Data(data)),
            (None, Some((task, output)), None) => Some(FileSource::Output { task, output }),
            (None, None, _) => {
                self.report_unknown(reader, heads, name, span);
                None
            }
            (data, ..) => {
                let mut diagnostic =
                    Diagnostic::error(AMBIGUOUS_NAME, span, format!("`{name}` can mean several things"));
                let qualified: Vec<String> =
                    all().take(5).map(|(task, _)| format!("{}.{name}", heads[task.index()].name)).collect();
                let more = if others > qualified.len() { " (and others)" } else { "" };
                diagnostic = diagnostic.help(format!(
                    "write {}{more}",
                    list(qualified.iter().map(String::as_str)).replace(" and ", " or ")
                ));
                if data.is_some() {
                    diagnostic =
                        diagnostic.help(format!("the data entry `{name}` has the same name: rename one of them"));
                }
                for (task, output) in all().take(5) {
                    let head = &heads[task.index()];
                    diagnostic =
                        diagnostic.related(head.outputs[output as usize].span, format!("an output of `{}`", head.name));
                }
                reader.report(diagnostic);
                None
            }
        }
    }

    fn resolve_output(
        &self,
        reader: &mut Reader,
        heads: &[Head<'_>],
        task: &str,
        output: &str,
        span: Span,
    ) -> Option<FileSource> {
        let Some(set) = self.task(task) else {
            let diagnostic = Diagnostic::error(UNKNOWN_NAME, span, format!("there is no task `{task}`"));
            let diagnostic = reader.suggest(diagnostic, task, self.task_names());
            reader.report(diagnostic);
            return None;
        };
        let head = &heads[set.index()];
        if let Some(position) = head.outputs.iter().position(|other| other.name == output) {
            return Some(FileSource::Output { task: set, output: position as u32 });
        }
        if head.searches
            && let Some(finding) = head.finding(output)
        {
            return Some(FileSource::Search { task: set, finding });
        }
        let names = || head.outputs.iter().map(|output| output.name.as_str());
        let diagnostic = Diagnostic::error(UNKNOWN_NAME, span, format!("the task `{task}` has no output `{output}`"))
            .suggest(output, names())
            .related(head.span, "the task is here");
        let diagnostic = if head.searches {
            let best = head.outputs.first().map_or("model", |output| output.name.as_str());
            diagnostic.help(format!(
                "a search has `{task}.best`, `{task}.trials` and, of its best trial, `{task}.best.{best}`, of its three \
                 best `{task}.best(3).{best}`, of its front `{task}.front.{best}`"
            ))
        } else if head.outputs.is_empty() {
            diagnostic.help(format!("it declares no `out:`; to wait for it only, write `after: [{task}]`"))
        } else {
            diagnostic.help(format!("it has {}", list(names().take(20))))
        };
        reader.report(diagnostic);
        None
    }

    fn report_unknown(&self, reader: &mut Reader, heads: &[Head<'_>], name: &str, span: Span) {
        let mut diagnostic = Diagnostic::error(UNKNOWN_NAME, span, format!("nothing provides `{name}`"))
            .label("neither a data entry nor an output of a task");
        if let Some(set) = self.task(name) {
            let outputs = &heads[set.index()].outputs;
            diagnostic = diagnostic.help(match outputs.first() {
                Some(output) => format!("`{name}` is a task; name its output: `{name}.{}`", output.name),
                None => format!("`{name}` is a task without outputs; to wait for it, write `after: [{name}]`"),
            });
        } else if name.contains(['/', '*']) {
            diagnostic = diagnostic
                .help(format!("a file needs a name first: write `data: {{my_file: {name}}}` and use `my_file` here"));
        } else {
            let before = diagnostic.help.len();
            diagnostic = reader.suggest(diagnostic, name, self.data.keys().copied());
            if diagnostic.help.len() == before {
                diagnostic = reader.suggest(diagnostic, name, self.outputs.keys().copied());
            }
            if diagnostic.help.len() == before {
                diagnostic = diagnostic.help(format!(
                    "declare it under `data:`, or as an output of the task that makes it: `out: {{{name}: …}}`"
                ));
            }
        }
        reader.report(diagnostic);
    }
}

trait InsertFirst<K, V> {
    /// Keeps what is there already; true when there was nothing.
    fn try_insert_first(&mut self, key: K, value: V) -> bool;
}

impl<K: std::hash::Hash + Eq, V> InsertFirst<K, V> for FxHashMap<K, V> {
    fn try_insert_first(&mut self, key: K, value: V) -> bool {
        match self.entry(key) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(value);
                true
            }
        }
    }
}
