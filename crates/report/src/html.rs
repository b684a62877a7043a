//! Runs as one page that needs nothing else: no scripts, no fonts, no pictures from anywhere.

use crate::bars::{Bar, Bars};
use crate::chart::Chart;
use crate::io::tasks;
use crate::markdown::{MOST_ROWS, MOST_TRANSFERS};
use crate::markup::{escape, legend, table};
use crate::scenario::{Aside, Document};
use crate::search::{self, SearchReport};
use crate::summary::RunReport;
use crate::words::Table;
use crate::{efficiency_tables, run_tables, spent, tables};
use std::fmt::Write;

/// The whole page.
pub fn page(document: &Document) -> String {
    let runs = &document.runs;
    let title = match &runs[..] {
        [run] => run.facts.title(),
        runs => format!("{} runs", runs.len()),
    };
    let mut html = String::new();
    if runs.len() > 1 {
        html.push_str("<section>\n<h1>Runs</h1>\n");
        table(&mut html, &run_tables::runs(runs));
        compared(&mut html, document);
        html.push_str("</section>\n");
    }
    runs.iter().for_each(|run| section(&mut html, run));
    html.push_str("<section><h2>What the figures mean</h2>\n<ul class=\"notes\">\n");
    for sentence in tables::MEANING {
        let _ = writeln!(html, "<li>{}</li>", escape(sentence));
    }
    html.push_str("</ul></section>\n");
    crate::markup::document(&title, "", &html)
}

/// Scenarios beside each other: the bars of the study, and their tables.
fn compared(html: &mut String, document: &Document) {
    let scenarios = &document.scenarios;
    let mut names: Vec<&str> = Vec::new();
    let mut workflows: Vec<&str> = Vec::new();
    for scenario in scenarios {
        if !names.contains(&scenario.name.as_str()) {
            names.push(&scenario.name);
        }
        if !workflows.contains(&scenario.workflow.as_str()) {
            workflows.push(&scenario.workflow);
        }
    }
    html.push_str("<h2>Scenarios</h2>\n<p class=\"notes\">Means over runs; lines show the standard deviation.</p>\n");
    legend(html, "bar", names.iter().copied());
    let bars = |workflow: &str, key: &str| -> Vec<Option<Bar>> {
        let of = |name: &&str| {
            let found = scenarios.iter().find(|one| one.name == **name && one.workflow == workflow)?;
            found.figure(key).map(|spread| Bar { mean: spread.mean, deviation: spread.deviation })
        };
        names.iter().map(of).collect()
    };
    let one = |key: &str| workflows.iter().map(|name| ((*name).to_owned(), bars(name, key))).collect();
    let both = workflows
        .iter()
        .flat_map(|name| {
            [("stage-in", "stage_in_seconds"), ("stage-out", "stage_out_seconds")]
                .map(|(word, key)| (format!("{name}, {word}"), bars(name, key)))
        })
        .collect();
    for (what, said, groups) in [
        ("compute (s)", "cumulative compute time by scenario", one("compute_seconds")),
        ("transfers (s)", "cumulative stage-in and stage-out time by scenario", both),
        ("makespan (s)", "makespan by scenario", one("makespan_seconds")),
    ] {
        let _ = writeln!(html, "<h3>{}{}</h3>", said[..1].to_uppercase(), &said[1..]);
        html.push_str(&Bars { what, said, groups }.svg());
    }
    html.push_str("<h2>Scenarios in figures</h2>\n");
    table(html, &tables::scenarios(scenarios));
    document.asides.iter().for_each(|one| aside(html, one));
    html.push_str("<h2>Scenarios, job level</h2>\n");
    long_table(html, tables::scenario_jobs(scenarios));
}

/// A table that somebody else made, and the lines below it.
pub(crate) fn aside(html: &mut String, aside: &Aside) {
    let _ = writeln!(html, "<h2>{}</h2>", escape(&aside.title));
    if !aside.header.is_empty() {
        table(html, &Table { rows: aside.rows.clone(), ..Table::with(aside.header.clone(), 1) });
    }
    if !aside.lines.is_empty() {
        let lines: Vec<String> = aside.lines.iter().map(|line| escape(line)).collect();
        let _ = writeln!(html, "<pre class=\"notes\">{}</pre>", lines.join("\n"));
    }
}

