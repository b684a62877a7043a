//! The page about a study: how far driven simulations came, and how far plain ones of the same length.

use super::exploration::{COLUMNS, Landscape, ROWS, explored};
use super::frames::read_all;
use crate::charts::{Line, escaped, lines};
use crate::failure::{Failure, read_text, write_json, write_whole};
use crate::page::Page;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Report {
    /// Trajectories of the simulations that started from outliers
    #[arg(long, required = true, num_args = 1..)]
    driven: Vec<PathBuf>,
    /// Trajectories of the simulations that nobody restarted
    #[arg(long, required = true, num_args = 1..)]
    plain: Vec<PathBuf>,
    /// The table of the last inference
    #[arg(long)]
    latent: PathBuf,
    /// The page to write
    #[arg(long)]
    out: PathBuf,
    /// The numbers of the page, for programs
    #[arg(long)]
    json: PathBuf,
}

/// What came out.
#[derive(Debug, Serialize)]
struct Numbers {
    frames: usize,
    driven: usize,
    plain: usize,
    driven_cells: Vec<usize>,
    plain_cells: Vec<usize>,
    driven_most_open: f64,
    plain_most_open: f64,
}

pub(super) fn report(options: &Report) -> Result<(), Failure> {
    let driven = read_all(&options.driven)?;
    let iterations = driven.iter().map(super::frames::Frame::iteration).max().unwrap_or(1);
    let (driven_seen, driven_landscape) = explored(&driven, iterations, |_, frame| frame.iteration());
    let mut plain = Vec::new();
    let mut moments = Vec::new();
    for path in &options.plain {
        let frames = read_all(&[path])?;
        let count = frames.len().max(1);
        moments.extend((0..frames.len()).map(|at| 1 + at * iterations / count));
        plain.extend(frames);
    }
    let (plain_seen, plain_landscape) = explored(&plain, iterations, |at, _| moments[at]);
    let numbers = Numbers {
        frames: driven.len(),
        driven: driven_landscape.cells(),
        plain: plain_landscape.cells(),
        driven_most_open: driven_landscape.most_open(),
        plain_most_open: plain_landscape.most_open(),
        driven_cells: driven_seen.clone(),
        plain_cells: plain_seen.clone(),
    };
    write_json(&options.json, &numbers)?;
    let mut page = Page::new("DeepDriveMD: a hairpin that is driven to where it has not been");
    page.figures(&[
        ("cells seen by driven simulations", driven_landscape.cells().to_string()),
        ("cells seen by plain simulations", plain_landscape.cells().to_string()),
        ("frames of each", format!("{} and {}", driven.len(), plain.len())),
    ]);
    page.text(
        "Both began at the folded hairpin and were simulated for the same time. The driven ones were restarted in each \
         iteration from the conformations that the autoencoder found most unusual; the plain ones simply went on.",
    );
    let floats = |counts: &[usize]| counts.iter().map(|count| *count as f64).collect();
    page.charts(&[
        lines(
            "Cells of the landscape that were seen",
            "iteration",
            &[
                Line { name: "driven", values: floats(&driven_seen) },
                Line { name: "plain", values: floats(&plain_seen) },
            ],
        ),
        cloud("Where the autoencoder puts the frames", &options.latent)?,
    ]);
    page.heading("The landscape");
    page.text(
        "Each cell is a number of pairs that hold and a distance of the two ends; the darker, the more frames. Nobody \
         told the autoencoder of them: it sees contact maps.",
    );
    page.charts(&[map("Driven by outliers", &driven_landscape), map("Plain molecular dynamics", &plain_landscape)]);
    write_whole(&options.out, page.html().as_bytes())
}

