//! Jobs of a DAX: programs, sub-workflows, their files, and who waits for whom.

use super::codes::BAD_VALUE;
use super::decode::{Decoder, Stop};
use super::xml::Element;
use crate::pegasus::{Job, JobKind, Link, Namespace, Profiles, TransformationName, Use};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Words;

impl Decoder<'_, '_> {
    pub(super) fn job(&mut self, element: &Element, kind: JobKind) -> Result<(), Stop> {
        let mut job = Job { kind, span: element.span, id: self.need(element, &["id"]), ..Job::default() };
        match kind {
            JobKind::Compute => job.transformation = self.name_of(element),
            JobKind::SubWorkflow | JobKind::Dag => {
                let file = self.need(element, &["name", "file"]);
                job.file = Some(self.file(&file));
            }
        }
        job.label = element.get("node-label").map(str::to_owned);
        // Synthetic workflows of simulators carry it.
        if let Some(runtime) = element.get("runtime") {
            job.profiles.set(Namespace::Pegasus, "runtime", runtime.trim());
        }
        self.children(|decoder, child| match child.name.as_str() {
            "argument" => {
                decoder.attributes(&child);
                let text = decoder.text(&child)?;
                job.arguments = one_line(&text);
                Ok(())
            }
            "profile" => decoder.profile(&child, &mut job.profiles),
            "metadata" => {
                let key = decoder.need(&child, &["key"]);
                let value = decoder.text(&child)?;
                job.metadata.insert(key, value.trim().to_owned());
                Ok(())
            }
            "stdin" | "stdout" | "stderr" => {
                let name = decoder.need(&child, &["name", "file"]);
                let file = Some(decoder.file(&name)).filter(|_| !name.is_empty());
                match child.name.as_str() {
                    "stdin" => job.stdin = file,
                    "stdout" => job.stdout = file,
                    _ => job.stderr = file,
                }
                decoder.skip()
            }
            "uses" => {
                job.uses.extend(decoder.used(&child)?);
                Ok(())
            }
            "invoke" => {
                job.hooks.extend(decoder.hook(&child)?);
                Ok(())
            }
            _ => decoder.unknown(&child, "job"),
        })?;
        self.model.jobs.push(job);
        Ok(())
    }

    fn used(&mut self, element: &Element) -> Result<Option<Use>, Stop> {
        let name = self.need(element, &["name", "file"]);
        let kind = element.get("type").unwrap_or("data");
        let program = self.truth(element, "executable", kind.eq_ignore_ascii_case("executable"));
        let link = match element.get("link").map(str::to_ascii_lowercase).as_deref() {
            Some("input") => Link::Input,
            Some("output") => Link::Output,
            Some("inout") => Link::InOut,
            Some("checkpoint") => Link::Checkpoint,
            Some("none") => Link::None,
            None if program => Link::Input,
            None => Link::None,
            Some(other) => {
                let message = format!("`{other}` is no kind of `link`");
                let kinds = ["input", "output", "inout", "checkpoint", "none"];
                self.findings.push(Diagnostic::error(BAD_VALUE, element.span, message).suggest(other, kinds));
                Link::None
            }
        };
        let link = if kind.eq_ignore_ascii_case("checkpoint") { Link::Checkpoint } else { link };
        let transfer = element.get("transfer").unwrap_or("true");
        let (stage_out, sometimes) = match transfer.to_ascii_lowercase().as_str() {
            "true" | "1" => (true, false),
            "false" | "0" => (false, false),
            "optional" => (true, true),
            other => {
                let message = format!("`transfer` is `true`, `false` or `optional`, not `{other}`");
                self.findings.push(Diagnostic::error(BAD_VALUE, element.span, message));
                (true, false)
            }
        };
        let register_replica = self.truth(element, "register", true);
        let optional = self.truth(element, "optional", false) || (sometimes && link == Link::Input);
        let size_of = |text: &str| text.trim().parse::<f64>().ok().filter(|size| *size >= 0.0).map(|size| size as u64);
        let mut size = element.get("size").and_then(size_of);
        let mut about = Words::new();
        self.children(|decoder, child| match child.name.as_str() {
            "metadata" => {
                let key = decoder.need(&child, &["key"]);
                let value = decoder.text(&child)?;
                if key == "size" {
                    size = size.or(size_of(&value));
                }
                about.insert(key, value.trim().to_owned());
                Ok(())
            }
            "profile" => decoder.profile(&child, &mut Profiles::default()),
            "pfn" => decoder.skip(),
            _ => decoder.unknown(&child, "uses"),
        })?;
        if name.is_empty() {
            return Ok(None);
        }
        if !about.is_empty() {
            self.model.file_metadata.entry(name.clone()).or_default().extend(about);
        }
        let file = self.file(&name);
        if program && link == Link::Input {
            let wanted = self.name_of_use(element, name);
            self.programs_of.push((file, wanted));
        }
        let (bypass, for_planning, span) = (false, false, element.span);
        Ok(Some(Use { file, link, stage_out, register_replica, bypass, for_planning, optional, size, span }))
    }

    fn name_of_use(&self, element: &Element, name: String) -> TransformationName {
        let own = |key: &str| element.get(key).filter(|value| !value.is_empty()).map(str::to_owned);
        TransformationName { namespace: own("namespace"), name, version: own("version") }
    }

    pub(super) fn child(&mut self, element: &Element) -> Result<(), Stop> {
        let child = self.need(element, &["ref"]);
        self.children(|decoder, parent| match parent.name.as_str() {
            "parent" => {
                let id = decoder.need(&parent, &["ref"]);
                decoder.links.push((child.clone(), id, parent.span));
                decoder.skip()
            }
            _ => decoder.unknown(&parent, "child"),
        })
    }
}

/// Pegasus does not keep the line breaks of arguments: a shell would end the command there.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines[..] {
        [only] if !text.contains(['\n', '\r']) => only.to_owned(),
        _ => lines.join(" "),
    }
}
