//! What the masks are worth: how they overlap with those that people drew, and pictures of both.

use super::pairs::{Pairs, TEST};
use crate::arrays::Arrays;
use crate::charts::{self, Line};
use crate::failure::{Failure, read_json, write_json, write_whole};
use crate::learning::Epoch;
use crate::metrics::{Overlap, overlap};
use crate::page::Page;
use crate::pictures::Picture;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Evaluate {
    /// Files of pairs, for what was held out
    #[arg(required = true)]
    pairs: Vec<PathBuf>,
    /// The masks that the network drew
    #[arg(long)]
    drawn: PathBuf,
    /// What each epoch came to
    #[arg(long)]
    history: PathBuf,
    /// The folder for `report.html`, `metrics.json`, `dice.svg` and `loss.svg`
    #[arg(long)]
    out: PathBuf,
}

/// How many X-rays the page shows: the worst of them and the best.
const SHOWN: usize = 4;

/// Writes the numbers, the charts and the page.
pub fn evaluate(options: &Evaluate) -> Result<(), Failure> {
    let pairs = Pairs::load(&options.pairs)?;
    let epochs: Vec<Epoch> = read_json(&options.history)?;
    let arrays = Arrays::load(&options.drawn)?;
    let wrong = |what: String| Failure::data(&options.drawn, what);
    let (_, drawn) = arrays.bytes("masks").map_err(wrong)?;
    let names: Vec<&str> = arrays.texts.get("names").map(|names| names.lines().collect()).unwrap_or_default();
    let held_out = pairs.of(&[TEST]);
    let size = pairs.side * pairs.side;
    if drawn.len() != held_out.len() * size || held_out.iter().zip(&names).any(|(at, name)| pairs.names[*at] != *name) {
        return Err(wrong("its masks are not those of the X-rays that were held out".into()));
    }
    let set = |mask: &[u8]| mask.iter().map(|value| *value > 0).collect::<Vec<bool>>();
    let mut judged: Vec<(Overlap, usize, &[u8])> = held_out
        .iter()
        .zip(drawn.chunks(size))
        .map(|(at, drawn)| (overlap(&set(pairs.mask(*at)), &set(drawn)), *at, drawn))
        .collect();
    judged.sort_by(|one, other| one.0.dice.total_cmp(&other.0.dice));
    let count = judged.len().max(1) as f64;
    let mean = |value: fn(&Overlap) -> f64| judged.iter().map(|(overlap, _, _)| value(overlap)).sum::<f64>() / count;
    let (dice, iou) = (mean(|overlap| overlap.dice), mean(|overlap| overlap.iou));
    let of = |value: fn(&Epoch) -> f64| epochs.iter().map(value).collect();
    let dice_chart =
        charts::lines("Dice while learning", "epoch", &[Line { name: "learnt from", values: of(|epoch| epoch.score) }]);
    let loss_chart = charts::lines(
        "Loss while learning",
        "epoch",
        &[
            Line { name: "with batch averages", values: of(|epoch| epoch.training_loss) },
            Line { name: "after the epoch", values: of(|epoch| epoch.loss) },
        ],
    );
    write_whole(&options.out.join("dice.svg"), dice_chart.as_bytes())?;
    write_whole(&options.out.join("loss.svg"), loss_chart.as_bytes())?;
    let each: Vec<serde_json::Value> = judged
        .iter()
        .map(
            |(overlap, at, _)| serde_json::json!({"image": pairs.names[*at], "dice": overlap.dice, "iou": overlap.iou}),
        )
        .collect();
    let metrics = serde_json::json!({"dice": dice, "iou": iou, "held_out": judged.len(), "images": each});
    write_json(&options.out.join("metrics.json"), &metrics)?;

    let mut page = Page::new("Lungs in X-rays of the chest");
    page.text("UNet learnt to draw the outline of lungs. These X-rays were held out: it has not seen them before.");
    let worst = judged.first().map_or(0.0, |(overlap, _, _)| overlap.dice);
    page.figures(&[
        ("mean Dice", format!("{dice:.4}")),
        ("mean IoU", format!("{iou:.4}")),
        ("worst Dice", format!("{worst:.4}")),
        ("X-rays held out", judged.len().to_string()),
    ]);
    let show = |page: &mut Page, heading: &str, some: &[(Overlap, usize, &[u8])]| {
        page.heading(heading);
        page.text("Each X-ray, then in colour: green where network and people agree, red what only the network drew, blue what only people drew.");
        let mut pictures = Vec::new();
        for (overlap, at, drawn) in some {
            let seen = Picture::from_bytes(1, pairs.side, pairs.side, pairs.picture(*at));
            let painted = painted(&seen, pairs.mask(*at), drawn);
            pictures.push((seen, pairs.names[*at].clone()));
            pictures.push((painted, format!("Dice {:.4}, IoU {:.4}", overlap.dice, overlap.iou)));
        }
        page.pictures(&pictures);
    };
    show(&mut page, "The worst masks", &judged[..judged.len().min(SHOWN)]);
    show(&mut page, "The best masks", &judged[judged.len().saturating_sub(SHOWN).max(judged.len().min(SHOWN))..]);
    page.heading("How it learnt");
    page.charts(&[dice_chart, loss_chart]);
    page.heading("All X-rays that were held out");
    let rows: Vec<Vec<String>> = judged
        .iter()
        .map(|(overlap, at, _)| {
            vec![pairs.names[*at].clone(), format!("{:.4}", overlap.dice), format!("{:.4}", overlap.iou)]
        })
        .collect();
    page.table(&["X-ray", "Dice", "IoU"], &rows);
    write_whole(&options.out.join("report.html"), page.html().as_bytes())
}

/// The X-ray with both masks in colour.
fn painted(seen: &Picture, truth: &[u8], drawn: &[u8]) -> Picture {
    Picture::from_fn(3, seen.height, seen.width, |channel, row, column| {
        let at = row * seen.width + column;
        let colour = match (truth[at] > 0, drawn[at] > 0) {
            (true, true) => [0.1, 0.75, 0.3],
            (false, true) => [0.95, 0.15, 0.1],
            (true, false) => [0.15, 0.35, 1.0],
            (false, false) => return seen.at(0, row, column),
        };
        0.55 * seen.at(0, row, column) + 0.45 * colour[channel]
    })
}
