//! The tables of the statistics: for the terminal, as CSV, with the column names that people's scripts look for.

use super::{Counted, Range, Statistics};
use crate::csv::{Csv, CsvFile};
use crate::markdown_table;
use crate::words::Table;

/// One table: what it is called, its words, its numbers.
pub struct StatisticsTable {
    /// `summary`, `workflow`, `jobs`, `breakdown`, `time`, `integrity`
    pub name: &'static str,
    title: &'static str,
    table: Table,
    file: &'static str,
}

impl StatisticsTable {
    /// As text that is Markdown too.
    pub fn text(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        markdown_table::table(&mut text, &self.table);
        text
    }

    pub fn csv(&self) -> CsvFile {
        let mut csv = Csv::with(self.table.header.iter().cloned());
        self.table.rows.iter().for_each(|row| csv.line(row.iter().cloned()));
        csv.finish(self.file)
    }
}

fn fixed(value: f64) -> String {
    format!("{value:.3}")
}

/// The tables of some runs together: with several, a row says which.
pub fn tables(all: &[Statistics]) -> Vec<StatisticsTable> {
    let several = all.len() > 1;
    let simulated = all.iter().any(|one| one.simulated);
    let table = |name, file, title, header: &[&str], words: usize, rows: Vec<(usize, Vec<String>)>| {
        let mut header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
        if several {
            header.insert(0, "Run".to_owned());
        }
        if simulated {
            header.push("Simulated".to_owned());
        }
        let mut table = Table::with(header, words + usize::from(several));
        for (run, mut row) in rows {
            if several {
                row.insert(0, all[run].run.clone());
            }
            if simulated {
                row.push(if all[run].simulated { "yes" } else { "no" }.to_owned());
            }
            table.rows.push(row);
        }
        StatisticsTable { name, title, table, file }
    };
    let each = |rows: &dyn Fn(&Statistics) -> Vec<Vec<String>>| -> Vec<(usize, Vec<String>)> {
        all.iter().enumerate().flat_map(|(run, one)| rows(one).into_iter().map(move |row| (run, row))).collect()
    };
    let counted = ["Type", "Succeeded", "Failed", "Incomplete", "Total", "Retries", "Total+Retries"];
    let workflow =
        ["#", "Type", "Succeeded", "Failed", "Incomplete", "Total", "Retries", "Total Run", "Workflow Retries"];
    let jobs = [
        "Job",
        "Try",
        "Site",
        "Kickstart",
        "Mult",
        "Kickstart-Mult",
        "CPU-Time",
        "Post",
        "CondorQTime",
        "Resource",
        "Runtime",
        "Seqexec",
        "Seqexec-Delay",
        "Exitcode",
        "Hostname",
    ];
    let breakdown = [
        "Transformation",
        "Type",
        "Count",
        "Min (runtime)",
        "Max (runtime)",
        "Mean (runtime)",
        "Total (runtime)",
        "Min (mem)",
        "Max (mem)",
        "Mean (mem)",
        "Min (avg. cpu)",
        "Max (avg. cpu)",
        "Mean (avg. cpu)",
    ];
    vec![
        table("summary", "summary.csv", "Summary", &counted, 1, each(&summary)),
        table("times", "summary-time.csv", "Wall times", &["", "seconds"], 1, each(&times)),
        table("workflow", "workflow.csv", "Workflow", &workflow, 2, each(&workflow_rows)),
        table("jobs", "jobs.csv", "Jobs", &jobs, 1, each(&job_rows)),
        table("breakdown", "breakdown.csv", "Transformations", &breakdown, 2, each(&breakdown_rows)),
        table(
            "time",
            "time.csv",
            "Invocations by time and host",
            &["Date", "Host", "Count", "Runtime (Sec.)"],
            2,
            each(&hours),
        ),
        table(
            "integrity",
            "integrity.csv",
            "Integrity",
            &["Type", "File Type", "Count"],
            2,
            each(&|one| vec![vec!["check".into(), "input".into(), one.files_compared.to_string()]]),
        ),
    ]
}

