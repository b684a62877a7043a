//! The shell line of a job, as PegasusLite would write it: arguments unquoted, streams redirected.

use super::super::codes::COMMAND;
use super::super::model::{Job, Model};
use super::program::{Program, Staged};
use crate::diagnostic::{Diagnostic, Findings};
use crate::workflow::{Run, Span, Template, template};
use std::fmt::Write as _;

/// Where a sandbox shows what is to be copied before the job may change or execute it.
pub(super) const STAGED: &str = ".staged";

/// Linux refuses a single argument above 128 KiB, and a shell line is one.
const LONGEST_LINE: usize = 125_000;

pub(super) fn nothing() -> Run {
    Run::Shell(Template("".into()))
}

/// `restore` are checkpoint files that begin as a copy of a replica; `source` is a script to read first.
pub(super) fn line(
    model: &Model,
    job: &Job,
    program: &Program,
    restore: &[&str],
    source: Option<&str>,
    findings: &mut Findings,
) -> Run {
    let mut line = format!("export PEGASUS_DAG_JOB_ID={}\n", word(&job.name()));
    if let Some(source) = source {
        let _ = writeln!(line, ". {}", word(source));
    }
    for Staged { name, .. } in &program.staged {
        // A copy, never a link: interpreters follow links and would look for modules beside the original.
        let _ = writeln!(line, "install -m 755 {} {}", word(&format!("{STAGED}/{name}")), word(&format!("./{name}")));
    }
    for file in restore {
        let _ = writeln!(line, "[ -e {0} ] || cp {1} {0}", word(file), word(&format!("{STAGED}/{file}")));
    }
    for (sign, file) in [("<", job.stdin), (">", job.stdout), ("2>", job.stderr)] {
        if let Some(file) = file {
            let _ = write!(line, "{sign} {} ", word(model.file(file)));
        }
    }
    line.push_str(&program.command);
    if !job.arguments.is_empty() {
        line.push(' ');
        line.push_str(&job.arguments);
    }
    if line.len() > LONGEST_LINE {
        findings.push(
            Diagnostic::error(
                COMMAND,
                job.span,
                format!("the arguments of `{}` are {} kB, more than systems allow", job.name(), line.len() / 1000),
            )
            .help("write them to a file that is an input of the job, and let the program read that"),
        );
    }
    match escape(&line) {
        Some(line) => Run::Shell(line),
        None => {
            findings.push(unescapable(job.span, &job.arguments));
            nothing()
        }
    }
}

/// Text that shall stay as it is, as a template: `{name}` is doubled. `None` where doubling is not enough.
pub(crate) fn escape(text: &str) -> Option<Template> {
    if !text.contains('{') {
        return Some(Template(text.into()));
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for reference in template::references(text) {
        let (start, end) = (reference.span.start as usize, reference.span.end as usize);
        let _ = write!(out, "{}{{{}}}", &text[at..start], &text[start..end]);
        at = end;
    }
    out.push_str(&text[at..]);
    (template::plain(&out, &mut |_, _| None).as_deref() == Ok(text)).then(|| Template(out.into()))
}

pub(super) fn unescapable(span: Span, text: &str) -> Diagnostic {
    let shown: String = text.chars().take(60).collect();
    Diagnostic::error(COMMAND, span, format!("doubled braces around a name cannot be carried over: `{shown}`"))
        .help("put a space or a quote between the two braces")
}

/// One word of a shell line.
pub(crate) fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+:,./-".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_renders_as_it_was() {
        for text in
            ["plain", "{a}", "x {a.b} y", "${HOME} {1..3} {}", "awk '{print $1}'", "{{{a}}}", "{ a }", "é{a}é{b}"]
        {
            let escaped = escape(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(template::plain(&escaped.0, &mut |_, _| None).as_deref(), Ok(text), "{text}");
        }
        assert_eq!(escape("{{a}}"), None);
    }
}
