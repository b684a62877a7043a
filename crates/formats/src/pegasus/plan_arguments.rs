//! The options of `pegasus-plan`: what a sub-workflow's arguments say, or what a user would have typed.
//!
//! It opens no file: paths stay as they were written.

use std::collections::BTreeMap;

/// What was asked of the planner. Options that are of no use without Pegasus' own tools are read and left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanArguments {
    /// `--conf`
    pub conf: Option<String>,
    /// `--sites`
    pub sites: Vec<String>,
    /// `--output-sites`
    pub output_sites: Vec<String>,
    /// `--staging-site`: the staging site of each execution site; under an empty name, that of all others.
    pub staging_sites: BTreeMap<String, String>,
    /// `--input-dir`
    pub input_dirs: Vec<String>,
    /// `--output-dir`
    pub output_dir: Option<String>,
    /// `--transformations-dir`
    pub transformations_dir: Option<String>,
    /// `--cluster`, in order.
    pub cluster: Vec<String>,
    /// `--cleanup`
    pub cleanup: Option<String>,
    /// `--force`: nothing that is known already is reused.
    pub force: bool,
    /// `--cache` and `--inherited-rc-files`: more replica catalogues.
    pub replica_files: Vec<String>,
    /// `--reuse`: folders of earlier runs.
    pub reuse: Vec<String>,
    /// `-Dname=value`
    pub properties: BTreeMap<String, String>,
    /// What is none of `pegasus-plan`'s options.
    pub unknown: Vec<String>,
}

/// Long name, short name, whether a value follows.
const OPTIONS: &[(&str, char, bool)] = &[
    ("conf", '\0', true),
    ("sites", 's', true),
    ("output-sites", 'o', true),
    ("output-site", '\0', true),
    ("staging-site", '\0', true),
    ("input-dir", 'I', true),
    ("output-dir", 'O', true),
    ("transformations-dir", 't', true),
    ("cluster", 'C', true),
    ("cleanup", '\0', true),
    ("force", 'f', false),
    ("force-replan", '\0', false),
    ("cache", 'c', true),
    ("inherited-rc-files", '\0', true),
    ("reuse", '\0', true),
    ("basename", 'b', true),
    ("dir", '\0', true),
    ("relative-dir", '\0', true),
    ("relative-submit-dir", '\0', true),
    ("job-prefix", 'j', true),
    ("randomdir", '\0', false),
    ("submit", 'S', false),
    ("json", '\0', false),
    ("monitor", 'm', false),
    ("verbose", 'v', false),
    ("quiet", 'q', false),
    ("nocleanup", 'n', false),
    ("vogroup", 'g', true),
    ("rescue", '\0', true),
    ("deferred", '\0', false),
    ("dax", 'd', true),
    ("help", 'h', false),
    ("version", 'V', false),
];

impl PlanArguments {
    /// Words as a shell would give them: `--conf x`, `--conf=x`, `-vvv`, `-Dname=value`.
    pub fn parse<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut found = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                let (name, given) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                match OPTIONS.iter().find(|(known, ..)| *known == name) {
                    Some((_, _, true)) => match given.or_else(|| words.next()) {
                        Some(value) => found.set(name, value),
                        None => found.unknown.push(word.to_owned()),
                    },
                    Some(_) => found.set(name, given.unwrap_or("")),
                    None => found.unknown.push(word.to_owned()),
                }
            } else if let Some(property) = word.strip_prefix("-D") {
                let (name, value) = property.split_once('=').unwrap_or((property, ""));
                found.properties.insert(name.to_owned(), value.to_owned());
            } else if word.starts_with("-X") {
                // For Pegasus' Java.
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                let mut letters = short.chars();
                while let Some(letter) = letters.next() {
                    match OPTIONS.iter().find(|(_, known, _)| *known == letter) {
                        Some((name, _, true)) => {
                            let rest = letters.as_str().trim_start_matches('=');
                            match Some(rest).filter(|rest| !rest.is_empty()).or_else(|| words.next()) {
                                Some(value) => found.set(name, value),
                                None => found.unknown.push(word.to_owned()),
                            }
                            break;
                        }
                        Some((name, ..)) => found.set(name, ""),
                        None => {
                            found.unknown.push(word.to_owned());
                            break;
                        }
                    }
                }
            } else {
                found.unknown.push(word.to_owned());
            }
        }
        found
    }

    fn set(&mut self, name: &str, value: &str) {
        let list = || value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
        match name {
            "conf" => self.conf = Some(value.to_owned()),
            "sites" => self.sites.extend(list()),
            "output-sites" | "output-site" => self.output_sites.extend(list()),
            "staging-site" => self.staging_sites.extend(list().map(|pair| match pair.split_once('=') {
                Some((site, staging)) => (site.to_owned(), staging.to_owned()),
                None => (String::new(), pair),
            })),
            "input-dir" => self.input_dirs.extend(list()),
            "output-dir" => self.output_dir = Some(value.to_owned()),
            "transformations-dir" => self.transformations_dir = Some(value.to_owned()),
            "cluster" => self.cluster.extend(list()),
            "cleanup" => self.cleanup = Some(value.to_ascii_lowercase()),
            "nocleanup" => self.cleanup = Some("none".to_owned()),
            "force" => self.force = true,
            "cache" | "inherited-rc-files" => self.replica_files.extend(list()),
            "reuse" => self.reuse.extend(list()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> PlanArguments {
        PlanArguments::parse(line.split_whitespace())
    }

    #[test]
    fn options_are_read_in_every_spelling() {
        let found = parse(
            "--conf a.properties --output-sites local,store -vvv --sites=pool -C horizontal,label --force -s more \
             --staging-site pool=local,far -Dpegasus.mode=debug --cleanup InPlace --basename inner --input-dir input -Xmx1g",
        );
        let expected = PlanArguments {
            conf: Some("a.properties".into()),
            sites: vec!["pool".into(), "more".into()],
            output_sites: vec!["local".into(), "store".into()],
            staging_sites: BTreeMap::from([("pool".into(), "local".into()), (String::new(), "far".into())]),
            input_dirs: vec!["input".into()],
            cluster: vec!["horizontal".into(), "label".into()],
            cleanup: Some("inplace".into()),
            force: true,
            properties: BTreeMap::from([("pegasus.mode".into(), "debug".into())]),
            ..PlanArguments::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_pegasus_does_not_know_is_kept_to_be_named() {
        assert_eq!(parse("--colour red -k x --conf").unknown, ["--colour", "red", "-k", "x", "--conf"]);
    }
}
