//! The codes of findings about DAGs and submit descriptions. A code is never given another meaning.

/// Every code with what it stands for.
pub const CODES: &[(&str, &str)] = &[
    (LINE, "a line that cannot be read"),
    (NO_FILE, "a submit description, splice or included file that is not there"),
    (UNKNOWN_NODE, "a node that does not exist"),
    (DUPLICATE, "two nodes with one name"),
    (TOO_MUCH, "files that include each other without end, or far too many nodes or edges"),
    (MACRO, "`$(name)` or `$FUNCTION(…)` whose value cannot be known"),
    (QUOTING, "arguments or an environment whose quotes do not match"),
    (VALUE, "a number or size that cannot be read; expressions are not evaluated"),
    (QUEUE, "a `queue` statement that cannot be read"),
    (NOT_CARRIED, "a command of the DAG that has no counterpart"),
    (NOT_RUN, "a node that is not run"),
    (SCRIPT, "a PRE or POST script, which runs inside the task"),
    (SHARED_FOLDER, "a job that works in a folder where its files cannot be known"),
    (GUESSED, "a file that is taken to be made by the only node that can have made it"),
    (OVERWRITTEN, "a file that several nodes write"),
    (UNIVERSE, "a universe that Tulpar does not have"),
    (NO_EFFECT, "a submit command that has no effect here"),
    (FINAL, "a FINAL node, which runs only when everything went well"),
    (STREAM, "standard output or error that stays in the log"),
    (CONDITION, "`if`, `include` or `use` that cannot be decided here"),
    (NO_PROGRAM, "a job without an executable"),
    (BRACES, "text with doubled braces, which cannot be carried over"),
    (UNDECLARED, "a job that does not say which files it makes"),
    (REJECTED, "a DAG that is marked with `REJECT`"),
];

pub(super) const LINE: &str = "D001";
pub(super) const NO_FILE: &str = "D002";
pub(super) const UNKNOWN_NODE: &str = "D003";
pub(super) const DUPLICATE: &str = "D004";
pub(super) const TOO_MUCH: &str = "D005";
pub(super) const MACRO: &str = "D006";
pub(super) const QUOTING: &str = "D007";
pub(super) const VALUE: &str = "D008";
pub(super) const QUEUE: &str = "D009";
pub(super) const NOT_CARRIED: &str = "D010";
pub(super) const NOT_RUN: &str = "D011";
pub(super) const SCRIPT: &str = "D012";
pub(super) const SHARED_FOLDER: &str = "D013";
pub(super) const GUESSED: &str = "D014";
pub(super) const OVERWRITTEN: &str = "D015";
pub(super) const UNIVERSE: &str = "D016";
pub(super) const NO_EFFECT: &str = "D017";
pub(super) const FINAL: &str = "D018";
pub(super) const STREAM: &str = "D019";
pub(super) const CONDITION: &str = "D020";
pub(super) const NO_PROGRAM: &str = "D021";
pub(super) const BRACES: &str = "D022";
pub(super) const UNDECLARED: &str = "D023";
pub(super) const REJECTED: &str = "D024";
