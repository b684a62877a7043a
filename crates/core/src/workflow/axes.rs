//! Whether the scatters of a consumer and its producer fit: axes match by name, so every value that the
//! consumer asks for must be one that the producer has.

use super::reader::Reader;
use super::{Axis, AxisValues, FileSource, Span, Task, Value};
use crate::diagnostic::{AXIS_MISMATCH, BAD_VALUE, Diagnostic, SCATTER};
use crate::ids::SetId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Places of the variables of scattered tasks.
pub(super) type AxisPlaces = FxHashMap<SetId, Vec<Span>>;

pub(super) fn check(reader: &mut Reader, tasks: &[Task], places: &AxisPlaces) {
    for (number, task) in tasks.iter().enumerate() {
        if task.scatter.is_empty() {
            continue;
        }
        let place = |axis: usize| {
            places.get(&SetId::from(number)).and_then(|places| places.get(axis)).copied().unwrap_or(task.span)
        };
        for input in &task.inputs {
            if let FileSource::Output { task: producer, .. } = input.source {
                check_pair(reader, task, &tasks[producer.index()], &input.name, &place);
            }
        }
        for (position, axis) in task.scatter.iter().enumerate() {
            let producer = match axis.values {
                AxisValues::Files { source: FileSource::Output { task, .. }, .. } => task,
                AxisValues::Arrivals { task, .. } => {
                    check_arrivals(reader, tasks, SetId::from(number), task, place(position));
                    let earlier = |axis: &Axis| matches!(axis.values, AxisValues::Arrivals { .. });
                    if tasks[number].scatter[..position].iter().any(earlier) {
                        let message = format!("`{}` takes results as they come twice", tasks[number].name);
                        let help = "a task can have one variable `as ready`: make two tasks of it";
                        reader.report(Diagnostic::error(SCATTER, place(position), message).help(help));
                    }
                    task
                }
                _ => continue,
            };
            let producer = &tasks[producer.index()];
            if let Some(name) = shared(task, producer).next() {
                reader.report(
                    Diagnostic::error(
                        AXIS_MISMATCH,
                        place(position),
                        format!(
                            "`{}` runs over files of `{}`, which runs over `{name}` too",
                            axis.names[0], producer.name
                        ),
                    )
                    .help(format!("remove `{name}` from this `for:`; the files of every `{name}` are taken then"))
                    .help(format!(
                        "or let each task take all files of its own `{name}`: name them under `in:` instead"
                    )),
                );
            }
        }
    }
}

/// Results that are taken as they come: how many there will be must be known, and nothing else may be waited for.
fn check_arrivals(reader: &mut Reader, tasks: &[Task], consumer: SetId, source: SetId, place: Span) {
    let (task, producer) = (&tasks[consumer.index()], &tasks[source.index()]);
    let unknown = |axis: &&Axis| matches!(axis.values, AxisValues::Files { source: FileSource::Output { .. }, .. });
    if let Some(axis) = producer.scatter.iter().find(unknown) {
        reader.report(
            Diagnostic::error(
                SCATTER,
                place,
                format!(
                    "`{}` cannot take the results of `{}` as they come: how many there will be is not known",
                    task.name, producer.name
                ),
            )
            .related(producer.span, format!("its `{}` runs over files that the run makes", axis.names[0]))
            .help("leave `as ready` out: the batches are made when all of them are there"),
        );
    }
    let again = task.inputs.iter().find(|input| input.source.awaited() == Some(source));
    if again.is_some() || task.after.contains(&source) {
        let what = again.map_or_else(|| "is `after` it".to_owned(), |input| format!("needs all of `{}`", input.name));
        reader.report(
            Diagnostic::error(
                SCATTER,
                again.map_or(place, |input| input.span),
                format!("`{}` takes results of `{}` as they come, and {what}", task.name, producer.name),
            )
            .help("remove one of the two: either it waits for all of them, or for some at a time"),
        );
    }
}

/// Whether a variable can say which iteration a task belongs to: all its values are whole numbers from 0.
pub(super) fn check_iteration(reader: &mut Reader, task: &str, axes: &[Axis], name: &str, place: Span) {
    let number = |value: i64| u32::try_from(value).is_ok();
    let Some(axis) = axes.iter().find(|axis| axis.names.iter().any(|other| other == name)) else {
        let known: Vec<&str> = axes.iter().flat_map(|axis| axis.names.iter()).map(String::as_str).collect();
        let mut diagnostic = Diagnostic::error(
            BAD_VALUE,
            place,
            format!("`{task}` has no variable `{name}` that could be its iteration"),
        )
        .suggest(name, known.iter().copied());
        diagnostic = match reader.params.contains_key(name) {
            true => diagnostic.help(format!("it is a parameter: write `\"{{{name}}}\"`")),
            false => diagnostic.help("write a whole number from 0, or a variable of `for:`"),
        };
        reader.report(diagnostic);
        return;
    };
    let wrong = match &axis.values {
        AxisValues::Range { first, last, .. } => {
            [*first, *last].into_iter().find(|value| !number(*value)).map(|value| value.to_string())
        }
        AxisValues::Rows(rows) => {
            let column = axis.names.iter().position(|other| other == name).unwrap_or(0);
            let values = rows.iter().filter_map(|row| row.get(column));
            let bad = |value: &&Value| !matches!(value, Value::Integer(value) if number(*value));
            values.into_iter().find(bad).map(ToString::to_string)
        }
        AxisValues::Files { .. } | AxisValues::Arrivals { .. } => Some("a file".to_owned()),
        AxisValues::Trials(_) => None,
    };
    if let Some(wrong) = wrong {
        reader.report(
            Diagnostic::error(
                BAD_VALUE,
                place,
                format!("`{name}` cannot say the iteration: one of its values is `{wrong}`"),
            )
            .help("iterations are whole numbers from 0"),
        );
    }
}

