//! What tasks asked for and used, as tables, text and CSV.

use crate::csv::{Csv, CsvFile, number};
use crate::efficiency::in_words;
use crate::markdown_table;
use crate::scenario::Document;
use crate::summary::RunReport;
use crate::words::{NONE, Table, percent, shown};

/// The rule in words, beside every table that follows it.
pub(crate) const RULE: &str = "Next time: memory is the largest that was seen and a fifth more, rounded up to two digits; \
     cores are those that were busy on average and a fifth more, rounded up to whole ones; time is the longest task and a \
     fifth more, in whole minutes. Only what differs by more than a fifth is said. GPUs are left to you: a device that is \
     half idle may still be needed whole.";

pub(crate) fn table(run: &RunReport) -> Option<Table> {
    if run.efficiency.is_empty() {
        return None;
    }
    let header = [
        "task set",
        "cores used / asked",
        "memory used / asked",
        "GPUs busy / asked",
        "longest / limit",
        "next time",
        "frees",
    ];
    let mut table = Table::new(&header, header.len());
    let share = |used: Option<f64>, asked: f64| match used {
        Some(used) if asked > 0.0 => format!("{} / {} ({})", shown(used), shown(asked), percent(used / asked)),
        Some(used) => format!("{} / {NONE}", shown(used)),
        None if asked > 0.0 => format!("{NONE} / {}", shown(asked)),
        None => NONE.to_owned(),
    };
    for row in &run.efficiency {
        let memory = match (row.memory_used, row.memory_asked) {
            (Some(used), Some(asked)) => {
                let share = percent(used as f64 / asked as f64);
                format!("{} / {} ({share})", in_words(used as f64), in_words(asked as f64))
            }
            (Some(used), None) => format!("{} / not said", in_words(used as f64)),
            (None, Some(asked)) => format!("{NONE} / {}", in_words(asked as f64)),
            (None, None) => NONE.to_owned(),
        };
        let limit = row.time_asked.map_or_else(|| "no limit".to_owned(), |limit| format!("{} s", shown(limit)));
        let frees = [(row.frees_core_hours, "core h"), (row.frees_gb_hours, "GB h")];
        let frees: Vec<String> = frees
            .iter()
            .filter(|(freed, _)| *freed >= 0.001)
            .map(|(freed, unit)| format!("{} {unit}", shown(*freed)))
            .collect();
        table.rows.push(vec![
            row.task_set.clone(),
            share(row.cpus_used, row.cpus_asked),
            memory,
            share(row.gpus_used, row.gpus_asked),
            format!("{} s / {limit}", shown(row.time_used)),
            if row.next.is_empty() { "as it is".to_owned() } else { row.next.join(", ") },
            if frees.is_empty() { NONE.to_owned() } else { frees.join(", ") },
        ]);
    }
    Some(table)
}

/// The tables of some runs, with the rule, as text that is Markdown too.
pub fn efficiency_text(document: &Document) -> String {
    let mut text = String::new();
    for run in &document.runs {
        text.push_str(&format!("## {}: asked for and used\n\n", run.facts.title()));
        match table(run) {
            Some(table) => markdown_table::table(&mut text, &table),
            None => text.push_str("Nothing has ended yet.\n"),
        }
        text.push('\n');
    }
    text.push_str(RULE);
    text.push('\n');
    text
}

pub(crate) fn csv(document: &Document) -> Option<CsvFile> {
    let header = [
        "run",
        "task_set",
        "tasks",
        "cpus_asked",
        "cpus_used",
        "memory_asked",
        "memory_used",
        "gpus_asked",
        "gpus_used",
        "gpu_memory_used",
        "time_asked",
        "time_used",
        "next",
        "frees_core_hours",
        "frees_gb_hours",
    ];
    let mut csv = Csv::of_runs(document, header.map(str::to_owned));
    for run in &document.runs {
        for row in &run.efficiency {
            let bytes = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| bytes.to_string());
            csv.line([
                run.facts.run.clone(),
                row.task_set.clone(),
                row.tasks.to_string(),
                row.cpus_asked.to_string(),
                number(row.cpus_used),
                bytes(row.memory_asked),
                bytes(row.memory_used),
                row.gpus_asked.to_string(),
                number(row.gpus_used),
                bytes(row.gpu_memory_used),
                number(row.time_asked),
                row.time_used.to_string(),
                row.next.join("; "),
                row.frees_core_hours.to_string(),
                row.frees_gb_hours.to_string(),
            ]);
        }
    }
    Some(csv.finish("efficiency.csv"))
}
