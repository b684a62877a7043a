//! Scatter axes with their values known: counting tasks, and what each variable means for one of them.

use crate::job::InputFile;
use crate::workflow::{Axis, AxisValues, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An axis of an unfolded task set.
#[derive(Clone, Debug)]
pub struct ResolvedAxis {
    pub names: Vec<String>,
    pub values: ResolvedValues,
}

#[derive(Clone, Debug)]
pub enum ResolvedValues {
    Range {
        first: i64,
        step: i64,
        len: u32,
    },
    Rows(Vec<Vec<Value>>),
    /// One row a file.
    Files(Arc<[InputFile]>),
    /// One row a trial. The values of the other variables are not known here.
    Trials(u32),
    /// One row a batch of results, whichever come first. What is in them is not known here.
    Arrivals {
        batches: u32,
    },
    /// One row a batch of at most `by` files.
    Batches {
        files: Arc<[InputFile]>,
        by: u32,
    },
}

/// What a scatter variable stands for in one task.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound<'a> {
    Value(Value),
    File(&'a InputFile),
    /// The files of a batch, and the number of the batch counted from 1.
    Batch(&'a [InputFile], u32),
}

impl Bound<'_> {
    /// What makes two values of a variable the same, in different task sets too.
    pub fn label(&self) -> String {
        match self {
            Bound::Value(value) => value.to_string(),
            Bound::File(file) => file.path.clone(),
            Bound::Batch(_, number) => number.to_string(),
        }
    }
}

impl ResolvedAxis {
    /// `files` are the files of a [`AxisValues::Files`] axis, `results` how many tasks the source of an
    /// [`AxisValues::Arrivals`] axis has; other axes know their values themselves.
    pub fn new(axis: &Axis, files: Option<Arc<[InputFile]>>, results: u32) -> Self {
        let values = match &axis.values {
            AxisValues::Range { first, last, step } => {
                let len = if (*step > 0 && first <= last) || (*step < 0 && first >= last) {
                    (last.abs_diff(*first) / step.unsigned_abs()) + 1
                } else {
                    0
                };
                ResolvedValues::Range { first: *first, step: *step, len: u32::try_from(len).unwrap_or(u32::MAX) }
            }
            AxisValues::Rows(rows) => ResolvedValues::Rows(rows.clone()),
            AxisValues::Trials(search) => ResolvedValues::Trials(search.trials),
            AxisValues::Arrivals { by, .. } => ResolvedValues::Arrivals { batches: results.div_ceil((*by).max(1)) },
            AxisValues::Files { by, .. } => {
                let files = files.unwrap_or_default();
                match by {
                    None => ResolvedValues::Files(files),
                    Some(by) => ResolvedValues::Batches { files, by: (*by).max(1) },
                }
            }
        };
        Self { names: axis.names.clone(), values }
    }

    pub fn len(&self) -> u32 {
        match &self.values {
            ResolvedValues::Range { len, .. } => *len,
            ResolvedValues::Rows(rows) => rows.len() as u32,
            ResolvedValues::Trials(trials) => *trials,
            ResolvedValues::Files(files) => files.len() as u32,
            ResolvedValues::Arrivals { batches } => *batches,
            ResolvedValues::Batches { files, by } => files.len().div_ceil(*by as usize) as u32,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the axis' variable number `column` in row `row`.
    pub fn bound(&self, column: usize, row: u32) -> Bound<'_> {
        match &self.values {
            ResolvedValues::Range { first, step, .. } => Bound::Value(Value::Integer(first + step * i64::from(row))),
            ResolvedValues::Rows(rows) => Bound::Value(rows[row as usize][column].clone()),
            ResolvedValues::Trials(_) if column == 0 => Bound::Value(Value::Integer(i64::from(row) + 1)),
            ResolvedValues::Trials(_) => Bound::Value(Value::Text(String::new())),
            ResolvedValues::Files(files) => Bound::File(&files[row as usize]),
            ResolvedValues::Arrivals { .. } => Bound::Batch(&[], row + 1),
            ResolvedValues::Batches { files, by } => {
                let from = row as usize * *by as usize;
                let to = (from + *by as usize).min(files.len());
                Bound::Batch(&files[from..to], row + 1)
            }
        }
    }

    /// The row of a range that has this label; ranges need no table to be searched.
    fn range_row(&self, label: &str) -> Option<u32> {
        let ResolvedValues::Range { first, step, len } = self.values else { return None };
        let offset = label.parse::<i64>().ok()?.checked_sub(first)?;
        if offset % step != 0 {
            return None;
        }
        u32::try_from(offset / step).ok().filter(|row| *row < len)
    }
}

/// How many tasks a combination of axes makes. `None` when it is more than can be numbered.
pub(super) fn combinations(axes: &[ResolvedAxis]) -> Option<u32> {
    axes.iter().try_fold(1u32, |product, axis| product.checked_mul(axis.len()))
}

/// The row of each axis for task number `index`; the last axis advances fastest.
pub(super) fn rows(axes: &[ResolvedAxis], index: u32) -> Vec<u32> {
    let mut rest = index;
    let mut rows = vec![0; axes.len()];
    for (row, axis) in rows.iter_mut().zip(axes).rev() {
        *row = rest % axis.len();
        rest /= axis.len();
    }
    rows
}

/// The value of a variable in task number `index`.
pub(super) fn variable<'a>(axes: &'a [ResolvedAxis], index: u32, name: &str) -> Option<Bound<'a>> {
    let rows = rows(axes, index);
    axes.iter().zip(rows).find_map(|(axis, row)| {
        let column = axis.names.iter().position(|candidate| candidate == name)?;
        // A parameter of a search has a value only where it is active in a trial that was asked for.
        let known = column == 0 || !matches!(axis.values, ResolvedValues::Trials(_));
        known.then(|| axis.bound(column, row))
    })
}

