//! What the classifier is worth: numbers, charts and a page, from what it said and how it learnt.

use super::classes::CLASSES;
use super::classifier::largest;
use crate::charts::{self, Line};
use crate::failure::{Failure, read_json, read_text, write_json, write_whole};
use crate::learning::Epoch;
use crate::metrics::Confusion;
use crate::page::Page;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Evaluate {
    /// What the classifier said
    #[arg(long)]
    predictions: PathBuf,
    /// What each epoch came to
    #[arg(long)]
    history: PathBuf,
    /// The folder for `report.html`, `metrics.json`, `confusion.svg`, `accuracy.svg` and `loss.svg`
    #[arg(long)]
    out: PathBuf,
}

/// Writes the numbers, the charts and the page.
pub fn evaluate(options: &Evaluate) -> Result<(), Failure> {
    let epochs: Vec<Epoch> = read_json(&options.history)?;
    let confusion = confusion_of(&options.predictions)?;
    let of = |value: fn(&Epoch) -> f64| epochs.iter().map(value).collect();
    let confusion_chart = charts::confusion("Galaxies held out", &confusion);
    let accuracy = charts::lines("Accuracy", "epoch", &[Line { name: "validation", values: of(|epoch| epoch.score) }]);
    let loss = [
        Line { name: "training", values: of(|epoch| epoch.training_loss) },
        Line { name: "validation", values: of(|epoch| epoch.loss) },
    ];
    let loss = charts::lines("Loss", "epoch", &loss);
    for (name, chart) in [("confusion.svg", &confusion_chart), ("accuracy.svg", &accuracy), ("loss.svg", &loss)] {
        write_whole(&options.out.join(name), chart.as_bytes())?;
    }
    let metrics = serde_json::json!({
        "accuracy": confusion.accuracy(),
        "held_out": confusion.total(),
        "classes": CLASSES.iter().enumerate().map(|(class, name)| serde_json::json!({
            "class": name, "precision": confusion.precision(class), "recall": confusion.recall(class), "f1": confusion.f1(class),
        })).collect::<Vec<_>>(),
        "confusion": confusion.counts,
    });
    write_json(&options.out.join("metrics.json"), &metrics)?;
    let mut page = Page::new("Galaxies in five classes");
    page.text("VGG-16 learnt from pictures of galaxies. These were held out: it has not seen them before.");
    page.figures(&[
        ("accuracy", format!("{:.1} %", 100.0 * confusion.accuracy())),
        ("galaxies held out", confusion.total().to_string()),
        ("epochs", epochs.len().to_string()),
    ]);
    page.heading("What was taken for what");
    page.charts(&[confusion_chart]);
    let rows: Vec<Vec<String>> = CLASSES
        .iter()
        .enumerate()
        .map(|(class, name)| {
            let part = |value: f64| format!("{:.1} %", 100.0 * value);
            let count = confusion.counts[class].iter().sum::<usize>().to_string();
            vec![
                name.to_string(),
                count,
                part(confusion.precision(class)),
                part(confusion.recall(class)),
                part(confusion.f1(class)),
            ]
        })
        .collect();
    page.table(&["class", "galaxies", "precision", "recall", "F1"], &rows);
    page.heading("How it learnt");
    page.charts(&[accuracy, loss]);
    write_whole(&options.out.join("report.html"), page.html().as_bytes())
}

fn confusion_of(path: &Path) -> Result<Confusion, Failure> {
    let mut confusion = Confusion::new(&CLASSES);
    for line in read_text(path)?.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let truth = cells.get(1).and_then(|cell| CLASSES.iter().position(|name| name == cell));
        let chances: Vec<f32> = cells.iter().skip(2).filter_map(|cell| cell.parse().ok()).collect();
        match truth {
            Some(truth) if chances.len() == CLASSES.len() => confusion.add(truth, largest(&chances)),
            _ => return Err(Failure::data(path, format!("no prediction: {line}"))),
        }
    }
    Ok(confusion)
}
