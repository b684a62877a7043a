//! A workflow meets the catalogue: replicas, programs and containers that it names become places for one site.

use super::{Catalogue, Chosen, Index, Installation, is_url};
use crate::diagnostic::{Diagnostic, Findings, UNKNOWN_NAME};
use crate::ids::DataId;
use crate::workflow::{Data, DataSource, FileSource, Input, Settings, Span, Workflow};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Where a sandbox shows programs that are sent along.
pub const PROGRAMS: &str = ".tulpar-programs";

/// Looks up everything that the workflow names of the catalogue. What the catalogue does not know is a finding.
pub fn bind(workflow: &mut Workflow, catalogue: &Catalogue, site: &str) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    replicas(workflow, catalogue, site, &mut findings);
    let mut binder = Binder { catalogue, site, staged: FxHashMap::default(), findings };
    binder.tasks(workflow);
    binder.findings.finish()
}

fn replicas(workflow: &mut Workflow, catalogue: &Catalogue, site: &str, findings: &mut Findings) {
    if !workflow.data.iter().any(|entry| matches!(entry.source, DataSource::Replicas(_))) {
        return;
    }
    let index = Index::new(catalogue);
    for entry in &mut workflow.data {
        let DataSource::Replicas(names) = &entry.source else { continue };
        let mut chosen = Vec::with_capacity(names.len());
        for name in names {
            match index.find(name, site) {
                Some(found) => chosen.extend(found),
                None => findings.push(
                    Diagnostic::error(UNKNOWN_NAME, entry.span, format!("the catalogue knows no replica of `{name}`"))
                        .suggest(name, index.names())
                        .help("describe it under `replicas:` in catalogue.yaml, or give its path here"),
                ),
            }
        }
        if !chosen.is_empty() {
            entry.source = DataSource::Copies(chosen);
        }
    }
}

struct Binder<'c> {
    catalogue: &'c Catalogue,
    site: &'c str,
    /// The data entries of programs that are sent along, by the name of the program.
    staged: FxHashMap<String, DataId>,
    findings: Findings,
}

/// Settings after the catalogue was asked, and the programs that their tasks take along.
struct Bound {
    settings: Arc<Settings>,
    programs: Vec<(String, DataId)>,
}

