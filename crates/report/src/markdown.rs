//! Runs as Markdown whose tables are also readable as they stand, on a terminal.

use crate::io::tasks;
use crate::markdown_table::{plain, table};
use crate::scenario::Document;
use crate::words::Table;
use crate::{efficiency_tables, run_tables, search, spent, tables};

/// More rows than this nobody reads; the JSON has all of them.
pub(crate) const MOST_ROWS: usize = 100;

/// More transfers than this nobody reads either.
pub(crate) const MOST_TRANSFERS: usize = 10;

pub fn markdown(document: &Document) -> String {
    let runs = &document.runs;
    let mut text = String::new();
    if runs.len() > 1 {
        text.push_str("# Runs\n\n");
        table(&mut text, &run_tables::runs(runs));
        text.push_str("\n## Scenarios: mean ± standard deviation\n\n");
        table(&mut text, &tables::scenarios(&document.scenarios));
        text.push_str("\n## Scenarios, job level\n\n");
        table(&mut text, &tables::scenario_jobs(&document.scenarios));
        text.push('\n');
    }
    for (number, run) in runs.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&format!("# {}\n\n", plain(&run.facts.run)));
        for (name, value) in run_tables::facts(run) {
            text.push_str(&format!("- {name}: {}\n", plain(&value)));
        }
        for found in &run.searches {
            text.push_str(&format!(
                "\n## Search: {}\n\n{}\n\n",
                plain(&found.task),
                search::search_sentences(found).join("\n")
            ));
            if let Some(best) = search::best(found) {
                table(&mut text, &best);
                text.push('\n');
            }
            long_table(&mut text, search::trials(found));
        }
        text.push_str("\n## Job level\n\n");
        long_table(&mut text, tables::job_level(run));
        text.push_str("\n## Workflow level\n\n");
        table(&mut text, &tables::workflow_level(run));
        if let Some(pairs) = tables::pairs(run) {
            text.push_str("\n## Transfers\n\n");
            long_table(&mut text, pairs);
            text.push_str("\nThe longest:\n\n");
            table(&mut text, &tables::longest(run, MOST_TRANSFERS));
        }
        if let Some(efficiency) = efficiency_tables::table(run) {
            text.push_str("\n## Asked for and used\n\n");
            long_table(&mut text, efficiency);
            text.push_str(&format!("\n{}\n", efficiency_tables::RULE));
        }
        if let Some(traced) = tasks::table(&run.facts.io) {
            text.push_str(&format!("\n## {}\n\n", tasks::TITLE));
            long_table(&mut text, traced);
            text.push_str(&format!("\n{}\n", tasks::RULE));
        }
        let spent = spent::sentences(&run.spent);
        if !spent.is_empty() {
            text.push_str(&format!("\n## Cost and energy\n\n{}\n", spent.join("\n")));
        }
        text.push_str("\n## Predicted, simulated, measured\n\n");
        table(&mut text, &run_tables::side_by_side(run));
        if let Some(modes) = run_tables::modes(run) {
            text.push_str("\n## Modes\n\n");
            table(&mut text, &modes);
        }
        text.push_str("\n## Task sets\n\n");
        long_table(&mut text, run_tables::sets(&run.sets));
        text.push('\n');
        for note in run_tables::notes(run) {
            text.push_str(&format!("{note}\n"));
        }
    }
    text.push('\n');
    for sentence in tables::MEANING {
        text.push_str(&format!("{sentence}\n"));
    }
    text
}

/// As many rows as people read, and how many there are beyond.
fn long_table(text: &mut String, mut long: Table) {
    let more = long.rows.len().saturating_sub(MOST_ROWS);
    long.rows.truncate(MOST_ROWS);
    table(text, &long);
    if more > 0 {
        text.push_str(&format!("\nand {more} more\n"));
    }
}
