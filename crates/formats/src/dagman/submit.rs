//! A submit description as statements, with `if`, `include` and values over several lines; evaluated one by one.

use super::codes::{CONDITION, LINE, NO_FILE, TOO_MUCH};
use super::lines::{Lines, word};
use super::macros::Macros;
use super::report::{Place, Report};
use super::{Surroundings, paths};
use tulpar_core::diagnostic::Diagnostic;

const DEEPEST: usize = 16;

/// What `queue` finds: the macros as they are there, and the statement itself.
pub(super) struct Queued {
    pub(super) macros: Macros,
    /// What follows `queue`, with the lines of a list in parentheses.
    pub(super) statement: String,
    pub(super) place: Place,
}

pub(super) struct Description<'a> {
    pub(super) surroundings: &'a dyn Surroundings,
    pub(super) report: &'a mut Report,
    pub(super) macros: Macros,
    pub(super) queued: Vec<Queued>,
    /// Attributes of the job, `+Name` and `MY.Name`.
    pub(super) attributes: Vec<(String, Place)>,
    pub(super) folder: &'a str,
}

impl Description<'_> {
    pub(super) fn read(&mut self, text: &str, place: &Place, depth: usize) {
        let mut lines = Lines::inside(text, place);
        // Of each open `if`: whether its part is taken, and whether one was taken already.
        let mut open: Vec<(bool, bool)> = Vec::new();
        while let Some(line) = lines.next() {
            let (first, rest) = word(&line.text);
            let keyword = first.to_ascii_lowercase();
            let assigned = rest.starts_with('=');
            match keyword.as_str() {
                "if" if !assigned => {
                    let outer = open.iter().all(|(taken, _)| *taken);
                    let taken = outer && self.holds(rest, &line.place);
                    open.push((taken, taken || !outer));
                    continue;
                }
                "elif" | "else" if !assigned => {
                    let outer = open.iter().rev().skip(1).all(|(taken, _)| *taken);
                    let Some((_, before)) = open.last().copied() else {
                        self.report.error(&line.place, LINE, format!("`{keyword}` without `if`"));
                        continue;
                    };
                    let taken = outer && !before && (keyword == "else" || self.holds(rest, &line.place));
                    if let Some(last) = open.last_mut() {
                        *last = (taken, before || taken);
                    }
                    continue;
                }
                "endif" if !assigned => {
                    if open.pop().is_none() {
                        self.report.error(&line.place, LINE, "`endif` without `if`");
                    }
                    continue;
                }
                _ => {}
            }
            if !open.iter().all(|(taken, _)| *taken) {
                continue;
            }
            match keyword.trim_start_matches('@') {
                "include" if !assigned => self.include(rest, &line.place, depth),
                "use" | "template" | "error" | "warning" if !assigned => {
                    let message = format!("`{first}` is not carried over: {rest}");
                    self.report.warning(&line.place, CONDITION, message);
                }
                "queue" if !assigned => self.queue(rest, line.place, &mut lines),
                _ => self.assignment(&line.text, &line.place, &mut lines),
            }
        }
        if !open.is_empty() {
            self.report.error(place, LINE, "an `if` has no `endif`");
        }
    }

    fn assignment(&mut self, text: &str, place: &Place, lines: &mut Lines<'_>) {
        let Some((key, value)) = text.split_once('=') else {
            let message = format!("a submit command is `name = value`, which `{text}` is not");
            return self.report.error(place, LINE, message);
        };
        let (mut key, mut value) = (key.trim(), value.trim().to_owned());
        // `name @=end` takes all lines up to `@end`.
        if let Some(name) = key.strip_suffix('@') {
            key = name.trim();
            let end = format!("@{value}");
            match lines.until(&end) {
                Some((inside, _)) => value = inside.trim_end().to_owned(),
                None => return self.report.error(place, LINE, format!("`{end}` is missing")),
            }
        }
        let small = key.to_ascii_lowercase();
        if key.starts_with('+') || small.starts_with("my.") {
            self.attributes.push((key.trim_start_matches('+').to_owned(), place.clone()));
        }
        if key.is_empty() || key.contains(char::is_whitespace) {
            return self.report.error(place, LINE, format!("`{key}` is no name of a submit command"));
        }
        self.macros.set(key, &value);
    }

    fn include(&mut self, rest: &str, place: &Place, depth: usize) {
        let (options, path) = rest.split_once(':').unwrap_or(("", rest));
        let options = options.to_ascii_lowercase();
        if options.contains("command") {
            let message = "`include command` would run a program, which reading never does";
            return self.report.error(place, CONDITION, message);
        }
        let expanded = self.macros.expand(path.trim(), self.surroundings).text;
        let path = paths::join(self.folder, &expanded);
        if depth >= DEEPEST {
            return self.report.error(place, TOO_MUCH, format!("`{path}`: files include each other without end"));
        }
        match self.surroundings.text(&path) {
            Some(text) => {
                let place = Place { file: Some(path.into()), line: 1, ..Place::default() };
                self.read(&text, &place, depth + 1);
            }
            None if options.contains("ifexist") => {}
            None => self.report.error(place, NO_FILE, format!("there is no file `{path}`")),
        }
    }

    /// A list in parentheses may go on over many lines.
    fn queue(&mut self, rest: &str, place: Place, lines: &mut Lines<'_>) {
        let mut statement = rest.trim().to_owned();
        if statement.contains('(') && !statement.contains(')') {
            statement.push('\n');
            match lines.until(")") {
                Some((inside, _)) => {
                    statement.push_str(inside);
                    statement.push(')');
                }
                None => self.report.error(&place, LINE, "the `)` of this list is missing, alone on its line"),
            }
        }
        self.queued.push(Queued { macros: self.macros.clone(), statement, place });
    }

    /// `defined name`, and what expands to a number or a truth value.
    fn holds(&mut self, condition: &str, place: &Place) -> bool {
        let condition = condition.trim();
        if let Some(rest) = condition.strip_prefix('!') {
            return !self.holds(rest, place);
        }
        let (first, rest) = word(condition);
        if first.eq_ignore_ascii_case("defined") {
            let name = rest.trim();
            let name = name.strip_prefix("$(").and_then(|name| name.strip_suffix(')')).unwrap_or(name);
            return self.macros.get(name).is_some_and(|value| !value.is_empty());
        }
        let value = self.macros.expand(condition, self.surroundings).text.trim().to_ascii_lowercase();
        match value.as_str() {
            "true" | "yes" | "t" => true,
            "false" | "no" | "f" | "" => false,
            number => match number.parse::<f64>() {
                Ok(number) => number != 0.0,
                Err(_) => {
                    let message = format!("`if {condition}` cannot be decided here; its part is left out");
                    let help = "`defined name`, numbers and `true` or `false` are understood";
                    self.report.push(place, Diagnostic::error(CONDITION, None, message).help(help));
                    false
                }
            },
        }
    }
}
