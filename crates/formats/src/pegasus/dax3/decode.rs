//! From the elements of a DAX to the model: jobs, files, order, and the catalogues that stand inside.

use super::codes::{BAD_VALUE, DUPLICATE, MISSING, NAMESPACE, UNKNOWN, UNKNOWN_JOB};
use super::elements::known;
use super::xml::{Element, Item, Xml};
use crate::pegasus::{FileId, Hook, JobKind, Link, Model, Namespace, PhysicalFile, Profiles, TransformationName, Use};
use rustc_hash::{FxHashMap, FxHashSet};
use tulpar_core::diagnostic::{Diagnostic, Findings};
use tulpar_core::workflow::Span;

/// The text cannot be read further; why is among the findings.
pub(super) struct Stop;

pub(crate) fn decode(text: &str, findings: &mut Findings) -> Option<Model> {
    let mut decoder = Decoder {
        xml: Xml::new(text),
        findings,
        said: FxHashSet::default(),
        model: Model::default(),
        files: FxHashMap::default(),
        transformations: FxHashMap::default(),
        data_of: FxHashMap::default(),
        programs_of: Vec::new(),
        links: Vec::new(),
    };
    let read = decoder.root().is_ok();
    if read {
        decoder.finish();
    }
    read.then_some(decoder.model)
}

pub(super) struct Decoder<'t, 'f> {
    xml: Xml<'t>,
    pub(super) findings: &'f mut Findings,
    /// What is worth saying once, not for each of ten thousand jobs.
    said: FxHashSet<String>,
    pub(super) model: Model,
    files: FxHashMap<String, FileId>,
    pub(super) transformations: FxHashMap<TransformationName, usize>,
    /// Data files that a compound transformation brings along.
    pub(super) data_of: FxHashMap<TransformationName, Vec<FileId>>,
    /// Uses of jobs that are programs: they lie where the transformation does.
    pub(super) programs_of: Vec<(FileId, TransformationName)>,
    /// Child and parent by id, with the place of the parent.
    pub(super) links: Vec<(String, String, Span)>,
}

