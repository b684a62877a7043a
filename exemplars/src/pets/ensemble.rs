//! What several networks say together: the mean of their chances, on pictures that none has seen.

use super::CLASSES;
use crate::charts::{Line, confusion, lines};
use crate::failure::{Failure, read_text, write_json, write_whole};
use crate::metrics::Confusion;
use crate::page::Page;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Ensemble {
    /// What each network says
    #[arg(required = true)]
    said: Vec<PathBuf>,
    /// The folder to write to
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Metrics {
    held_out: usize,
    members: Vec<f64>,
    accuracy: f64,
}

struct Row {
    name: String,
    class: usize,
    chance: f64,
}

pub(super) fn ensemble(options: &Ensemble) -> Result<(), Failure> {
    let mut members: Vec<Vec<Row>> = Vec::new();
    for path in &options.said {
        let rows = held_out(path)?;
        if members.first().is_some_and(|first| !first.iter().map(|row| &row.name).eq(rows.iter().map(|row| &row.name)))
        {
            return Err(Failure::data(path, "it is about other pictures than the first"));
        }
        members.push(rows);
    }
    let judged = |chance: &dyn Fn(usize) -> f64| {
        let mut matrix = Confusion::new(&CLASSES);
        for (at, row) in members[0].iter().enumerate() {
            matrix.add(row.class, usize::from(chance(at) > 0.5));
        }
        matrix
    };
    let single: Vec<f64> = members.iter().map(|rows| judged(&|at| rows[at].chance).accuracy()).collect();
    let mean =
        |at: usize, count: usize| members[..count].iter().map(|rows| rows[at].chance).sum::<f64>() / count as f64;
    let grown: Vec<f64> = (1..=members.len()).map(|count| judged(&|at| mean(at, count)).accuracy()).collect();
    let all = judged(&|at| mean(at, members.len()));
    let metrics = Metrics { held_out: all.total(), members: single.clone(), accuracy: all.accuracy() };
    write_json(&options.out.join("metrics.json"), &metrics)?;
    let mut page = Page::new("Cats and dogs: one network, and many");
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let usual = single.iter().sum::<f64>() / single.len() as f64;
    page.figures(&[
        ("right, all together", percent(all.accuracy())),
        ("right, one in the mean", percent(usual)),
        ("networks", members.len().to_string()),
        ("pictures that were held out", all.total().to_string()),
    ]);
    page.charts(&[
        confusion("All together", &all),
        lines(
            "Accuracy",
            "networks",
            &[Line { name: "each alone", values: single }, Line { name: "the first ones together", values: grown }],
        ),
    ]);
    write_whole(&options.out.join("report.html"), page.html().as_bytes())
}

fn held_out(path: &Path) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (number, line) in read_text(path)?.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [name, split, class, chance] = cells.as_slice() else {
            return Err(Failure::data(path, format!("line {}: four cells were expected", number + 1)));
        };
        let class = CLASSES.iter().position(|known| known == class);
        let (Some(class), Ok(chance)) = (class, chance.parse()) else {
            return Err(Failure::data(path, format!("line {}: a class and a chance were expected", number + 1)));
        };
        if *split == "test" {
            rows.push(Row { name: (*name).to_owned(), class, chance });
        }
    }
    if rows.is_empty() {
        return Err(Failure::data(path, "it says nothing of pictures that were held out"));
    }
    Ok(rows)
}
