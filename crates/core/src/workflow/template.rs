//! Text with `{name}` and `{name.attribute}` in it: finding them, and putting values in their place.
//!
//! Only `{identifier}` with attributes is a substitution. `${VAR}`, `{print $1}`, `{a,b}` and `{1..3}`
//! stay as they are; `{{name}}` gives a literal `{name}`. Values come from a callback: this file knows
//! neither tasks nor files. How a value is made safe in a shell line is `shell`'s matter.

use super::Span;
use super::absent;
use super::shell;
use super::unsafe_place::UnsafePlace;
use std::borrow::Cow;
use std::ops::Range;
use thiserror::Error;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    Literal(&'t str),
    Name(Reference<'t>),
}

/// `{name}` or `{name.attribute}` and where it stands in the template, braces included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<'t> {
    pub name: &'t str,
    /// What follows the first dot; empty when there is none.
    pub attribute: &'t str,
    pub span: Span,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values<'v> {
    One(Cow<'v, str>),
    /// Several words: the files of an input.
    Many(Vec<Cow<'v, str>>),
    /// A parameter that is inactive beside the others: its word is left out.
    Absent,
}

impl<'v> Values<'v> {
    pub fn one(value: impl Into<Cow<'v, str>>) -> Self {
        Values::One(value.into())
    }

    pub fn many<T: Into<Cow<'v, str>>>(values: impl IntoIterator<Item = T>) -> Self {
        Values::Many(values.into_iter().map(Into::into).collect())
    }

    pub(super) fn as_slice(&self) -> &[Cow<'v, str>] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
            Values::Absent => &[],
        }
    }

    fn joined(&self) -> String {
        self.as_slice().join(" ")
    }
}

/// How substituted values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// As they are; several are separated by spaces. For paths and environment variables.
    Plain,
    /// As arguments of a program. A template that is exactly `{name}` gives one argument a value.
    Argument,
    /// As words of a POSIX shell line, quoted as the place in the line asks for.
    Shell,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("nothing is called `{name}` here")]
    Unknown { name: String, attribute: String },
    #[error("{place}, at `{{{name}}}`")]
    Unsafe { name: String, place: UnsafePlace },
}

/// Gives the values for a name and its attribute (empty when there is none); `None` when there is no such thing.
pub type Lookup<'l, 'v> = dyn FnMut(&str, &str) -> Option<Values<'v>> + 'l;

/// The pieces of a template in order. Literal pieces have their doubled braces undone.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { text, at: 0, pending: None }
}

pub struct Pieces<'t> {
    text: &'t str,
    at: usize,
    pending: Option<Piece<'t>>,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        if let Some(piece) = self.pending.take() {
            return Some(piece);
        }
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut search = start;
        while let Some(found) = self.text[search..].find('{') {
            let open = search + found;
            search = open + 1;
            if bytes.get(open + 1) == Some(&b'{') {
                // `{{name}}` is the text `{name}`; any other doubled brace is left as it is.
                if let Some(close) = reference_end(bytes, open + 2)
                    && bytes.get(close..close + 2) == Some(b"}}")
                {
                    self.at = close + 2;
                    self.pending = Some(Piece::Literal(&self.text[open + 1..close + 1]));
                    return if open > start { Some(Piece::Literal(&self.text[start..open])) } else { self.next() };
                }
                while bytes.get(search) == Some(&b'{') {
                    search += 1;
                }
                continue;
            }
            if open > 0 && bytes[open - 1] == b'$' {
                continue;
            }
            let Some(close) = reference_end(bytes, open + 1).filter(|close| bytes.get(*close) == Some(&b'}')) else {
                continue;
            };
            let inside = &self.text[open + 1..close];
            let (name, attribute) = inside.split_once('.').unwrap_or((inside, ""));
            self.at = close + 1;
            let span = Span { start: open as u32, end: close as u32 + 1 };
            let piece = Piece::Name(Reference { name, attribute, span });
            if open > start {
                self.pending = Some(piece);
                return Some(Piece::Literal(&self.text[start..open]));
            }
            return Some(piece);
        }
        self.at = self.text.len();
        (start < self.text.len()).then(|| Piece::Literal(&self.text[start..]))
    }
}