impl<'t> Decoder<'t, '_> {
    fn next(&mut self) -> Result<Option<Item<'t>>, Stop> {
        self.xml.next().map_err(|diagnostic| {
            self.findings.push(*diagnostic);
            Stop
        })
    }

    /// Calls back for each child element, which must be read to its end.
    pub(super) fn children(
        &mut self,
        mut each: impl FnMut(&mut Self, Element) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        while let Some(item) = self.next()? {
            match item {
                Item::Start(element) => each(self, element)?,
                Item::Text(_) => {}
                Item::End => break,
            }
        }
        Ok(())
    }

    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        let mut depth = 1;
        while depth > 0 {
            match self.next()? {
                Some(Item::Start(_)) => depth += 1,
                Some(Item::End) => depth -= 1,
                Some(Item::Text(_)) => {}
                None => break,
            }
        }
        Ok(())
    }

    pub(super) fn unknown(&mut self, element: &Element, inside: &str) -> Result<(), Stop> {
        let name = &element.name;
        if self.said.insert(format!("{inside}/{name}")) {
            let message = format!("a DAX has no element `{name}` inside `{inside}`; it is left out");
            self.findings.push(Diagnostic::warning(UNKNOWN, element.span, message));
        }
        self.skip()
    }

    /// Names attributes that mean nothing, once for each name.
    pub(super) fn attributes(&mut self, element: &Element) {
        for (key, _) in &element.attributes {
            if key.starts_with("xmlns") || key.contains(':') || known(&element.name, key) {
                continue;
            }
            if self.said.insert(format!("{}@{key}", element.name)) {
                let message = format!("the attribute `{key}` of `{}` has no effect here", element.name);
                self.findings.push(Diagnostic::warning(UNKNOWN, element.span, message));
            }
        }
    }

    pub(super) fn need(&mut self, element: &Element, names: &[&str]) -> String {
        self.attributes(element);
        match element.first(names).filter(|value| !value.is_empty()) {
            Some(value) => value.to_owned(),
            None => {
                let message = format!("`{}` must have the attribute `{}`", element.name, names[0]);
                self.findings.push(Diagnostic::error(MISSING, element.span, message));
                String::new()
            }
        }
    }

    pub(super) fn truth(&mut self, element: &Element, name: &str, usual: bool) -> bool {
        match element.get(name).map(str::trim) {
            None | Some("") => usual,
            Some("true" | "1" | "TRUE" | "True") => true,
            Some("false" | "0" | "FALSE" | "False") => false,
            Some(other) => {
                let message = format!("`{name}` of `{}` is `true` or `false`, not `{other}`", element.name);
                self.findings.push(Diagnostic::error(BAD_VALUE, element.span, message));
                usual
            }
        }
    }

    pub(super) fn file(&mut self, name: &str) -> FileId {
        if let Some(known) = self.files.get(name) {
            return *known;
        }
        let file = FileId(self.model.files.len() as u32);
        self.model.files.push(name.to_owned());
        self.files.insert(name.to_owned(), file);
        file
    }

    fn root(&mut self) -> Result<(), Stop> {
        let Some(Item::Start(root)) = self.next()? else { return Err(Stop) };
        if root.name != "adag" {
            let message = format!("the first element of a DAX is `adag`, not `{}`", root.name);
            self.findings.push(Diagnostic::error(UNKNOWN, root.span, message));
            return Err(Stop);
        }
        self.attributes(&root);
        self.model.name = root.get("name").filter(|name| !name.is_empty()).unwrap_or("workflow").to_owned();
        self.model.version = root.get("version").unwrap_or_default().to_owned();
        self.children(|decoder, element| match element.name.as_str() {
            "metadata" => {
                let key = decoder.need(&element, &["key"]);
                let value = decoder.text(&element)?;
                decoder.model.metadata.insert(key, value.trim().to_owned());
                Ok(())
            }
            "invoke" => {
                let hook = decoder.hook(&element)?;
                decoder.model.hooks.extend(hook);
                Ok(())
            }
            "profile" => {
                let mut profiles = std::mem::take(&mut decoder.model.profiles);
                let read = decoder.profile(&element, &mut profiles);
                decoder.model.profiles = profiles;
                read
            }
            "file" => decoder.replica(&element),
            // Of 2.1: all files of the workflow, listed once more.
            "filename" => decoder.skip(),
            "executable" => decoder.executable(&element),
            "transformation" => decoder.transformation(&element),
            "job" => decoder.job(&element, JobKind::Compute),
            "dax" => decoder.job(&element, JobKind::SubWorkflow),
            "dag" => decoder.job(&element, JobKind::Dag),
            "child" => decoder.child(&element),
            _ => decoder.unknown(&element, "adag"),
        })?;
        // What follows the root must be nothing, or it is no XML.
        while self.next()?.is_some() {}
        Ok(())
    }

    /// All text up to the end, with the names of files in it.
    pub(super) fn text(&mut self, element: &Element) -> Result<String, Stop> {
        let mut text = String::new();
        while let Some(item) = self.next()? {
            match item {
                Item::Text(piece) => text.push_str(&piece),
                Item::Start(file) if matches!(file.name.as_str(), "file" | "filename") => {
                    text.push_str(&self.need(&file, &["name", "file"]));
                    self.skip()?;
                }
                Item::Start(other) => self.unknown(&other, &element.name)?,
                Item::End => break,
            }
        }
        Ok(text)
    }

    pub(super) fn profile(&mut self, element: &Element, profiles: &mut Profiles) -> Result<(), Stop> {
        let namespace = self.need(element, &["namespace"]).to_ascii_lowercase();
        let key = self.need(element, &["key"]);
        let value = self.text(element)?;
        match Namespace::parse(&namespace) {
            Some(namespace) => profiles.set(namespace, &key, value.trim()),
            None => {
                if self.said.insert(format!("profile {namespace} {key}")) {
                    let message = format!("the profile `{key}` of `{namespace}` has no effect here");
                    self.findings.push(Diagnostic::warning(NAMESPACE, element.span, message));
                }
            }
        }
        Ok(())
    }

    /// With Pegasus 5's words for the moments. What runs never is none.
    pub(super) fn hook(&mut self, element: &Element) -> Result<Option<Hook>, Stop> {
        self.attributes(element);
        let on = match element.get("when").unwrap_or("never") {
            "on_error" => "error",
            "on_success" => "success",
            "at_end" => "end",
            other => other,
        };
        let hook = Hook { on: on.to_owned(), command: self.text(element)?.trim().to_owned(), span: element.span };
        Ok(Some(hook).filter(|hook| hook.on != "never" && !hook.command.is_empty()))
    }

    /// What can be said only when everything was read: the order, and what transformations bring along.
    fn finish(&mut self) {
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        for (number, job) in self.model.jobs.iter().enumerate() {
            if numbers.insert(&job.id, number as u32).is_some() && !job.id.is_empty() {
                let message = format!("two jobs have the id `{}`", job.id);
                self.findings.push(Diagnostic::error(DUPLICATE, job.span, message));
            }
        }
        let mut dependencies = Vec::with_capacity(self.links.len());
        for (child, parent, span) in &self.links {
            match (numbers.get(parent.as_str()), numbers.get(child.as_str())) {
                (Some(parent), Some(child)) => dependencies.push((*parent, *child)),
                (missing, _) => {
                    let id = if missing.is_none() { parent } else { child };
                    let message = format!("there is no job with the id `{id}`");
                    let diagnostic = Diagnostic::error(UNKNOWN_JOB, *span, message);
                    let few = numbers.len() < 10_000;
                    let diagnostic = if few { diagnostic.suggest(id, numbers.keys().copied()) } else { diagnostic };
                    self.findings.push(diagnostic);
                }
            }
        }
        if self.model.jobs.is_empty() {
            self.findings.push(Diagnostic::error(MISSING, None, "the DAX has no jobs"));
        }
        for (file, name) in &self.programs_of {
            let lfn = &self.model.files[file.index()];
            if !self.model.replicas.find(lfn).is_empty() {
                continue;
            }
            if let Some(found) = self.transformations.get(name).map(|number| &self.model.transformations[*number]) {
                let places = found.sites.iter().map(|at| PhysicalFile { site: at.site.clone(), pfn: at.pfn.clone() });
                self.model.replicas.add(lfn, places.collect(), true);
            }
        }
        for job in &mut self.model.jobs {
            for file in self.data_of.get(&job.transformation).into_iter().flatten() {
                if !job.uses.iter().any(|used| used.file == *file) {
                    job.uses.push(Use {
                        file: *file,
                        link: Link::Input,
                        stage_out: false,
                        register_replica: false,
                        bypass: false,
                        for_planning: false,
                        optional: false,
                        size: None,
                        span: job.span,
                    });
                }
            }
        }
        self.model.dependencies = dependencies;
        self.model.infer_edges();
    }
}
