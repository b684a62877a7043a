//! `queue` in all of its forms: how many jobs, and what differs between them.

use super::lines::word;
use super::paths;
use super::{Found, Surroundings};
use tulpar_core::workflow::Value;

/// More jobs of one node are no workflow.
pub(crate) const MOST_JOBS: u64 = 10_000_000;
const MOST_ROWS: usize = 1_000_000;

#[derive(Debug, PartialEq)]
pub(crate) enum Jobs {
    /// So many, told apart by their number alone.
    Count(u64),
    /// One for each row, with the names of its columns; the last is the number of the job.
    Rows { names: Vec<String>, rows: Vec<Vec<Value>> },
}

/// The statement has its macros in place already.
pub(crate) fn parse(statement: &str, folder: &str, surroundings: &dyn Surroundings) -> Result<Jobs, String> {
    let (mut head, mut rest) = (Vec::new(), statement.trim());
    let mut form = None;
    while !rest.is_empty() {
        // `from(` and `in(` are written too.
        let (first, after) = match rest.find(|letter: char| letter.is_whitespace() || letter == '(') {
            Some(end) if end > 0 => (&rest[..end], rest[end..].trim_start()),
            _ => word(rest),
        };
        match first.to_ascii_lowercase().as_str() {
            keyword @ ("in" | "from" | "matching") => {
                form = Some((keyword.to_owned(), after));
                break;
            }
            _ => head.push(first),
        }
        rest = after;
    }
    let head = head.join(" ");
    let mut words = head.split([' ', ',']).filter(|word| !word.is_empty()).peekable();
    let mut count = 1;
    if let Some(number) = words.peek().and_then(|word| word.parse::<u64>().ok()) {
        count = number;
        words.next();
    }
    let mut names: Vec<String> = words.map(str::to_owned).collect();
    let Some((form, list)) = form else {
        return match names.first() {
            None if count <= MOST_JOBS => Ok(Jobs::Count(count)),
            None => Err(format!("{count} jobs are more than {MOST_JOBS}")),
            Some(name) => Err(format!("`{name}` is neither a number nor a list")),
        };
    };
    if names.is_empty() {
        names.push("Item".to_owned());
    }
    let (slice, list) = match list.strip_prefix('[') {
        Some(rest) => {
            let (inside, after) = rest.split_once(']').ok_or("the `]` of the slice is missing")?;
            (Some(Slice::parse(inside)?), after.trim_start())
        }
        None => (None, list),
    };
    let mut items: Vec<String> = match form.as_str() {
        "in" => listed(list).split([',', ' ', '\t', '\n']).filter(|item| !item.is_empty()).map(str::to_owned).collect(),
        "from" => lines(list, folder, surroundings)?,
        _ => {
            let mut list = listed(list);
            let mut wanted = "any";
            for kind in ["files", "dirs", "any"] {
                list = list.trim_start();
                if let Some(rest) = list.strip_prefix(kind).filter(|rest| rest.starts_with([' ', '('])) {
                    list = listed(rest.trim_start());
                    wanted = kind;
                }
            }
            let patterns = list.split([',', ' ', '\t', '\n']).filter(|item| !item.is_empty());
            let strip = |path: String| match path.strip_prefix(&format!("{folder}/")) {
                Some(inside) if !folder.is_empty() => inside.to_owned(),
                _ => path,
            };
            // HTCondor marks folders with a slash.
            let marked = |path: String| match (surroundings.found(&path), wanted) {
                (Found::Directory, "files") | (Found::File, "dirs") => None,
                (Found::Directory, _) => Some(format!("{}/", strip(path))),
                _ => Some(strip(path)),
            };
            patterns
                .flat_map(|pattern| surroundings.matching(&paths::join(folder, pattern)))
                .filter_map(marked)
                .collect()
        }
    };
    if let Some(slice) = slice {
        let length = items.len();
        let mut number = 0;
        items.retain(|_| {
            number += 1;
            slice.holds(number - 1, length)
        });
    }
    if items.is_empty() {
        return Err("it stands for no job at all".to_owned());
    }
    let total = items.len().saturating_mul(usize::try_from(count).unwrap_or(usize::MAX));
    if total > MOST_ROWS {
        return Err(format!("{total} jobs from a list are more than {MOST_ROWS}"));
    }
    let mut rows = Vec::with_capacity(total);
    for (index, item) in items.iter().enumerate() {
        let values = columns(item, names.len());
        for step in 0..count {
            let mut row: Vec<Value> = values.iter().map(|value| Value::from_text(value)).collect();
            let number = (index as u64 * count + step) as i64;
            row.extend([Value::Integer(index as i64), Value::Integer(step as i64), Value::Integer(number)]);
            rows.push(row);
        }
    }
    names.extend(["ItemIndex", "Step", "Process"].map(str::to_owned));
    Ok(Jobs::Rows { names, rows })
}

/// `[first:end:step]` of the items, counted from 0; from the end where negative.
struct Slice {
    first: Option<i64>,
    end: Option<i64>,
    step: i64,
}

impl Slice {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':').map(|part| match part.trim() {
            "" => Ok(None),
            number => number.parse::<i64>().map(Some).map_err(|_| format!("`[{text}]` is no slice like `[1:5]`")),
        });
        let mut next = || parts.next().unwrap_or(Ok(None));
        let (first, end, step) = (next()?, next()?, next()?);
        match step.unwrap_or(1) {
            step if step > 0 => Ok(Self { first, end, step }),
            _ => Err(format!("`[{text}]` goes backwards")),
        }
    }

    fn holds(&self, number: usize, length: usize) -> bool {
        let length = length as i64;
        let from_end = |at: i64| if at < 0 { (at + length).max(0) } else { at };
        let (first, end) = (from_end(self.first.unwrap_or(0)), from_end(self.end.unwrap_or(length)));
        let number = number as i64;
        number >= first && number < end && (number - first) % self.step == 0
    }
}

/// Without the parentheses around it.
fn listed(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')).unwrap_or(text)
}

fn lines(list: &str, folder: &str, surroundings: &dyn Surroundings) -> Result<Vec<String>, String> {
    let text = match list.starts_with('(') {
        true => listed(list).to_owned(),
        false if list.trim_end().ends_with('|') => return Err("a program would have to be run for the list".to_owned()),
        false => {
            let path = paths::join(folder, list.trim().trim_matches('"'));
            surroundings.text(&path).ok_or_else(|| format!("there is no file `{path}`"))?
        }
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// One value for each name: separated by commas or spaces, the last one takes what is left.
fn columns(item: &str, count: usize) -> Vec<String> {
    if count == 1 {
        return vec![item.trim().to_owned()];
    }
    let mut rest = item.trim();
    let mut found = Vec::with_capacity(count);
    for _ in 1..count {
        let end = rest.find(|letter: char| letter == ',' || letter.is_whitespace()).unwrap_or(rest.len());
        found.push(rest[..end].to_owned());
        let after = rest[end..].trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    found.push(rest.trim().to_owned());
    found
}
