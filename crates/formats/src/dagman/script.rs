//! PRE and POST scripts as parts of a task's line.

use super::codes::{MACRO, NOT_CARRIED, SCRIPT};
use super::dag::{Node, Script};
use super::draft::shell_word;
use super::report::Report;
use tulpar_core::diagnostic::Diagnostic;

/// The words of a script after its program, each ready for a shell. `$RETURN` is a variable of the line.
pub(super) fn words(node: &Node, script: &Script, report: &mut Report) -> Vec<String> {
    let message = format!("a script of `{}` runs in the folder of the task, not in that of the DAG", node.name);
    let help = "it sees the files of the task and nothing else";
    report.once(&script.place, "where", Diagnostic::warning(SCRIPT, None, message).help(help));
    script.words[1..].iter().map(|word| one(node, script, word, report)).collect()
}

fn one(node: &Node, script: &Script, word: &str, report: &mut Report) -> String {
    let Some(macro_name) = word.strip_prefix('$') else {
        return shell_word(word).unwrap_or_else(|| {
            report.error(
                &script.place,
                NOT_CARRIED,
                format!("`{word}` has doubled braces, which cannot be carried over"),
            );
            "''".to_owned()
        });
    };
    match macro_name.to_ascii_uppercase().as_str() {
        "JOB" | "NODE" => shell_word(&node.name).unwrap_or_default(),
        "RETURN" => "\"$RETURN\"".to_owned(),
        "RETRY" => "$((TULPAR_ATTEMPT - 1))".to_owned(),
        "MAX_RETRIES" => node.retry.to_string(),
        "DAG_STATUS" | "FAILED_COUNT" => "0".to_owned(),
        other => {
            let message = format!("`${other}` of a script cannot be known here; it gets an empty word");
            report.once(&script.place, other, Diagnostic::warning(MACRO, None, message));
            "''".to_owned()
        }
    }
}
