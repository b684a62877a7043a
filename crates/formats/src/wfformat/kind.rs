//! What kind of task a recorded one is, when the text does not say.

/// A name that tasks share; a program; or the name without its number.
pub(super) fn guess<'t>(id: &str, name: &'t str, program: Option<&'t str>) -> &'t str {
    let short = without_number(name);
    let shared = short == name && id != name && id.starts_with(name);
    let program = program.filter(|program| !shared && !program.is_empty() && !program.contains(char::is_whitespace));
    match program {
        Some(program) => program.rsplit('/').next().unwrap_or(program),
        None => short,
    }
}

/// `individuals_ID0000001` without its number.
fn without_number(name: &str) -> &str {
    match name.rsplit_once("_ID") {
        Some((kind, digits)) if !kind.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => kind,
        _ => name,
    }
}
