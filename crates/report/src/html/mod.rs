//! Runs as one page that needs nothing else: no scripts, no fonts, no pictures from anywhere.

mod style;

use crate::chart::{Chart, class};
use crate::markdown::MOST_ROWS;
use crate::summary::RunReport;
use crate::words::{self, Table};
use std::fmt::Write;

/// The whole page.
pub fn page(runs: &[RunReport]) -> String {
    let title = match runs {
        [run] => run.facts.run.clone(),
        runs => format!("{} runs", runs.len()),
    };
    let title = escape(&title);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{title} – Tulpar</title>\n<style>\n{}</style>\n\
         </head>\n<body>\n<main>\n",
        style::STYLE
    );
    if runs.len() > 1 {
        html.push_str("<h1>Runs</h1>\n");
        table(&mut html, &words::runs(runs));
    }
    runs.iter().for_each(|run| section(&mut html, run));
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn section(html: &mut String, run: &RunReport) {
    let _ = writeln!(
        html,
        "<section>\n<h1>{} <span class=\"state\">{}</span></h1>",
        escape(&run.facts.run),
        escape(&words::state(run))
    );
    html.push_str("<dl>\n");
    for (name, value) in words::facts(run).iter().filter(|(name, _)| *name != "state") {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(value));
    }
    html.push_str("</dl>\n<h2>Occupation over time</h2>\n");
    occupation(html, run);
    html.push_str("<h2>Predicted, simulated, measured</h2>\n");
    table(html, &words::side_by_side(run));
    if let Some(modes) = words::modes(run) {
        html.push_str("<h2>Modes</h2>\n");
        table(html, &modes);
    }
    html.push_str("<h2>Task sets</h2>\n");
    let mut sets = words::sets(&run.sets);
    let more = sets.rows.len().saturating_sub(MOST_ROWS);
    sets.rows.truncate(MOST_ROWS);
    table(html, &sets);
    if more > 0 {
        let _ = writeln!(html, "<p>and {more} more</p>");
    }
    html.push_str("<p class=\"notes\">");
    html.push_str(&words::notes(run).iter().map(|note| escape(note)).collect::<Vec<_>>().join(" "));
    html.push_str("</p>\n</section>\n");
}

fn occupation(html: &mut String, run: &RunReport) {
    let occupation = &run.occupation;
    let columns = &occupation.columns;
    if columns.series.is_empty() || columns.edges_us.len() < 2 {
        html.push_str("<p>Nothing ran.</p>\n");
        return;
    }
    html.push_str("<ul class=\"legend\">\n");
    for (kind, series) in columns.series.iter().enumerate() {
        let _ = writeln!(html, "<li><span class=\"swatch {}\"></span>{}</li>", class(kind), escape(&series.kind));
    }
    html.push_str("</ul>\n");
    let cores = Chart {
        what: "cores in use",
        columns,
        values: |series| &series.cpus,
        capacity: occupation.cpus,
        share: run.measured.cpu.of_makespan,
    };
    html.push_str(&cores.svg());
    if occupation.gpus > 0 {
        let capacity = occupation.gpus as f64;
        let share = run.measured.gpu.map_or(0.0, |gpu| gpu.of_makespan);
        let gpus = Chart { what: "GPUs in use", columns, values: |series| &series.gpus, capacity, share };
        if gpus.peak() > 0.0 {
            html.push_str(&gpus.svg());
        } else {
            let _ = writeln!(html, "<p class=\"notes\">No task held any of the {} GPUs.</p>", occupation.gpus);
        }
    }
}

fn table(html: &mut String, table: &Table) {
    let class = |column: usize| if table.numeric[column] { " class=\"n\"" } else { "" };
    html.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for (column, cell) in table.header.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(column), escape(cell));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let tag = if column == 0 { "th" } else { "td" };
            let _ = write!(html, "<{tag}{}>{}</{tag}>", class(column), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

/// Text that has no meaning in HTML, neither between tags nor inside quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
