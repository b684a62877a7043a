//! The codes of findings about Pegasus files. A code is never given another meaning.

/// Every code with what it stands for.
pub const CODES: &[(&str, &str)] = &[
    (VARIABLE, "`${NAME}` of a variable that is not set"),
    (SHAPE, "a value of the wrong kind: a list where a map belongs, and the like"),
    (UNKNOWN_KEY, "a key that Pegasus does not have"),
    (MISSING_KEY, "a key that must be there is missing"),
    (BAD_VALUE, "a value that this key does not take"),
    (DUPLICATE, "two jobs with one id"),
    (UNKNOWN_JOB, "a dependency on a job that does not exist"),
    (PATTERN, "a regular expression that cannot be read"),
    (NO_REPLICA, "an input that no job makes and no replica catalogue knows"),
    (NO_PROGRAM, "a job whose program the transformation catalogue does not give"),
    (NO_CONTAINER, "a container that the transformation catalogue does not have"),
    (HOOK, "a hook for an occasion that does not exist"),
    (SCRIPT, "a PRE or POST script that runs elsewhere than in Pegasus"),
    (SITE, "a site that is reached in a way Tulpar does not know"),
    (IMAGE, "a container image or mount that cannot be used here"),
    (NO_EFFECT, "a profile that has no effect here"),
    (CATALOGUE, "a catalogue that is not read"),
    (IN_PLACE, "a file that jobs change in place in no certain order"),
    (COMMAND, "arguments that cannot be carried over"),
    (ELSEWHERE, "a program that is installed on another site"),
    (KNOWN_OUTPUT, "a file that a job makes and that the replica catalogue has too"),
    (EXPRESSION, "an expression of a `.expr` profile that is not understood"),
];

pub(super) const VARIABLE: &str = "P001";
pub(super) const SHAPE: &str = "P002";
pub(super) const UNKNOWN_KEY: &str = "P003";
pub(super) const MISSING_KEY: &str = "P004";
pub(super) const BAD_VALUE: &str = "P005";
pub(super) const DUPLICATE: &str = "P006";
pub(super) const UNKNOWN_JOB: &str = "P007";
pub(super) const PATTERN: &str = "P008";
pub(super) const NO_REPLICA: &str = "P010";
pub(super) const NO_PROGRAM: &str = "P011";
pub(super) const NO_CONTAINER: &str = "P012";
pub(super) const HOOK: &str = "P021";
pub(super) const SCRIPT: &str = "P022";
pub(super) const SITE: &str = "P023";
pub(super) const IMAGE: &str = "P024";
pub(super) const NO_EFFECT: &str = "P025";
pub(super) const CATALOGUE: &str = "P026";
pub(super) const IN_PLACE: &str = "P027";
pub(super) const COMMAND: &str = "P028";
pub(super) const ELSEWHERE: &str = "P029";
pub(super) const KNOWN_OUTPUT: &str = "P030";
pub(super) const EXPRESSION: &str = "P031";
