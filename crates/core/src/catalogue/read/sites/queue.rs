//! What a site says of the system that queues its jobs: `kind`, `at_most`, `submit`, `profile`, `classes`.

use super::super::Parts;
use crate::catalogue::submit_commands;
use crate::diagnostic::{BAD_VALUE, Diagnostic, MISSING_KEY, UNKNOWN_KEY};
use crate::site::{Class, Queue, System, profile, profiles};
use crate::units::parse_count;
use crate::workflow::keys;
use crate::workflow::reader::list;
use crate::yaml::Node;

/// The keys in the order of the file; their sense depends on `kind`, which may come last.
#[derive(Default)]
pub(super) struct Written<'d> {
    system: Option<System>,
    profile: Option<Node<'d>>,
    at_most: Option<u32>,
    lines: Vec<(String, String)>,
    classes: Vec<Class>,
    /// The names of all lines, where they stand.
    names: Vec<Node<'d>>,
    first: Option<Node<'d>>,
    kind: bool,
}

impl Parts {
    pub(super) fn queue_key<'d>(&mut self, written: &mut Written<'d>, key: Node<'d>, value: Node<'d>) {
        let name = key.text().unwrap_or("");
        written.first.get_or_insert(key);
        match name {
            "kind" => {
                written.kind = true;
                written.system = self.system(value);
            }
            "at_most" => {
                let accepted = "write how many jobs may be there at a time";
                written.at_most = self.reader.quantity(value, name, parse_count, accepted, &[]);
                if written.at_most == Some(0) {
                    let finding = Diagnostic::error(BAD_VALUE, value.span(), "`at_most`: nothing would ever start");
                    self.reader.report(finding.help(accepted));
                }
            }
            "submit" => written.lines = self.lines(value, &mut written.names),
            "profile" => written.profile = Some(value),
            _ => written.classes = value.items().filter_map(|item| self.class(item, &mut written.names)).collect(),
        }
    }

    fn system(&mut self, node: Node<'_>) -> Option<System> {
        let text = self.reader.text(node, "`kind`")?;
        let found = System::from_name(text);
        if found.is_none() && text != "owned" {
            let known = || System::ALL.iter().map(|(name, _)| *name).chain(["owned"]);
            self.reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`kind` of a site cannot be `{text}`"))
                    .suggest(text, known())
                    .help(format!("it can be {}", list(known()))),
            );
        }
        found
    }

    /// Lines in the system's own language, whatever they are called.
    fn lines<'d>(&mut self, node: Node<'d>, names: &mut Vec<Node<'d>>) -> Vec<(String, String)> {
        let entries: Vec<_> = self.reader.map(node, "`submit`").into_iter().flatten().collect();
        names.extend(entries.iter().map(|(key, _)| *key));
        let line = |(key, value): (Node<'_>, Node<'_>)| {
            let name = key.text()?.to_owned();
            Some((name, self.reader.text(value, "a line of `submit`")?.to_owned()))
        };
        entries.into_iter().filter_map(line).collect()
    }

    /// A name that `condor_submit` does not know is the name of a macro to it, and nothing comes of it.
    fn unknown_lines(&mut self, names: &[Node<'_>]) {
        for key in names {
            let Some(name) = key.text() else { continue };
            if submit_commands::is_command(name) {
                continue;
            }
            let message = format!("HTCondor knows no command `{name}`: the line has no effect");
            let finding = Diagnostic::warning(UNKNOWN_KEY, key.span(), message);
            self.reader.report(match submit_commands::meant(&name.to_ascii_lowercase()) {
                Some(meant) => finding.help(format!("did you mean `{meant}`?")),
                None => finding.help(format!("an attribute of the job is written `+{name}`")),
            });
        }
    }

    fn class<'d>(&mut self, node: Node<'d>, names: &mut Vec<Node<'d>>) -> Option<Class> {
        let mut class = Class::default();
        for (key, value) in self.reader.map(node, "a class of jobs")? {
            match key.text().unwrap_or("") {
                "name" => class.name = self.reader.text(value, "`name`")?.to_owned(),
                "gpus" => class.gpus = self.reader.boolean(value, "`gpus`"),
                "up_to" => class.up_to = self.duration("up_to", value),
                "usual" => class.usual = self.reader.boolean(value, "`usual`").unwrap_or(false),
                "submit" => class.lines = self.lines(value, names),
                _ => self.reader.unknown_key(key, "a class of jobs", &[keys::CLASS]),
            }
        }
        Some(class)
    }

    pub(super) fn queue(&mut self, site: &str, written: Written<'_>) -> Option<Queue> {
        let first = written.first?;
        let Some(system) = written.system else {
            if !written.kind {
                self.reader.report(
                    Diagnostic::error(
                        MISSING_KEY,
                        first.span(),
                        format!("the site `{site}` does not say which system queues its jobs"),
                    )
                    .help("write `kind: htcondor` or `kind: slurm`"),
                );
            }
            return None;
        };
        if system == System::Htcondor {
            self.unknown_lines(&written.names);
        }
        let mut queue = Queue::new(system);
        queue.at_most = written.at_most.unwrap_or(queue.at_most);
        queue.lines = written.lines;
        queue.classes = written.classes;
        if let Some(node) = written.profile {
            let text = self.reader.text(node, "`profile`")?;
            match profile(text) {
                Some(profile) => profile.apply(&mut queue),
                None => {
                    let known = || profiles().iter().map(|profile| profile.name);
                    self.reader.report(
                        Diagnostic::error(BAD_VALUE, node.span(), format!("no profile is called `{text}`"))
                            .suggest(text, known())
                            .help(format!("there are {}", list(known()))),
                    );
                }
            }
        }
        Some(queue)
    }
}
