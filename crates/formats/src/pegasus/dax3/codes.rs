//! The codes of findings about DAX files and text catalogues. A code is never given another meaning.

/// Every code with what it stands for.
pub const CODES: &[(&str, &str)] = &[
    (SYNTAX, "the text is not well-formed XML"),
    (ENTITY, "a document type or an entity of its own, which is never expanded"),
    (TOO_DEEP, "nested too deep, or an element with far too many attributes"),
    (UNKNOWN, "an element or attribute that a DAX does not have"),
    (MISSING, "an attribute or element that must be there is missing"),
    (BAD_VALUE, "a value that this attribute does not take"),
    (DUPLICATE, "two jobs with one id"),
    (UNKNOWN_JOB, "a dependency on a job that does not exist"),
    (NAMESPACE, "a profile of a namespace that Pegasus does not have"),
    (CATALOGUE, "a line of a text catalogue that cannot be read"),
];

pub(super) const SYNTAX: &str = "X001";
pub(super) const ENTITY: &str = "X002";
pub(super) const TOO_DEEP: &str = "X003";
pub(super) const UNKNOWN: &str = "X004";
pub(super) const MISSING: &str = "X005";
pub(super) const BAD_VALUE: &str = "X006";
pub(super) const DUPLICATE: &str = "X007";
pub(super) const UNKNOWN_JOB: &str = "X008";
pub(super) const NAMESPACE: &str = "X009";
pub(super) const CATALOGUE: &str = "X010";
