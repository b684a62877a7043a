//! Lists as Slurm writes them: indices of an array (`1-3,7,10-20:5%4`) and names of hosts (`n[1-3],gpu07`).

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Indices of array tasks as ranges; what follows `%` is only how many may run at once. `None` when it is no such list.
pub fn indices(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    let text = text.split_once('%').map_or(text, |(list, _)| list);
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once(':') {
            Some((range, step)) => (range, step.parse::<u32>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
            None => (range.parse().ok()?, range.parse().ok()?),
        };
        match step {
            1 => ranges.push(first..=last),
            step => ranges.extend((first..=last).step_by(step as usize).map(|one| one..=one)),
        }
    }
    Some(ranges)
}

/// The shortest list of these indices. They are given in ascending order.
pub fn write_indices(sorted: &[u32]) -> String {
    let mut text = String::new();
    for (first, last) in runs(sorted) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
    }
    text
}

fn runs(sorted: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    runs
}

/// Names of hosts as one list, numbers at their ends gathered in brackets.
pub fn write_hosts(names: &[String]) -> String {
    let mut groups: Vec<((&str, usize), Vec<u32>)> = Vec::new();
    let mut plain = Vec::new();
    for name in names {
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        match name[stem.len()..].parse::<u32>() {
            Ok(number) => {
                let key = (stem, name.len() - stem.len());
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, numbers)) => numbers.push(number),
                    None => groups.push((key, vec![number])),
                }
            }
            Err(_) => plain.push(name.clone()),
        }
    }
    for ((stem, width), mut numbers) in groups {
        numbers.sort_unstable();
        numbers.dedup();
        let ranges: Vec<String> = runs(&numbers)
            .into_iter()
            .map(|(first, last)| match first == last {
                true => format!("{first:0width$}"),
                false => format!("{first:0width$}-{last:0width$}"),
            })
            .collect();
        plain.push(match &numbers[..] {
            [one] => format!("{stem}{one:0width$}"),
            _ => format!("{stem}[{}]", ranges.join(",")),
        });
    }
    plain.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_read_in_every_form_that_squeue_prints() {
        assert_eq!(indices("7"), Some(vec![7..=7]));
        assert_eq!(indices("[1-3,7]"), Some(vec![1..=3, 7..=7]));
        assert_eq!(indices("13-300%3"), Some(vec![13..=300]));
        assert_eq!(indices("0-10:5"), Some(vec![0..=0, 5..=5, 10..=10]));
        assert_eq!(indices("N/A"), None);
        assert_eq!(indices("1-3,..."), None, "a list that was cut is not a list");
    }

    #[test]
    fn lists_are_written_as_short_as_they_can_be() {
        assert_eq!(write_indices(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!(write_indices(&[]), "");
        let names: Vec<String> = ["n1", "n2", "n4", "gpu07", "gpu08", "login", "n10"].map(str::to_owned).into();
        assert_eq!(write_hosts(&names), "login,n[1-2,4],gpu[07-08],n10");
    }
}