/// Cells of a landscape as squares.
fn map(title: &str, landscape: &Landscape) -> String {
    let (cell, left, top) = (26.0, 60.0, 34.0);
    let (width, height) = (left + cell * COLUMNS as f64 + 12.0, top + cell * ROWS as f64 + 40.0);
    let most = landscape.0.values().max().copied().unwrap_or(1).max(2) as f64;
    let mut body = String::new();
    for row in 0..ROWS {
        let y = top + cell * row as f64;
        body += &format!(
            "<text x='{}' y='{}' text-anchor='end' font-size='11'>{row}</text>\n",
            left - 6.0,
            y + cell / 2.0 + 4.0
        );
        for column in 0..COLUMNS {
            let count = landscape.0.get(&(row, column)).copied().unwrap_or(0);
            // A cell that was seen once must be told from one that never was.
            let ink = if count == 0 { 97.0 } else { 82.0 - 55.0 * (count as f64).ln() / most.ln() };
            body += &format!(
                "<rect x='{}' y='{y}' width='{cell}' height='{cell}' fill='hsl(200 70% {ink:.0}%)' stroke='#fff'>\
                 <title>{count} frames</title></rect>\n",
                left + cell * column as f64
            );
        }
    }
    for column in (0..COLUMNS).step_by(3) {
        body += &format!(
            "<text x='{}' y='{}' text-anchor='middle' font-size='11'>{column}</text>\n",
            left + cell * (column as f64 + 0.5),
            top + cell * ROWS as f64 + 14.0
        );
    }
    body += &format!(
        "<text x='{}' y='{}' text-anchor='middle' font-size='11'>distance of the ends</text>\n\
         <text x='14' y='{}' font-size='11' text-anchor='middle' transform='rotate(-90 14 {1})'>pairs that hold</text>\n",
        left + cell * COLUMNS as f64 / 2.0,
        height - 6.0,
        top + cell * ROWS as f64 / 2.0
    );
    drawn(title, width, height, &body)
}

/// The frames in the first two latent numbers, coloured by how open they are; the outliers are ringed.
fn cloud(title: &str, table: &Path) -> Result<String, Failure> {
    let text = read_text(table)?;
    let rows: Vec<[f64; 4]> = text
        .lines()
        .skip(1)
        .filter_map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |at: usize| cells.get(at).and_then(|cell| cell.parse::<f64>().ok());
            Some([number(2)?, number(5)?, number(6)?, number(7)?])
        })
        .collect();
    let (width, height, edge) = (420.0, 280.0, 30.0);
    let range = |axis: usize| {
        let all = || rows.iter().map(|row| row[axis]);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        (low, (high - low).max(1e-9))
    };
    let (across, up) = (range(2), range(3));
    let mut body = String::new();
    // Outliers last: they must not be hidden.
    for outlier in [false, true] {
        // Ten thousand points are enough for an eye, and for a browser.
        let every = if outlier { 1 } else { rows.len().div_ceil(10_000).max(1) };
        for row in rows.iter().filter(|row| (row[1] > 0.0) == outlier).step_by(every) {
            let x = edge + (row[2] - across.0) / across.1 * (width - 2.0 * edge);
            let y = height - edge - (row[3] - up.0) / up.1 * (height - 2.0 * edge - 10.0);
            let hue = 20.0 + 180.0 * row[0];
            let (size, ring) = if outlier { (5.0, "#111") } else { (2.0, "none") };
            body +=
                &format!("<circle cx='{x:.1}' cy='{y:.1}' r='{size}' fill='hsl({hue:.0} 70% 45%)' stroke='{ring}'/>\n");
        }
    }
    body += &format!(
        "<text x='{}' y='{}' text-anchor='middle' font-size='11'>blue: folded, orange: open, ringed: where simulations \
         start next</text>\n",
        width / 2.0,
        height - 6.0
    );
    Ok(drawn(title, width, height, &body))
}

fn drawn(title: &str, width: f64, height: f64, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' \
         font-family='sans-serif' role='img'>\n<rect width='{width}' height='{height}' fill='#fff'/>\n\
         <title>{title}</title>\n<text x='12' y='18' font-size='13' font-weight='bold'>{title}</text>\n{body}</svg>\n"
    )
}