/// The end of `identifier(.identifier)*` that starts here, if one does.
fn reference_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let first = *bytes.get(at)?;
        if !(first.is_ascii_alphabetic() || first == b'_') {
            return None;
        }
        while bytes.get(at).is_some_and(|byte| is_name_byte(*byte)) {
            at += 1;
        }
        if bytes.get(at) != Some(&b'.') {
            return Some(at);
        }
        at += 1;
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// `[A-Za-z_][A-Za-z0-9_-]*`: what tasks, data, outputs, variables and parameters may be called.
pub fn is_identifier(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes.iter().all(|byte| is_name_byte(*byte))
}

/// Everything that a template refers to.
pub fn names(text: &str) -> Vec<Reference<'_>> {
    references(text).collect()
}

pub fn references(text: &str) -> impl Iterator<Item = Reference<'_>> {
    pieces(text).filter_map(|piece| match piece {
        Piece::Name(reference) => Some(reference),
        Piece::Literal(_) => None,
    })
}

/// Puts values in. `Argument` may give several texts or, for an input without files, none; the others one.
pub fn render(text: &str, quoting: Quoting, lookup: &mut Lookup<'_, '_>) -> Result<Vec<String>, TemplateError> {
    match quoting {
        Quoting::Plain => plain(text, lookup).map(|text| vec![text]),
        Quoting::Argument => argument(text, lookup),
        Quoting::Shell => shell(text, lookup).map(|text| vec![text]),
    }
}

pub fn plain(text: &str, lookup: &mut Lookup<'_, '_>) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => out.push_str(literal),
            Piece::Name(reference) => match find(&reference, lookup)? {
                Values::One(value) => out.push_str(&value),
                values => out.push_str(&values.joined()),
            },
        }
    }
    Ok(out)
}

/// The arguments of a program. One that names something absent is left out, with the option before it.
pub fn arguments<T: AsRef<str>>(templates: &[T], lookup: &mut Lookup<'_, '_>) -> Result<Vec<String>, TemplateError> {
    let mut rendered: Vec<Vec<String>> = Vec::with_capacity(templates.len());
    for (at, template) in templates.iter().enumerate() {
        let mut found = None;
        let words = argument(template.as_ref(), &mut |name, attribute| {
            let values = lookup(name, attribute);
            if values == Some(Values::Absent) {
                found.get_or_insert_with(|| name.to_owned());
            }
            values
        })?;
        rendered.push(words);
        let reference = found.and_then(|name| references(template.as_ref()).find(|reference| reference.name == name));
        for gone in
            reference.and_then(|reference| absent::in_arguments(templates, at, reference.span)).into_iter().flatten()
        {
            rendered[gone].clear();
        }
    }
    Ok(rendered.into_iter().flatten().collect())
}

pub fn argument(text: &str, lookup: &mut Lookup<'_, '_>) -> Result<Vec<String>, TemplateError> {
    let mut all = pieces(text);
    if let (Some(Piece::Name(reference)), None) = (all.next(), all.next()) {
        return Ok(match find(&reference, lookup)? {
            Values::One(value) => vec![value.into_owned()],
            Values::Many(values) => values.into_iter().map(Cow::into_owned).collect(),
            Values::Absent => vec![String::new()],
        });
    }
    plain(text, lookup).map(|text| vec![text])
}

pub fn shell(text: &str, lookup: &mut Lookup<'_, '_>) -> Result<String, TemplateError> {
    let mut line = shell::Line::new(text);
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => line.literal(literal),
            Piece::Name(reference) => {
                if line.is_comment() {
                    // Nothing in a comment is run, and a line break in a value would end it.
                    line.literal(&text[reference.span.start as usize..reference.span.end as usize]);
                    continue;
                }
                let values = match find(&reference, lookup)? {
                    Values::Absent => match absent_part(&line, text, &reference) {
                        Some(gone) => return shell(&format!("{}{}", &text[..gone.start], &text[gone.end..]), lookup),
                        None => Values::one(""),
                    },
                    values => values,
                };
                line.value(&values)
                    .map_err(|place| TemplateError::Unsafe { name: reference.name.to_owned(), place })?;
            }
        }
    }
    Ok(line.finish())
}

