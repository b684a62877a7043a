//! The concrete paths of an output, one for each task of its set.

use crate::workflow::template::{self, Piece, Values};
use crate::workflow::{Axis, AxisValues, DataFile, FileSource, Output, Value, Workflow};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The values of an axis, where they are known.
pub(super) enum Known<'a> {
    Range { first: i64, step: i64, count: u64 },
    Rows(&'a [Vec<Value>]),
    Files { files: &'a [DataFile], by: usize },
}

impl<'a> Known<'a> {
    /// `None` while only the run will tell.
    pub(super) fn new(axis: &'a Axis, listings: Option<&'a [Vec<DataFile>]>) -> Option<Self> {
        match &axis.values {
            AxisValues::Range { first, step, .. } => {
                let count = crate::workflow::scatter::known_length(&axis.values)?;
                Some(Known::Range { first: *first, step: *step, count })
            }
            AxisValues::Rows(rows) => Some(Known::Rows(rows)),
            AxisValues::Trials(search) => Some(Known::Range { first: 1, step: 1, count: u64::from(search.trials) }),
            AxisValues::Files { source: FileSource::Data(data), by } => {
                let files = listings?.get(data.index())?;
                Some(Known::Files { files, by: by.map_or(1, |by| by.max(1) as usize) })
            }
            AxisValues::Files { .. } | AxisValues::Arrivals { .. } => None,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Known::Range { count, .. } => *count,
            Known::Rows(rows) => rows.len() as u64,
            Known::Files { files, by } => files.len().div_ceil(*by) as u64,
        }
    }

    fn write(&self, column: usize, row: u64, attribute: &str, out: &mut String) {
        match self {
            // The length was counted, so no row leads beyond the last number.
            Known::Range { first, step, .. } => {
                let _ = write!(out, "{}", first + step * row as i64);
            }
            Known::Rows(rows) => {
                let _ = write!(out, "{}", rows[row as usize][column]);
            }
            Known::Files { files, by } => {
                if attribute == "index" {
                    let _ = write!(out, "{}", row + 1);
                    return;
                }
                let from = row as usize * by;
                let paths: Vec<&str> =
                    files[from..(from + by).min(files.len())].iter().map(|file| file.path.as_str()).collect();
                match template::file_values(&paths, attribute) {
                    Some(Values::One(value)) => out.push_str(&value),
                    Some(Values::Many(values)) => out.push_str(&values.join(" ")),
                    Some(Values::Absent) | None => {}
                }
            }
        }
    }
}

enum Part<'a> {
    Text(Cow<'a, str>),
    Variable { axis: usize, column: usize, attribute: &'a str },
}

/// A path template with its parameters in place.
pub(super) struct Path<'a> {
    parts: Vec<Part<'a>>,
}

impl<'a> Path<'a> {
    /// `None` when a name in it could not be resolved, which reading has reported.
    pub(super) fn new(workflow: &Workflow, axes: &[Axis], output: &'a Output) -> Option<Self> {
        let mut parts = Vec::new();
        for piece in template::pieces(&output.path.0) {
            parts.push(match piece {
                Piece::Literal(text) => Part::Text(Cow::Borrowed(text)),
                Piece::Name(reference) => {
                    let found = axes.iter().enumerate().find_map(|(axis, candidate)| {
                        let column = candidate.names.iter().position(|name| name == reference.name)?;
                        Some(Part::Variable { axis, column, attribute: reference.attribute })
                    });
                    match found {
                        Some(part) => part,
                        None => Part::Text(Cow::Owned(workflow.params.get(reference.name)?.to_string())),
                    }
                }
            });
        }
        Some(Self { parts })
    }

    /// Whether the path differs along an axis at all.
    pub(super) fn uses(&self, axis: usize) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable { axis: used, .. } if *used == axis))
    }

    pub(super) fn write(&self, known: &[Known<'_>], number: u64, out: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Variable { axis, column, attribute } => {
                    known[*axis].write(*column, row(known, *axis, number), attribute, out)
                }
            }
        }
    }

    /// With a stand-in for every variable, where their values are not known.
    pub(super) fn outline(&self) -> String {
        let text = |part: &Part<'_>| match part {
            Part::Text(text) => text.clone().into_owned(),
            Part::Variable { .. } => "x".to_owned(),
        };
        self.parts.iter().map(text).collect()
    }
}

/// The row of one axis for task number `number`; the last axis advances fastest.
fn row(known: &[Known<'_>], axis: usize, number: u64) -> u64 {
    let behind: u64 = known[axis + 1..].iter().map(Known::len).product();
    (number / behind.max(1)) % known[axis].len().max(1)
}

/// `preprocess[part=3]`
pub(super) fn task_label(name: &str, axes: &[Axis], known: &[Known<'_>], number: u64) -> String {
    if axes.is_empty() {
        return name.to_owned();
    }
    let mut label = name.to_owned();
    let mut separator = '[';
    for (position, axis) in axes.iter().enumerate() {
        for (column, variable) in axis.names.iter().enumerate() {
            label.push(separator);
            separator = ',';
            label.push_str(variable);
            label.push('=');
            let attribute = if matches!(known[position], Known::Files { by: 2.., .. }) { "index" } else { "" };
            known[position].write(column, row(known, position, number), attribute, &mut label);
        }
    }
    label.push(']');
    label
}