/// How the tasks of a consumer pick tasks of one producer: axes match by the names they share.
#[derive(Debug)]
pub(super) struct Link {
    axes: Vec<LinkAxis>,
}

#[derive(Debug)]
struct LinkAxis {
    len: u32,
    /// Names that both sides have; empty: every row of the producer.
    shared: Vec<String>,
    /// Rows of the producer by the labels of the shared names. Not filled for a range.
    rows: FxHashMap<String, Vec<u32>>,
    range: Option<ResolvedAxis>,
}

impl Link {
    pub(super) fn new(consumer: &[ResolvedAxis], producer: &[ResolvedAxis]) -> Self {
        let has = |name: &String| consumer.iter().any(|axis| axis.names.contains(name));
        let axes = producer
            .iter()
            .map(|axis| {
                let shared: Vec<String> = axis.names.iter().filter(|name| has(name)).cloned().collect();
                let range = matches!(axis.values, ResolvedValues::Range { .. }) && !shared.is_empty();
                let mut rows: FxHashMap<String, Vec<u32>> = FxHashMap::default();
                if !shared.is_empty() && !range {
                    for row in 0..axis.len() {
                        let labels = shared.iter().map(|name| {
                            let column = axis.names.iter().position(|other| other == name);
                            axis.bound(column.expect("shared names are names of the axis"), row).label()
                        });
                        rows.entry(join(labels)).or_default().push(row);
                    }
                }
                LinkAxis { len: axis.len(), shared, rows, range: range.then(|| axis.clone()) }
            })
            .collect();
        Self { axes }
    }

    /// True when nothing is shared: every consumer takes all of the producer.
    pub(super) fn is_everything(&self) -> bool {
        self.axes.iter().all(|axis| axis.shared.is_empty())
    }