/// Names that both tasks scatter over.
fn shared<'a>(consumer: &'a Task, producer: &'a Task) -> impl Iterator<Item = &'a str> {
    let theirs = |name: &str| producer.scatter.iter().any(|axis| axis.names.iter().any(|other| other == name));
    consumer.scatter.iter().flat_map(|axis| axis.names.iter()).map(String::as_str).filter(move |name| theirs(name))
}

fn check_pair(reader: &mut Reader, consumer: &Task, producer: &Task, input: &str, place: &dyn Fn(usize) -> Span) {
    for (position, ours) in consumer.scatter.iter().enumerate() {
        for name in &ours.names {
            let Some(theirs) = producer.scatter.iter().find(|axis| axis.names.contains(name)) else { continue };
            let fail = |reason: String| {
                Diagnostic::error(
                    AXIS_MISMATCH,
                    place(position),
                    format!("`{}` takes `{input}` of `{}` by `{name}`, but {reason}", consumer.name, producer.name),
                )
                .related(producer.span, "the producer is here")
            };
            match (&ours.values, &theirs.values) {
                (ours, theirs) if ours == theirs => {}
                (AxisValues::Files { .. } | AxisValues::Arrivals { .. } | AxisValues::Trials(_), _)
                | (_, AxisValues::Files { .. } | AxisValues::Arrivals { .. } | AxisValues::Trials(_)) => {
                    reader.report(
                        fail("the two do not run over the same files".to_owned())
                            .help("write the same source in both `for:`, or rename the variable to take all of them"),
                    );
                }
                _ => {
                    if let Some(missing) = first_missing(ours, theirs, name) {
                        reader.report(
                            fail(format!("there is no task for {name}={missing}")).help(
                                "give both the same values, or rename the variable here to take the results of all",
                            ),
                        );
                    }
                }
            }
        }
    }
}

/// A value of ours that theirs lacks.
fn first_missing(ours: &Axis, theirs: &Axis, name: &str) -> Option<String> {
    if let (AxisValues::Range { first, last, step }, AxisValues::Range { .. }) = (&ours.values, &theirs.values) {
        // Both ends and the second value decide for ranges, and there may be millions in between.
        let count = super::scatter::known_length(&ours.values)?;
        let real_last = first + step * (count as i64 - 1);
        debug_assert!(real_last.abs_diff(*last) < step.unsigned_abs().max(1));
        let second = first + step * i64::from(count > 1);
        return [*first, second, real_last]
            .into_iter()
            .find(|value| !in_range(&theirs.values, *value))
            .map(|value| value.to_string());
    }
    let known: Option<FxHashSet<String>> = match &theirs.values {
        AxisValues::Rows(_) => Some(labels(theirs, name).collect()),
        _ => None,
    };
    labels(ours, name).find(|label| match &known {
        Some(known) => !known.contains(label),
        None => !label.parse().is_ok_and(|value| in_range(&theirs.values, value)),
    })
}

fn in_range(values: &AxisValues, value: i64) -> bool {
    let AxisValues::Range { first, last, step } = values else { return false };
    let (low, high) = if step > &0 { (first, last) } else { (last, first) };
    *low <= value && value <= *high && value.abs_diff(*first) % step.unsigned_abs() == 0
}

fn labels(axis: &Axis, name: &str) -> Box<dyn Iterator<Item = String>> {
    match &axis.values {
        AxisValues::Range { first, step, .. } => {
            let (first, step) = (*first, *step);
            let count = super::scatter::known_length(&axis.values).unwrap_or(0) as i64;
            Box::new((0..count).map(move |number| (first + number * step).to_string()))
        }
        AxisValues::Rows(rows) => {
            let column = axis.names.iter().position(|other| other == name).unwrap_or(0);
            let labels: Vec<String> = rows.iter().filter_map(|row| row.get(column)).map(ToString::to_string).collect();
            Box::new(labels.into_iter())
        }
        AxisValues::Files { .. } | AxisValues::Arrivals { .. } | AxisValues::Trials(_) => Box::new(std::iter::empty()),
    }
}
