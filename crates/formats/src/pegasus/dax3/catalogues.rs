//! The text catalogues of the same time: `LFN PFN site="local"` lines, and `tr name { site … { pfn … } }`.

use super::codes::CATALOGUE;
use crate::pegasus::{
    Container, Model, Namespace, PhysicalFile, Profiles, Transformation, TransformationName, TransformationSite,
};
use tulpar_core::diagnostic::{Diagnostic, Findings};

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Reads a catalogue that is no YAML, and says whether it was one.
pub(crate) fn catalogue(file: &str, text: &str, model: &mut Model, findings: &mut Findings) -> bool {
    let Some(line) = first_line(text) else { return true };
    let mut words = line.split_whitespace();
    match (words.next().unwrap_or_default(), words.next()) {
        (tag, _) if tag.starts_with('<') => {
            let message = format!("{file} is in XML, which is read for workflows only");
            let help = "convert it to YAML with `pegasus-sc-converter`, or describe the site natively";
            findings.push(Diagnostic::warning(CATALOGUE, None, message).help(help));
        }
        ("tr" | "cont", Some(_)) => transformations(file, text, model, findings),
        // YAML's first line ends a key with a colon.
        (first, Some(_)) if !first.ends_with(':') && !first.starts_with(['{', '-', '%']) => {
            replicas(file, text, model, findings)
        }
        _ => return false,
    }
    true
}

/// One word of a text catalogue, with its line.
#[derive(Debug, PartialEq, Clone)]
struct Word {
    text: String,
    line: usize,
    quoted: bool,
}

/// Words, quoted words and braces; `#` begins a comment. In a quoted word `\` keeps the next letter.
fn words(text: &str, first: usize) -> Result<Vec<Word>, usize> {
    let mut found = Vec::new();
    for (number, content) in text.lines().enumerate() {
        let line = first + number;
        let mut letters = content.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '#' => break,
                '{' | '}' => found.push(Word { text: letter.to_string(), line, quoted: false }),
                _ if letter.is_whitespace() => {}
                _ => {
                    let mut word = Word { text: String::new(), line, quoted: letter == '"' };
                    let mut inside = word.quoted;
                    if !inside {
                        word.text.push(letter);
                    }
                    loop {
                        match letters.peek().copied() {
                            None if inside => return Err(line),
                            None => break,
                            Some(next) if !inside && (next.is_whitespace() || matches!(next, '{' | '}')) => break,
                            Some('"') => inside = !inside,
                            Some('\\') if inside => {
                                letters.next();
                                word.text.push(letters.peek().copied().ok_or(line)?);
                            }
                            Some(next) => word.text.push(next),
                        }
                        letters.next();
                    }
                    found.push(word);
                }
            }
        }
    }
    Ok(found)
}

fn bad(findings: &mut Findings, file: &str, line: usize, what: &str) {
    findings.push(Diagnostic::error(CATALOGUE, None, format!("{file}:{line}: {what}")));
}

/// Adds the replicas of a text catalogue; what the workflow itself says stays.
fn replicas(file: &str, text: &str, model: &mut Model, findings: &mut Findings) {
    let mut own: rustc_hash::FxHashSet<String> = Default::default();
    for (number, content) in text.lines().enumerate() {
        let line = number + 1;
        let Ok(words) = words(content, line) else {
            bad(findings, file, line, "a quoted word does not end on its line");
            continue;
        };
        let [lfn, pfn, attributes @ ..] = &words[..] else {
            if !words.is_empty() {
                bad(findings, file, line, "a replica is a logical name, a place, and attributes like site=\"local\"");
            }
            continue;
        };
        let mut place = PhysicalFile { site: "local".to_owned(), pfn: pfn.text.clone() };
        let mut pattern = false;
        for attribute in attributes {
            match attribute.text.split_once('=') {
                Some(("site" | "pool", site)) => place.site = site.to_owned(),
                Some(("regex", value)) => pattern = value.eq_ignore_ascii_case("true"),
                Some(_) => {}
                None => bad(findings, file, line, &format!("`{}` is no attribute", attribute.text)),
            }
        }
        if !pattern {
            let fresh = own.contains(&lfn.text);
            if fresh || model.replicas.find(&lfn.text).is_empty() {
                model.replicas.add(&lfn.text, vec![place], true);
                own.insert(lfn.text.clone());
            }
        } else if let Err(error) = model.replicas.add_pattern(&lfn.text, vec![place]) {
            bad(findings, file, line, &format!("the regular expression cannot be read: {error}"));
        }
    }
}