    /// The rows of each producer axis that task `index` of the consumer takes.
    pub(super) fn select(&self, consumer: &[ResolvedAxis], index: u32) -> Vec<Rows> {
        self.axes
            .iter()
            .map(|axis| {
                if axis.shared.is_empty() {
                    return Rows::All(axis.len);
                }
                let labels = axis
                    .shared
                    .iter()
                    .map(|name| variable(consumer, index, name).map(|bound| bound.label()).unwrap_or_default());
                let label = join(labels);
                match &axis.range {
                    Some(range) => Rows::Some(range.range_row(&label).into_iter().collect()),
                    None => Rows::Some(axis.rows.get(&label).cloned().unwrap_or_default()),
                }
            })
            .collect()
    }
}

fn join(labels: impl Iterator<Item = String>) -> String {
    labels.collect::<Vec<_>>().join("\u{1f}")
}

/// Rows of one axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rows {
    All(u32),
    Some(Vec<u32>),
}

impl Rows {
    fn len(&self) -> u32 {
        match self {
            Rows::All(len) => *len,
            Rows::Some(rows) => rows.len() as u32,
        }
    }

    fn get(&self, position: u32) -> u32 {
        match self {
            Rows::All(_) => position,
            Rows::Some(rows) => rows[position as usize],
        }
    }
}

/// The task numbers of the producer that a selection stands for, in order.
pub(super) fn selected(producer: &[ResolvedAxis], selection: &[Rows]) -> Vec<u32> {
    let count: u32 = selection.iter().map(Rows::len).product();
    let mut found = Vec::with_capacity(count as usize);
    for number in 0..count {
        let mut rest = number;
        let mut index = 0;
        let mut stride = 1;
        for (axis, rows) in producer.iter().zip(selection).rev() {
            index += rows.get(rest % rows.len()) * stride;
            rest /= rows.len();
            stride *= axis.len();
        }
        found.push(index);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, first: i64, last: i64) -> ResolvedAxis {
        let values = AxisValues::Range { first, last, step: 1 };
        ResolvedAxis::new(&Axis { names: vec![name.into()], values }, None, 0)
    }

    fn rows_axis(names: &[&str], rows: &[&[&str]]) -> ResolvedAxis {
        let values = rows.iter().map(|row| row.iter().map(|text| Value::Text((*text).into())).collect()).collect();
        let names = names.iter().map(|name| (*name).into()).collect();
        ResolvedAxis::new(&Axis { names, values: AxisValues::Rows(values) }, None, 0)
    }

    fn picks(consumer: &[ResolvedAxis], producer: &[ResolvedAxis], index: u32) -> Vec<u32> {
        let link = Link::new(consumer, producer);
        selected(producer, &link.select(consumer, index))
    }

    #[test]
    fn the_last_axis_advances_fastest() {
        let axes = [range("a", 1, 2), range("b", 1, 3)];
        assert_eq!(combinations(&axes), Some(6));
        assert_eq!(rows(&axes, 4), [1, 1]);
        assert_eq!(variable(&axes, 4, "b"), Some(Bound::Value(Value::Integer(2))));
    }

    #[test]
    fn shared_names_select_and_others_are_gathered() {
        let producer = [range("part", 1, 3), range("seed", 1, 2)];
        assert_eq!(picks(&[range("part", 1, 3)], &producer, 1), [2, 3]);
        assert_eq!(picks(&[], &producer, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(picks(&[range("seed", 1, 2)], &producer, 0), [0, 2, 4]);
    }

    #[test]
    fn a_consumer_with_more_axes_repeats_its_producer() {
        let consumer = [range("part", 1, 2), range("fold", 1, 5)];
        assert_eq!(picks(&consumer, &[range("part", 1, 2)], 7), [1]);
    }

    #[test]
    fn values_match_by_what_they_are_not_by_position() {
        let consumer = [rows_axis(&["model"], &[&["vgg"], &["unet"]])];
        let producer = [rows_axis(&["model", "size"], &[&["unet", "s"], &["vgg", "s"], &["unet", "l"]])];
        assert_eq!(picks(&consumer, &producer, 0), [1]);
        assert_eq!(picks(&consumer, &producer, 1), [0, 2]);
        assert_eq!(picks(&[range("part", 2, 3)], &[range("part", 1, 3)], 0), [1]);
    }
}
