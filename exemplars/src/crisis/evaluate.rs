//! The page about the two networks and their fusion, on messages that none of them has seen.

use super::fusion::Weights;
use super::tweets::CLASSES;
use crate::charts::{Line, confusion, lines};
use crate::failure::{Failure, read_json, read_text, write_json, write_whole};
use crate::learning::Epoch;
use crate::metrics::Confusion;
use crate::page::Page;
use crate::pictures::Picture;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Evaluate {
    /// The table of the fusion
    #[arg(long)]
    fused: PathBuf,
    /// Its weights
    #[arg(long)]
    weights: PathBuf,
    /// What each epoch came to, for texts
    #[arg(long)]
    text_history: PathBuf,
    /// What each epoch came to, for pictures
    #[arg(long)]
    image_history: PathBuf,
    /// The folder `data_image`, of which some pictures are shown
    #[arg(long)]
    images: Option<PathBuf>,
    /// The folder to write to
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Metrics {
    held_out: usize,
    text_accuracy: f64,
    image_accuracy: f64,
    fused_accuracy: f64,
    fused_f1: f64,
    weights: Weights,
}

struct Row {
    message: String,
    picture: String,
    informative: bool,
    chances: [f64; 3],
}

const JUDGES: [&str; 3] = ["text alone (BiLSTM)", "picture alone (ResNet-50)", "both (late fusion)"];

pub(super) fn evaluate(options: &Evaluate) -> Result<(), Failure> {
    let rows = held_out(&options.fused)?;
    let mut matrices: Vec<Confusion> =
        JUDGES.iter().map(|_| Confusion::new(&["not informative", "informative"])).collect();
    for row in &rows {
        for (matrix, chance) in matrices.iter_mut().zip(row.chances) {
            matrix.add(usize::from(row.informative), usize::from(chance > 0.5));
        }
    }
    let weights: Weights = read_json(&options.weights)?;
    let accuracy = |judge: usize| matrices[judge].accuracy();
    let metrics = Metrics {
        held_out: rows.len(),
        text_accuracy: accuracy(0),
        image_accuracy: accuracy(1),
        fused_accuracy: accuracy(2),
        fused_f1: matrices[2].f1(1),
        weights,
    };
    write_json(&options.out.join("metrics.json"), &metrics)?;
    let mut page = Page::new("Crisis: which messages inform");
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    page.figures(&[
        ("right by the text alone", percent(accuracy(0))),
        ("right by the picture alone", percent(accuracy(1))),
        ("right by both", percent(accuracy(2))),
        ("messages that were held out", rows.len().to_string()),
    ]);
    page.text(&format!(
        "Late fusion weighs the evidence of the text by {:.2} and that of the picture by {:.2}; the weights come from the \
         messages for judging, not from those that are held out.",
        weights.text, weights.image
    ));
    let table: Vec<Vec<String>> = JUDGES
        .iter()
        .zip(&matrices)
        .map(|(judge, matrix)| {
            let numbers = [matrix.accuracy(), matrix.precision(1), matrix.recall(1), matrix.f1(1)];
            std::iter::once((*judge).to_owned()).chain(numbers.map(percent)).collect()
        })
        .collect();
    page.table(&["", "accuracy", "precision", "recall", "F1"], &table);
    page.heading("Who took what for what");
    let charts: Vec<String> = JUDGES.iter().zip(&matrices).map(|(judge, matrix)| confusion(judge, matrix)).collect();
    write_whole(&options.out.join("confusion.svg"), charts[2].as_bytes())?;
    page.charts(&charts);
    page.heading("Learning");
    page.charts(&[history("Texts", &options.text_history)?, history("Pictures", &options.image_history)?]);
    if let Some(folder) = &options.images {
        show_mistakes(&mut page, &rows, folder);
    }
    write_whole(&options.out.join("report.html"), page.html().as_bytes())
}

fn held_out(path: &Path) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (number, line) in read_text(path)?.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [message, picture, split, class, chances @ ..] = cells.as_slice() else {
            return Err(Failure::data(path, format!("line {} is cut off", number + 1)));
        };
        let chances: Vec<f64> = chances.iter().filter_map(|chance| chance.parse().ok()).collect();
        let Ok(chances) = <[f64; 3]>::try_from(chances) else {
            return Err(Failure::data(path, format!("line {}: three chances were expected", number + 1)));
        };
        if *split == "test" {
            let (message, picture) = ((*message).to_owned(), (*picture).to_owned());
            rows.push(Row { message, picture, informative: *class == CLASSES[1], chances });
        }
    }
    Ok(rows)
}

fn history(title: &str, path: &Path) -> Result<String, Failure> {
    let epochs: Vec<Epoch> = read_json(path)?;
    let of = |value: fn(&Epoch) -> f64| epochs.iter().map(value).collect();
    Ok(lines(
        title,
        "epoch",
        &[
            Line { name: "loss while learning", values: of(|epoch| epoch.training_loss) },
            Line { name: "loss when judged", values: of(|epoch| epoch.loss) },
            Line { name: "accuracy when judged", values: of(|epoch| epoch.score) },
        ],
    ))
}

/// Mistakes teach more than hits: a few of the surest.
fn show_mistakes(page: &mut Page, rows: &[Row], folder: &Path) {
    let mut wrong: Vec<&Row> = rows.iter().filter(|row| (row.chances[2] > 0.5) != row.informative).collect();
    wrong.sort_by(|one, other| (other.chances[2] - 0.5).abs().total_cmp(&(one.chances[2] - 0.5).abs()));
    let shown: Vec<(Picture, String)> = wrong
        .iter()
        .filter_map(|row| {
            let path = find(folder, &format!("{}.jpg", row.picture))?;
            let what = if row.informative { "informative" } else { "not informative" };
            let said = [row.chances[0], row.chances[1]].map(|chance| format!("{:.0} %", 100.0 * chance));
            let below = format!("message {}: {what}; text {}, picture {}", row.message, said[0], said[1]);
            Some((Picture::read(&path, 3).ok()?, below))
        })
        .take(6)
        .collect();
    if !shown.is_empty() {
        page.heading("The surest mistakes");
        page.text("With the chance of being informative that text and picture were given.");
        page.pictures(&shown);
    }
}

/// Pictures lie two folders deep: event and day.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let events = inside(folder);
    events.iter().flat_map(|event| inside(event)).map(|day| day.join(name)).find(|path| path.exists())
}