fn cells(counted: &Counted) -> [String; 5] {
    [counted.succeeded, counted.failed, counted.incomplete, counted.total, counted.retries]
        .map(|number| number.to_string())
}

fn summary(one: &Statistics) -> Vec<Vec<String>> {
    let row = |name: &str, counted: &Counted| {
        let whole = (counted.total + counted.retries).to_string();
        std::iter::once(name.to_owned()).chain(cells(counted)).chain([whole]).collect()
    };
    vec![row("Tasks", &one.tasks), row("Jobs", &one.jobs), row("Sub-Workflows", &one.sub_workflows)]
}

fn times(one: &Statistics) -> Vec<Vec<String>> {
    [
        ("Workflow wall time", one.wall_seconds),
        ("Cumulative job wall time", one.cumulative_seconds),
        ("Cumulative job wall time as seen from submit side", one.cumulative_submit_side_seconds),
        ("Cumulative job badput wall time", one.badput_seconds),
        ("Cumulative job badput wall time as seen from submit side", one.badput_submit_side_seconds),
    ]
    .into_iter()
    .map(|(name, seconds)| vec![name.to_owned(), fixed(seconds)])
    .collect()
}

fn workflow_rows(one: &Statistics) -> Vec<Vec<String>> {
    let row = |name: &str, counted: &Counted, retries: String| {
        let run = (counted.succeeded + counted.failed + counted.retries).to_string();
        [one.run.clone(), name.to_owned()].into_iter().chain(cells(counted)).chain([run, retries]).collect()
    };
    vec![
        row("Tasks", &one.tasks, String::new()),
        row("Jobs", &one.jobs, String::new()),
        row("Sub-Workflows", &one.sub_workflows, one.workflow_retries.to_string()),
    ]
}

fn job_rows(one: &Statistics) -> Vec<Vec<String>> {
    let dash = || "-".to_owned();
    one.job_rows
        .iter()
        .map(|row| {
            let number = crate::words::number(row.mult);
            vec![
                row.job.clone(),
                row.attempt.to_string(),
                row.site.clone(),
                fixed(row.kickstart),
                number,
                fixed(row.kickstart * row.mult),
                fixed(row.cpu_time),
                // There is no post script: whoever ran the job looked at its outputs itself.
                dash(),
                fixed(row.queue_time),
                // Between a gateway and the machines behind it: Tulpar sees no such step.
                dash(),
                fixed(row.runtime),
                row.seqexec.map_or_else(dash, fixed),
                row.seqexec.map_or_else(dash, |seqexec| fixed((seqexec - row.kickstart).max(0.0))),
                row.exitcode.to_string(),
                row.hostname.clone(),
            ]
        })
        .collect()
}

fn breakdown_rows(one: &Statistics) -> Vec<Vec<String>> {
    let three = |range: Option<Range>| match range {
        Some(range) => [range.min, range.max, range.mean].map(fixed),
        None => ["-", "-", "-"].map(str::to_owned),
    };
    one.transformations
        .iter()
        .map(|row| {
            let kind = if row.successful { "successful" } else { "failed" };
            let runtime = match row.runtime {
                Some(range) => [range.min, range.max, range.mean, range.total].map(fixed),
                None => ["-", "-", "-", "-"].map(str::to_owned),
            };
            [row.transformation.clone(), kind.to_owned(), row.count.to_string()]
                .into_iter()
                .chain(runtime)
                .chain(three(row.memory))
                .chain(three(row.cpu))
                .collect()
        })
        .collect()
}

fn hours(one: &Statistics) -> Vec<Vec<String>> {
    let row =
        |row: &super::HourRow| vec![row.date.clone(), row.host.clone(), row.count.to_string(), fixed(row.runtime)];
    one.hours.iter().map(row).collect()
}