/// Places of a shell line where a value cannot be quoted safely whatever it is.
pub fn unsafe_places(text: &str) -> Vec<(Reference<'_>, UnsafePlace)> {
    let mut line = shell::Line::new(text);
    let mut found = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => line.literal(literal),
            Piece::Name(reference) => {
                // A harmless word: what fails with it fails with everything.
                if !line.is_comment()
                    && let Err(place) = line.value(&Values::one("1"))
                {
                    found.push((reference, place));
                }
            }
        }
    }
    found
}

/// The words that are left out with a reference that has no value, if the place allows it.
fn absent_part(line: &shell::Line, text: &str, reference: &Reference<'_>) -> Option<Range<usize>> {
    absent::in_line(text, reference.span).filter(|_| line.is_bare())
}

/// References of a shell line without whose values the line cannot be written.
pub fn needed_references(text: &str) -> Vec<Reference<'_>> {
    let mut line = shell::Line::new(text);
    let mut found = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => line.literal(literal),
            Piece::Name(reference) => {
                if !line.is_comment() && absent_part(&line, text, &reference).is_none() {
                    found.push(reference);
                }
                // Where no value can stand is reported elsewhere.
                let _ = line.value(&Values::one("1"));
            }
        }
    }
    found
}

/// References of one of the arguments of a program without whose values it cannot be written.
pub fn needed_in_argument<'t>(arguments: &[&'t str], at: usize) -> Vec<Reference<'t>> {
    let mut found = names(arguments[at]);
    found.retain(|reference| absent::in_arguments(arguments, at, reference.span).is_none());
    found
}

/// References that stand inside `'…'` or `"…"` of a shell line.
pub fn quoted_references(text: &str) -> Vec<Reference<'_>> {
    let mut line = shell::Line::new(text);
    let mut found = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => line.literal(literal),
            Piece::Name(reference) => {
                if line.is_quoted() {
                    found.push(reference);
                }
                // Where no value can stand is reported elsewhere.
                let _ = line.value(&Values::one("1"));
            }
        }
    }
    found
}

fn find<'v>(reference: &Reference<'_>, lookup: &mut Lookup<'_, 'v>) -> Result<Values<'v>, TemplateError> {
    lookup(reference.name, reference.attribute).ok_or_else(|| TemplateError::Unknown {
        name: reference.name.to_owned(),
        attribute: reference.attribute.to_owned(),
    })
}

/// Attributes of an input, in the order in which they are documented.
pub const INPUT_ATTRIBUTES: &[&str] = &["list", "dir", "name", "stem", "ext", "count"];
/// Attributes of a variable that scatters over files: the number of its file or batch is known too.
pub const FILE_VARIABLE_ATTRIBUTES: &[&str] = &["list", "dir", "name", "stem", "ext", "count", "index"];
pub const OUTPUT_ATTRIBUTES: &[&str] = &["dir"];

/// `dir` and `count` of files, `name`, `stem` and `ext` of the first; an empty attribute gives the paths themselves.
/// `None` for the attributes that depend on more than the paths (`list`, `index`) and for unknown ones.
pub fn file_values<'p>(paths: &[&'p str], attribute: &str) -> Option<Values<'p>> {
    let first = || file_name(paths.first().copied().unwrap_or(""));
    Some(match attribute {
        "" => match paths {
            [only] => Values::one(*only),
            _ => Values::many(paths.iter().copied()),
        },
        "name" => Values::one(first()),
        "stem" => Values::one(split_name(first()).0),
        "ext" => Values::one(split_name(first()).1),
        "count" => Values::one(paths.len().to_string()),
        "dir" => Values::one(common_directory(paths)),
        _ => return None,
    })
}

