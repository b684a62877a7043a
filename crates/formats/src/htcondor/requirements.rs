//! `requirements` of jobs as a question about machines alone, where that is the same question.
//!
//! It evaluates nothing: the collector does, which has the machines but no job.

use std::collections::BTreeSet;

/// Beginnings of names that jobs have too, in small letters. A name without a scope is the job's own first.
const OF_JOBS: &[&str] = &[
    "condor",
    "current",
    "filesystemdomain",
    "globaljob",
    "image",
    "job",
    "my",
    "num",
    "owner",
    "rank",
    "request",
    "server",
    "target",
    "uiddomain",
];
const WORDS: &[&str] = &["true", "false", "undefined", "error", "is", "isnt"];

/// What machines must meet, without `TARGET.`. Nothing where the answer depends on the job, or where that cannot be said.
/// `attributes` are those that some machine has, `of_the_job` those that the job is given, all in small letters.
pub fn of_machines(expression: &str, attributes: &BTreeSet<String>, of_the_job: &BTreeSet<String>) -> Option<String> {
    let is_machines = |name: &str| {
        let name = name.to_ascii_lowercase();
        // What says whether a machine has something is the machine's, also where none has it.
        let known = attributes.contains(&name) || name.starts_with("has");
        known && !of_the_job.contains(&name) && !OF_JOBS.iter().any(|start| name.starts_with(start))
    };
    // Macros have their values only when the job is submitted, also in strings.
    if expression.contains('$') {
        return None;
    }
    let mut asked = String::new();
    let mut rest = expression.trim();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string(rest)?,
            '0'..='9' => length_of(rest, |letter| letter.is_ascii_alphanumeric() || letter == '.'),
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = &rest[..length_of(rest, is_letter)];
                let behind = rest[name.len()..].trim_start();
                if let Some(inside) = behind.strip_prefix('.') {
                    let inside = inside.trim_start();
                    let length = length_of(inside, is_letter);
                    let ends = !inside[length..].trim_start().starts_with(['.', '[']);
                    if !name.eq_ignore_ascii_case("target") || length == 0 || !ends {
                        return None;
                    }
                    asked.push_str(&inside[..length]);
                    rest = &inside[length..];
                    continue;
                }
                let is_word = WORDS.iter().any(|word| name.eq_ignore_ascii_case(word));
                if behind.starts_with('[') || !(behind.starts_with('(') || is_word || is_machines(name)) {
                    return None;
                }
                name.len()
            }
            // Names in quotes, and whole ads and lists.
            '\'' | '[' | '{' => return None,
            other => other.len_utf8(),
        };
        asked.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (!asked.is_empty()).then_some(asked)
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn length_of(text: &str, is_part: fn(char) -> bool) -> usize {
    text.find(|letter| !is_part(letter)).unwrap_or(text.len())
}

/// How long the string is that the text begins with.
fn string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn asked(expression: &str) -> Option<String> {
        let machines = names(&["arch", "machine", "opsysmajorver", "poolname", "condorversion", "jobstarts"]);
        of_machines(expression, &machines, &names(&["hasmine"]))
    }

    #[test]
    fn what_only_machines_answer_can_be_asked() {
        for (expression, expected) in [
            ("HasCHTCStaging == true", "HasCHTCStaging == true"),
            ("(TARGET.PoolName =!= \"CHTC\")", "(PoolName =!= \"CHTC\")"),
            ("target.Anything >= 8.0 && Arch is \"X86_64\"", "Anything >= 8.0 && Arch is \"X86_64\""),
            ("regexp(\"MY.[a-z]+\\\"\", Machine)", "regexp(\"MY.[a-z]+\\\"\", Machine)"),
            ("OpSysMajorVer > 8 || undefined", "OpSysMajorVer > 8 || undefined"),
        ] {
            assert_eq!(asked(expression).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_depends_on_the_job_is_not_asked() {
        for expression in [
            "TARGET.Memory >= MY.RequestMemory",
            "TARGET.Cpus >= RequestCpus",
            "CondorVersion == \"x\"",
            "JobStarts < 3",
            "SomethingThatNoMachineHas",
            "HasMine",
            "Arch == \"$(arch)\"",
            "$(wanted)",
            "TARGET.Devices.Count > 1",
            "TARGET.Devices[0] > 1",
            "member(Arch, {\"X86_64\"})",
            "\"never ends",
            "'Arch' == 1",
            "",
        ] {
            assert_eq!(asked(expression), None, "{expression}");
        }
    }
}
