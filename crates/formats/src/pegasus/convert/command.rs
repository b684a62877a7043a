//! The shell line of a job, as PegasusLite would write it: arguments unquoted, streams redirected.

use super::super::codes::COMMAND;
use super::super::model::{Job, Model};
use super::program::{Program, Staged};
use std::fmt::Write as _;
use tulpar_core::diagnostic::{Diagnostic, Findings};
use tulpar_core::workflow::{Run, Span, Template, template};

/// Where a sandbox shows what is to be copied before the job may change or execute it.
pub(super) const STAGED: &str = ".staged";

/// Linux takes about 2 MB of words and their addresses together.
const LONGEST_LINE: usize = 1_000_000;

pub(super) fn nothing() -> Run {
    Run::Shell(Template("".into()))
}

/// What stands around the program on the line of a job.
#[derive(Default)]
pub(super) struct Around<'a> {
    /// Checkpoint files that begin as a copy of a replica.
    pub(super) restore: Vec<&'a str>,
    /// A script to read first.
    pub(super) source: Option<String>,
    /// Files of which the job sees a version under another path.
    pub(super) shown: Vec<Version<'a>>,
    /// Files that the job leaves as a version for others.
    pub(super) left: Vec<Version<'a>>,
    /// DAGMan's scripts with their arguments.
    pub(super) pre: Option<String>,
    pub(super) post: Option<String>,
    /// What the job must not say, and what it must.
    pub(super) failure: Option<String>,
    pub(super) success: Option<String>,
}

/// A version of a file that jobs change.
pub(super) struct Version<'a> {
    pub(super) file: &'a str,
    /// Where it lies in the sandbox.
    pub(super) path: String,
    /// The job gets a copy of its own, to change.
    pub(super) copy: bool,
}

pub(super) fn line(model: &Model, job: &Job, program: &Program, around: &Around<'_>, findings: &mut Findings) -> Run {
    let mut line = format!("export PEGASUS_DAG_JOB_ID={}\n", word(&job.name()));
    if let Some(source) = &around.source {
        let _ = writeln!(line, ". {}", word(source));
    }
    for Staged { name, .. } in &program.staged {
        // A copy, never a link: interpreters follow links and would look for modules beside the original.
        let _ = writeln!(line, "install -m 755 {} {}", word(&format!("{STAGED}/{name}")), word(&format!("./{name}")));
    }
    for file in &around.restore {
        let _ = writeln!(line, "[ -e {0} ] || cp {1} {0}", word(file), word(&format!("{STAGED}/{file}")));
    }
    for Version { file, path, copy } in &around.shown {
        if let Some((folder, _)) = file.rsplit_once('/') {
            let _ = writeln!(line, "mkdir -p {}", word(folder));
        }
        let (path, file) = (word(path), word(file));
        let _ = match copy {
            true => writeln!(line, "install -m 644 {path} {file}"),
            false => writeln!(line, "ln -s \"$PWD\"/{path} {file}"),
        };
    }
    let mut main = String::new();
    for (sign, file) in [("<", job.stdin), (">", job.stdout), ("2>", job.stderr)] {
        if let Some(file) = file {
            let _ = write!(main, "{sign} {} ", word(model.file(file)));
        }
    }
    main.push_str(&program.command);
    if !job.arguments.is_empty() {
        main.push(' ');
        main.push_str(&job.arguments);
    }
    surrounded(model, job, &main, around, &mut line);
    finished(job, line, findings)
}

/// The program between its scripts, with its words looked through, and its files put where others find them.
fn surrounded(model: &Model, job: &Job, main: &str, around: &Around<'_>, line: &mut String) {
    let judged = around.failure.is_some() || around.success.is_some();
    if around.pre.is_some() || around.post.is_some() {
        // What DAGMan puts into the arguments of its scripts.
        let _ = writeln!(line, "JOB={} RETRY=$((TULPAR_ATTEMPT - 1))", word(&job.name()));
    }
    if let Some(pre) = &around.pre {
        let _ = writeln!(line, "{pre} || {{ echo 'the PRE script failed' >&2; exit 1; }}");
    }
    if !judged && around.post.is_none() {
        line.push_str(main);
    } else {
        line.push_str("set +e\n");
        if judged {
            // Both streams stay as they are, and are kept to be looked through.
            let _ = writeln!(
                line,
                "{{ {{ {{ {main}\n}}; echo $? > .status; }} 2>&1 >&3 | tee .stderr >&2; }} 3>&1 | tee .stdout"
            );
            line.push_str("RETURN=$(cat .status)\n");
            let mut files = ".stdout .stderr".to_owned();
            for file in [job.stdout, job.stderr].into_iter().flatten() {
                let _ = write!(files, " {}", word(model.file(file)));
            }
            for (message, found, what) in [(&around.failure, "", "says"), (&around.success, "! ", "does not say")] {
                if let Some(message) = message {
                    let message = word(message);
                    let _ = writeln!(
                        line,
                        "if [ \"$RETURN\" = 0 ] && {found}grep -qsF -e {message} {files}; then echo 'the job failed, because it {what}:' {message} >&2; RETURN=1; fi"
                    );
                }
            }
        } else {
            let _ = writeln!(line, "{main}\nRETURN=$?");
        }
        match &around.post {
            // What the script says of the job is what the job came to.
            Some(post) => {
                let _ = write!(
                    line,
                    "{post}\nRETURN=$?\n[ $RETURN = 0 ] || {{ echo 'the POST script failed' >&2; exit $RETURN; }}\nset -e"
                );
            }
            None => line.push_str("[ $RETURN = 0 ] || exit $RETURN\nset -e"),
        }
    }
    for Version { file, path, .. } in &around.left {
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let _ = write!(line, "\nmkdir -p {} && mv {} {}", word(folder), word(file), word(path));
    }
}

/// A sub-workflow: this very program, started again for the inner workflow when it is reached.
pub(super) fn nested(model: &Model, job: &Job, file: &str, findings: &mut Findings) -> Run {
    let mut line = format!("exec \"$TULPAR_EXE\" __subworkflow {}", word(file));
    let mut made: Vec<&str> =
        job.uses.iter().filter(|used| used.link.writes()).map(|used| model.file(used.file)).collect();
    made.sort_unstable();
    made.dedup();
    for made in made {
        let _ = write!(line, " --makes {}", word(made));
    }
    if !job.arguments.is_empty() {
        let _ = write!(line, " -- {}", job.arguments);
    }
    finished(job, line, findings)
}

fn finished(job: &Job, line: String, findings: &mut Findings) -> Run {
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
