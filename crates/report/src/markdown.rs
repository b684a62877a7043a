//! Runs as Markdown whose tables are also readable as they stand, on a terminal.

use crate::summary::RunReport;
use crate::words::{self, Table};

/// More rows than this nobody reads; the JSON has all of them.
pub(crate) const MOST_ROWS: usize = 100;

pub fn markdown(runs: &[RunReport]) -> String {
    let mut text = String::new();
    if runs.len() > 1 {
        text.push_str("# Runs\n\n");
        table(&mut text, &words::runs(runs));
        text.push('\n');
    }
    for (number, run) in runs.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&format!("# {}\n\n", plain(&run.facts.run)));
        for (name, value) in words::facts(run) {
            text.push_str(&format!("- {name}: {}\n", plain(&value)));
        }
        text.push_str("\n## Predicted, simulated, measured\n\n");
        table(&mut text, &words::side_by_side(run));
        if let Some(modes) = words::modes(run) {
            text.push_str("\n## Modes\n\n");
            table(&mut text, &modes);
        }
        text.push_str("\n## Task sets\n\n");
        let mut sets = words::sets(&run.sets);
        let more = sets.rows.len().saturating_sub(MOST_ROWS);
        sets.rows.truncate(MOST_ROWS);
        table(&mut text, &sets);
        if more > 0 {
            text.push_str(&format!("\nand {more} more\n"));
        }
        text.push('\n');
        for note in words::notes(run) {
            text.push_str(&format!("{note}\n"));
        }
    }
    text
}

fn table(text: &mut String, table: &Table) {
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let mut widths: Vec<usize> = table.header.iter().map(|cell| cell.chars().count().max(3)).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut line = |cells: &[String]| {
        for ((cell, width), numeric) in cells.iter().zip(&widths).zip(&table.numeric) {
            let pad = " ".repeat(width - cell.chars().count());
            match numeric {
                true => text.push_str(&format!("| {pad}{cell} ")),
                false => text.push_str(&format!("| {cell}{pad} ")),
            }
        }
        text.push_str("|\n");
    };
    line(&table.header);
    let rules: Vec<String> = widths
        .iter()
        .zip(&table.numeric)
        .map(|(width, numeric)| if *numeric { format!("{}:", "-".repeat(width - 1)) } else { "-".repeat(*width) })
        .collect();
    line(&rules);
    rows.iter().for_each(|row| line(row));
}

/// Names come from users: what would end a cell or a line does not.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;")
}