/// Adds the programs and containers of a text catalogue; what the workflow itself says stays.
fn transformations(file: &str, text: &str, model: &mut Model, findings: &mut Findings) {
    let words = match words(text, 1) {
        Ok(words) => words,
        Err(line) => return bad(findings, file, line, "a quoted word does not end on its line"),
    };
    let mut blocks = Blocks { words: words.into_iter().peekable(), file, findings, line: 1 };
    while let Some(word) = blocks.next() {
        match word.text.as_str() {
            "tr" => {
                let Some(found) = blocks.program() else { return };
                match model.transformations.iter_mut().find(|known| known.name == found.name) {
                    Some(known) if known.sites.is_empty() => known.sites = found.sites,
                    Some(_) => {}
                    None => model.transformations.push(found),
                }
            }
            "cont" => {
                let Some(found) = blocks.container() else { return };
                if !model.containers.iter().any(|known| known.name == found.name) {
                    model.containers.push(found);
                }
            }
            other => {
                let message = format!("`tr` or `cont` must stand here, not `{other}`");
                return blocks.bad(&message);
            }
        }
    }
}

struct Blocks<'a, 'f> {
    words: std::iter::Peekable<std::vec::IntoIter<Word>>,
    file: &'a str,
    findings: &'f mut Findings,
    line: usize,
}

impl Blocks<'_, '_> {
    fn next(&mut self) -> Option<Word> {
        let word = self.words.next()?;
        self.line = word.line;
        Some(word)
    }

    fn bad(&mut self, what: &str) {
        bad(self.findings, self.file, self.line, what);
    }

    fn value(&mut self, what: &str) -> Option<String> {
        match self.next() {
            Some(word) if word.quoted || !matches!(word.text.as_str(), "{" | "}") => Some(word.text),
            _ => {
                self.bad(&format!("a value of `{what}` is missing"));
                None
            }
        }
    }

    /// Calls back for every word inside braces.
    fn block(&mut self, what: &str, mut each: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        if self.next().is_none_or(|word| word.text != "{") {
            self.bad(&format!("`{{` must follow `{what}`"));
            return None;
        }
        loop {
            match self.next() {
                Some(word) if word.text == "}" && !word.quoted => return Some(()),
                Some(word) => each(self, &word.text)?,
                None => {
                    self.bad(&format!("`}}` of `{what}` is missing"));
                    return None;
                }
            }
        }
    }

    fn profile(&mut self, profiles: &mut Profiles) -> Option<()> {
        let namespace = self.value("profile")?;
        let (key, value) = (self.value("profile")?, self.value("profile")?);
        match Namespace::parse(&namespace) {
            Some(namespace) => profiles.set(namespace, &key, &value),
            None => self.bad(&format!("`{namespace}` is no namespace of profiles")),
        }
        Some(())
    }

    fn program(&mut self) -> Option<Transformation> {
        let name = TransformationName::parse(&self.value("tr")?);
        let mut found = Transformation { name, ..Transformation::default() };
        self.block("tr", |blocks, word| match word {
            "profile" => blocks.profile(&mut found.profiles),
            "metadata" => blocks.value(word).and(blocks.value(word)).map(drop),
            "requires" => {
                found.requires.push(TransformationName::parse(&blocks.value(word)?));
                Some(())
            }
            "site" => {
                let mut site = TransformationSite { site: blocks.value(word)?, ..TransformationSite::default() };
                blocks.block("site", |blocks, word| {
                    match word {
                        "profile" => blocks.profile(&mut site.profiles)?,
                        "metadata" => drop((blocks.value(word)?, blocks.value(word)?)),
                        "pfn" => site.pfn = blocks.value(word)?,
                        "type" => site.stageable = blocks.value(word)?.eq_ignore_ascii_case("stageable"),
                        "container" => site.container = Some(blocks.value(word)?),
                        "bypass" => site.bypass = blocks.value(word)?.eq_ignore_ascii_case("true"),
                        "arch" | "os" | "osrelease" | "osversion" | "glibc" => drop(blocks.value(word)?),
                        other => {
                            blocks.bad(&format!("a site of a program has no `{other}`"));
                            return None;
                        }
                    }
                    Some(())
                })?;
                found.sites.push(site);
                Some(())
            }
            other => {
                blocks.bad(&format!("a program has no `{other}`"));
                None
            }
        })?;
        Some(found)
    }

    fn container(&mut self) -> Option<Container> {
        let mut found = Container { name: self.value("cont")?, ..Container::default() };
        self.block("cont", |blocks, word| {
            match word {
                "profile" => blocks.profile(&mut found.profiles)?,
                "type" => found.kind = blocks.value(word)?,
                "image" => found.image = blocks.value(word)?,
                "image_site" => found.image_site = Some(blocks.value(word)?),
                "mount" => found.mounts.push(blocks.value(word)?),
                "dockerfile" => drop(blocks.value(word)?),
                other => {
                    blocks.bad(&format!("a container has no `{other}`"));
                    return None;
                }
            }
            Some(())
        })?;
        Some(found)
    }
}
