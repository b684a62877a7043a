//! The codes of findings about WfFormat. A code is never given another meaning.

/// Every code with what it stands for.
pub const CODES: &[(&str, &str)] = &[
    (SYNTAX, "the text is not valid JSON"),
    (SHAPE, "a value of the wrong kind"),
    (VERSION, "a version of the format that is not known"),
    (NO_TASKS, "an instance without tasks"),
    (DUPLICATE, "one id or name for two things"),
    (UNKNOWN_TASK, "a parent, child or execution entry of a task that does not exist"),
    (CYCLE, "tasks that wait for each other"),
    (UNKNOWN_FILE, "a file that is not declared"),
    (ONE_SIDED, "an edge that only one of its two tasks names, or that only follows from files"),
    (NOT_RUN, "a task of which no execution is recorded"),
    (UNKNOWN_MACHINE, "a machine that is not described"),
    (IMPOSSIBLE, "a number that cannot be: negative, or not finite"),
    (TWO_MAKERS, "a file that several tasks make"),
    (TWO_SIZES, "a file with two sizes"),
    (NO_COMMAND, "a task of which no command is recorded"),
    (LOOSE_WORDS, "a recorded command whose quoting is lost"),
    (UNSAFE_NAME, "a file name that no sandbox can have"),
];

pub(super) const SYNTAX: &str = "F001";
pub(super) const SHAPE: &str = "F002";
pub(super) const VERSION: &str = "F003";
pub(super) const NO_TASKS: &str = "F004";
pub(super) const DUPLICATE: &str = "F005";
pub(super) const UNKNOWN_TASK: &str = "F006";
pub(super) const CYCLE: &str = "F007";
pub(super) const UNKNOWN_FILE: &str = "F008";
pub(super) const ONE_SIDED: &str = "F009";
pub(super) const NOT_RUN: &str = "F010";
pub(super) const UNKNOWN_MACHINE: &str = "F011";
pub(super) const IMPOSSIBLE: &str = "F012";
pub(super) const TWO_MAKERS: &str = "F013";
pub(super) const TWO_SIZES: &str = "F014";
pub(super) const NO_COMMAND: &str = "F020";
pub(super) const LOOSE_WORDS: &str = "F021";
pub(super) const UNSAFE_NAME: &str = "F022";