/// The directory of an output: of the path itself, or of what stands before the first pattern character.
pub fn output_directory(path: &str) -> &str {
    if let Some(directory) = path.strip_suffix('/') {
        return directory;
    }
    let fixed = path.find(['*', '?', '[']).map_or(path, |pattern| &path[..pattern]);
    match fixed.rfind('/') {
        Some(slash) => &fixed[..slash],
        None => ".",
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `image.tar.gz` is `image.tar` and `gz`; a name that begins with its only dot has no extension.
fn split_name(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(dot) if dot > 0 => (&name[..dot], &name[dot + 1..]),
        _ => (name, ""),
    }
}

/// The deepest directory that holds all of the files; `.` for none.
fn common_directory<'p>(paths: &[&'p str]) -> &'p str {
    let parent = |path: &'p str| path.rfind('/').map_or("", |slash| &path[..slash]);
    let Some(mut common) = paths.first().map(|path| parent(path)) else { return "." };
    for path in &paths[1..] {
        let holds = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        while !(common.is_empty() || holds(common)) {
            common = parent(common);
        }
    }
    if common.is_empty() { "." } else { common }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'a>(name: &str, attribute: &str) -> Option<Values<'a>> {
        Some(match (name, attribute) {
            ("part", "") => Values::one("3"),
            ("odd", "") => Values::one("it's $HOME; rm -rf.csv"),
            ("files", "") => Values::many(["a.csv", "b c.csv"]),
            ("none", "") => Values::many(Vec::<&str>::new()),
            ("files", "list") => Values::one("files.list"),
            _ => return None,
        })
    }

    #[test]
    fn only_a_name_in_braces_is_a_substitution() {
        for (template, rendered) in [
            ("part-{part}.npy", "part-3.npy"),
            ("{part}{part}", "33"),
            ("awk '{print $1}'", "awk '{print $1}'"),
            ("${part} ${part:-x} $part", "${part} ${part:-x} $part"),
            ("{a,b} {1..3} {} { part }", "{a,b} {1..3} {} { part }"),
            ("{{part}}", "{part}"),
            ("{{files.list}} {files.list}", "{files.list} files.list"),
            ("{{ part }} {{part} }}", "{{ part }} {{part} }}"),
            ("{{{part}}}", "{{{part}}}"),
            ("{part", "{part"),
            ("{part.}", "{part.}"),
            ("é{part}é", "é3é"),
            ("", ""),
        ] {
            assert_eq!(plain(template, &mut words).as_deref(), Ok(rendered), "{template}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_it() {
        assert_eq!(plain("{prat}", &mut words).unwrap_err().to_string(), "nothing is called `prat` here");
    }

    #[test]
    fn a_lone_list_becomes_one_argument_a_file() {
        let arguments = |text| argument(text, &mut words).unwrap();
        assert_eq!(arguments("{files}"), ["a.csv", "b c.csv"]);
        assert_eq!(arguments("{none}"), [] as [&str; 0]);
        assert_eq!(arguments("--in={files}"), ["--in=a.csv b c.csv"]);
        assert_eq!(arguments("{odd}"), ["it's $HOME; rm -rf.csv"]);
    }

    #[test]
    fn references_say_where_they_stand() {
        let found: Vec<_> =
            names("cp {a} {b.list}").iter().map(|r| (r.name, r.attribute, r.span.start, r.span.end)).collect();
        assert_eq!(found, [("a", "", 3, 6), ("b", "list", 7, 15)]);
    }

    #[test]
    fn attributes_of_files_follow_from_their_paths() {
        let of = |paths: &[&'static str], attribute| file_values(paths, attribute).unwrap();
        assert_eq!(of(&["data/a.tar.gz"], "stem"), Values::one("a.tar"));
        assert_eq!(of(&["data/a.tar.gz"], "ext"), Values::one("gz"));
        assert_eq!(of(&["data/.hidden"], "ext"), Values::one(""));
        assert_eq!(of(&["data/x/a", "data/y/b"], "dir"), Values::one("data"));
        assert_eq!(of(&["data/a", "data/b"], "dir"), Values::one("data"));
        assert_eq!(of(&["data/a", "database/b"], "dir"), Values::one("."));
        assert_eq!(of(&["a"], "dir"), Values::one("."));
        assert_eq!(of(&["data/a", "data/b"], "name"), Values::one("a"));
        assert_eq!(of(&["data/a", "data/b"], "count"), Values::one("2"));
        assert_eq!(file_values(&["a"], "list"), None);
        assert_eq!(output_directory("clean/*.npy"), "clean");
        assert_eq!(output_directory("runs/a*/x.npy"), "runs");
        assert_eq!(output_directory("model/"), "model");
        assert_eq!(output_directory("model.bin"), ".");
    }
}