impl Binder<'_> {
    fn tasks(&mut self, workflow: &mut Workflow) {
        // Tasks share their settings: a million of them ask a handful of times. The old ones are kept, so that
        // no new ones can lie at their place.
        let mut bound: FxHashMap<*const Settings, (Arc<Settings>, Bound)> = FxHashMap::default();
        for number in 0..workflow.tasks.len() {
            let settings = workflow.tasks[number].settings.clone();
            if settings.environment.programs.is_empty()
                && settings.environment.container.is_none()
                && settings.hints.site.is_none()
            {
                continue;
            }
            let pointer = Arc::as_ptr(&settings);
            let (_, found) = &*bound.entry(pointer).or_insert_with(|| {
                let made = self.settings(workflow, number, &settings);
                (settings, made)
            });
            let task = &mut workflow.tasks[number];
            task.settings = found.settings.clone();
            for (name, data) in &found.programs {
                let source = FileSource::Data(*data);
                task.inputs.push(Input { name: name.clone(), source, bypass: false, program: true, span: task.span });
            }
        }
        for (settings, _) in &mut workflow.places.requests {
            if let Some((_, found)) = bound.get(&Arc::as_ptr(settings)) {
                *settings = found.settings.clone();
            }
        }
    }

    fn settings(&mut self, workflow: &mut Workflow, task: usize, old: &Arc<Settings>) -> Bound {
        let places = workflow.places.requests.iter().find(|(settings, _)| Arc::ptr_eq(settings, old));
        let written = |key: &str| {
            places.and_then(|(_, places)| places.iter().find(|(known, _)| *known == key)).map(|(_, span)| *span)
        };
        let task = &workflow.tasks[task];
        let (programs_at, site_at) = (written("programs").unwrap_or(task.span), written("site"));
        let task = task.name.clone();
        let mut settings = Settings::clone(old);
        // Workflows of other systems name their own sites.
        if let (Some(name), Some(span)) = (&settings.hints.site, site_at)
            && self.catalogue.site(name).is_none()
        {
            let known = self.catalogue.sites.iter().map(|site| site.name.as_str());
            self.findings.push(
                Diagnostic::error(UNKNOWN_NAME, span, format!("no site is called `{name}`"))
                    .suggest(name, known)
                    .help("describe it under `sites:` in catalogue.yaml"),
            );
        }
        let mut programs = Vec::new();
        for program in &mut settings.environment.programs {
            let Some(found) = self.installation(&program.name, &task, programs_at) else { continue };
            let environment_is_free = old.environment.container.is_none()
                && old.environment.venv.is_none()
                && old.environment.conda.is_none();
            if environment_is_free && settings.environment.container.is_none() {
                settings.environment.container = found.container.clone();
            }
            match is_staged(found) {
                true => {
                    let place = found.place.clone();
                    programs.push((program.name.clone(), self.data(workflow, &program.name, place, programs_at)));
                }
                false => program.place = Some(found.place.clone()),
            }
        }
        if let [only] = &settings.environment.programs[..] {
            settings.hints.program.get_or_insert_with(|| only.name.clone());
        }
        if let Some(name) = &settings.environment.container
            && let Some(container) = self.catalogue.container(name)
        {
            settings.environment.container = Some(container.image.clone());
        }
        Bound { settings: Arc::new(settings), programs }
    }

    /// Where a site has a program: its own, else one that can be sent along.
    fn installation(&mut self, name: &str, task: &str, span: Span) -> Option<&'_ Installation> {
        let Some(transformation) = self.catalogue.transformation(name) else {
            let known = self.catalogue.transformations.iter().map(|transformation| transformation.name.as_str());
            self.findings.push(
                Diagnostic::error(
                    UNKNOWN_NAME,
                    span,
                    format!("the catalogue has no program `{name}`, which `{task}` runs"),
                )
                .suggest(name, known)
                .help("describe it under `transformations:` in catalogue.yaml"),
            );
            return None;
        };
        let own = transformation.places.iter().find(|place| place.site == self.site);
        let sent = || {
            let sent = transformation.places.iter().filter(|place| is_staged(place));
            sent.min_by_key(|place| place.site != super::LOCAL)
        };
        let found = own.or_else(sent);
        if found.is_none() {
            let places: Vec<&str> = transformation.places.iter().map(|place| place.site.as_str()).collect();
            self.findings.push(
                Diagnostic::error(
                    UNKNOWN_NAME,
                    span,
                    format!("`{name}`, which `{task}` runs, is not installed on the site `{}`", self.site),
                )
                .label(format!("it is on {}", places.join(", ")))
                .help(format!("say where `{}` has it under `at:`, or `staged: true` to send it along", self.site)),
            );
        }
        found
    }

    /// The data entry of a program that is sent along; all tasks share it.
    fn data(&mut self, workflow: &mut Workflow, program: &str, place: String, span: Span) -> DataId {
        if let Some(known) = self.staged.get(program) {
            return *known;
        }
        let taken: FxHashSet<&str> = workflow.data.iter().map(|entry| entry.name.as_str()).collect();
        let mut name = program.to_owned();
        while taken.contains(name.as_str()) {
            name.push_str("_program");
        }
        let chosen = Chosen::File { name: format!("{PROGRAMS}/{program}"), place, sha256: None, executable: true };
        let data = DataId::from(workflow.data.len());
        workflow.data.push(Data { name, source: DataSource::Copies(vec![chosen]), sha256: Default::default(), span });
        self.staged.insert(program.to_owned(), data);
        data
    }
}

/// A relative path is a file of the project: from inside a sandbox nobody would find it.
fn is_staged(place: &Installation) -> bool {
    place.staged || is_url(&place.place) || (place.place.contains('/') && !place.place.starts_with('/'))
}