fn section(html: &mut String, run: &RunReport) {
    let _ = writeln!(
        html,
        "<section>\n<h1>{} <span class=\"state\">{}</span></h1>",
        escape(&run.facts.run),
        escape(&run_tables::state(run))
    );
    html.push_str("<dl>\n");
    for (name, value) in run_tables::facts(run).iter().filter(|(name, _)| *name != "state") {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(value));
    }
    html.push_str("</dl>\n<h2>Occupation over time</h2>\n");
    occupation(html, run);
    run.searches.iter().for_each(|found| searched(html, found));
    html.push_str("<h2>Job level</h2>\n");
    long_table(html, tables::job_level(run));
    html.push_str("<h2>Workflow level</h2>\n");
    table(html, &tables::workflow_level(run));
    if let Some(pairs) = tables::pairs(run) {
        html.push_str("<h2>Transfers</h2>\n");
        long_table(html, pairs);
        html.push_str("<h3>The longest</h3>\n");
        table(html, &tables::longest(run, MOST_TRANSFERS));
    }
    if let Some(efficiency) = efficiency_tables::table(run) {
        html.push_str("<h2>Asked for and used</h2>\n");
        long_table(html, efficiency);
        let _ = writeln!(html, "<p class=\"notes\">{}</p>", escape(efficiency_tables::RULE));
    }
    if let Some(traced) = tasks::table(&run.facts.io) {
        let _ = writeln!(html, "<h2>{}</h2>", tasks::TITLE);
        long_table(html, traced);
        let _ = writeln!(html, "<p class=\"notes\">{}</p>", escape(tasks::RULE));
    }
    let spent = spent::sentences(&run.spent);
    if !spent.is_empty() {
        html.push_str("<h2>Cost and energy</h2>\n");
        for sentence in spent {
            let _ = writeln!(html, "<p>{}</p>", escape(&sentence));
        }
    }
    html.push_str("<h2>Predicted, simulated, measured</h2>\n");
    table(html, &run_tables::side_by_side(run));
    if let Some(modes) = run_tables::modes(run) {
        html.push_str("<h2>Modes</h2>\n");
        table(html, &modes);
    }
    html.push_str("<h2>Task sets</h2>\n");
    long_table(html, run_tables::sets(&run.sets));
    html.push_str("<p class=\"notes\">");
    html.push_str(&run_tables::notes(run).iter().map(|note| escape(note)).collect::<Vec<_>>().join(" "));
    html.push_str("</p>\n</section>\n");
}

/// A search: what it found in words, its charts, its trials.
fn searched(html: &mut String, found: &SearchReport) {
    let _ = writeln!(html, "<h2>Search: {}</h2>", escape(&found.task));
    for sentence in search::search_sentences(found) {
        let _ = writeln!(html, "<p>{}</p>", escape(&sentence));
    }
    if let Some(best) = search::best(found) {
        table(html, &best);
    }
    for drawing in search::drawings(found) {
        let _ = writeln!(html, "<h3>{}</h3>\n{}", escape(&drawing.title), drawing.svg);
        let _ = writeln!(html, "<p class=\"notes\">{}</p>", escape(&drawing.note));
    }
    html.push_str("<h3>Trials</h3>\n");
    long_table(html, search::trials(found));
}

/// As many rows as people read, and how many there are beyond.
fn long_table(html: &mut String, mut long: Table) {
    let more = long.rows.len().saturating_sub(MOST_ROWS);
    long.rows.truncate(MOST_ROWS);
    table(html, &long);
    if more > 0 {
        let _ = writeln!(html, "<p>and {more} more</p>");
    }
}

fn occupation(html: &mut String, run: &RunReport) {
    let occupation = &run.occupation;
    let columns = &occupation.columns;
    if columns.series.is_empty() || columns.edges_us.len() < 2 {
        html.push_str("<p>Nothing ran.</p>\n");
        return;
    }
    legend(html, "band", columns.series.iter().map(|series| series.kind.as_str()));
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
