//! A table in Markdown that can also be read as it stands, on a terminal.

use crate::words::Table;

pub(crate) fn table(text: &mut String, table: &Table) {
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
pub(crate) fn plain(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;")
}
