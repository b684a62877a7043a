//! The codes of what `lint` finds. A code is never given another meaning.

/// Every code with what it stands for.
pub const CODES: &[(&str, &str)] = &[
    (UNKNOWN, "a command that HTCondor does not know and silently ignores"),
    (TWICE, "a command given twice, of which only the last counts"),
    (EVICTED, "outputs that may not be there yet when a job is evicted"),
    (GLOB, "a pattern in a list of files, which HTCondor takes literally"),
    (MISSING, "a file or folder that is not there"),
    (CURLY, "typographic quotes"),
    (HOLDS, "a policy that counts holds, which HTCondor miscounts"),
    (SECRET, "a secret where every user of the pool can read it"),
    (GETENV, "the whole environment of the submitter in the job"),
    (MUTABLE, "an image whose content can change under its name"),
    (OLD_ATTRIBUTE, "a requirement on an attribute that slots no longer have"),
    (UNUSED_COMMAND, "a command that condor_submit does not use"),
    (QUEUES, "several `queue` statements"),
    (DESTINATION, "output_destination together with renamed outputs"),
    (SHORT, "very many short jobs"),
    (MANY, "very many jobs at once"),
    (CHECKPOINT, "half of a checkpoint"),
    (GPUS, "GPUs asked for, or chosen, the wrong way"),
    (REQUEST, "no request for a resource"),
    (RESUMABLE, "an attribute with a similar name that means something else"),
    (LOG_PLACE, "a log where DAGMan refuses it"),
    (FINAL, "a FINAL node that hides a failure"),
    (SCRIPT, "a hazard in a shell script"),
    (SIZE, "a size without a unit that is hardly meant"),
    (VALUE, "a value that HTCondor accepts and cannot use"),
    (QUOTES, "quotes that do not match"),
    (ITEMS, "an item without a value of its own"),
    (NO_QUEUE, "a description that queues nothing"),
    (LINE, "a line that is no command"),
    (OBSOLETE, "a requirement that a request replaces"),
    (DAG, "a DAG that DAGMan would refuse"),
    (COMMENT, "a comment behind a value, which becomes part of the value"),
    (SECRET_FILE, "a file of secrets that goes with the job"),
    (OVERWRITTEN, "a file that several jobs bring back under one name"),
    (RENAMED, "a renamed output that arrives under another name"),
    (SIBLING, "a job without what another of the same DAG says about GPUs"),
];

pub(super) const UNKNOWN: &str = "H001";
pub(super) const TWICE: &str = "H002";
pub(super) const EVICTED: &str = "H003";
pub(super) const GLOB: &str = "H004";
pub(super) const MISSING: &str = "H005";
pub(super) const CURLY: &str = "H006";
pub(super) const HOLDS: &str = "H007";
pub(super) const SECRET: &str = "H008";
pub(super) const GETENV: &str = "H009";
pub(super) const MUTABLE: &str = "H010";
pub(super) const OLD_ATTRIBUTE: &str = "H011";
pub(super) const UNUSED_COMMAND: &str = "H012";
pub(super) const QUEUES: &str = "H013";
pub(super) const DESTINATION: &str = "H014";
pub(super) const SHORT: &str = "H015";
pub(super) const MANY: &str = "H016";
pub(super) const CHECKPOINT: &str = "H017";
pub(super) const GPUS: &str = "H018";
pub(super) const REQUEST: &str = "H019";
pub(super) const RESUMABLE: &str = "H020";
pub(super) const LOG_PLACE: &str = "H021";
pub(super) const FINAL: &str = "H022";
pub(super) const SCRIPT: &str = "H023";
pub(super) const SIZE: &str = "H024";
pub(super) const VALUE: &str = "H025";
pub(super) const QUOTES: &str = "H026";
pub(super) const ITEMS: &str = "H027";
pub(super) const NO_QUEUE: &str = "H028";
pub(super) const LINE: &str = "H029";
pub(super) const OBSOLETE: &str = "H030";
pub(super) const DAG: &str = "H031";
pub(super) const COMMENT: &str = "H032";
pub(super) const SECRET_FILE: &str = "H033";
pub(super) const SIBLING: &str = "H034";
pub(super) const OVERWRITTEN: &str = "H035";
pub(super) const RENAMED: &str = "H036";
