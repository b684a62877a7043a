//! The tables of a characterisation, of scenarios and of transfers, as people read them.

use crate::character::{Figure, JOB_FIGURES, WORKFLOW_FIGURES};
use crate::scenario::{Scenario, Spread};
use crate::summary::RunReport;
use crate::words::{NONE, Table, shown};
use tulpar_core::units::Bytes;

pub(crate) fn heading(figure: &Figure) -> String {
    if figure.unit.is_empty() { figure.name.to_owned() } else { format!("{} ({})", figure.name, figure.unit) }
}

fn value(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), shown)
}

fn spread(spread: Option<Spread>) -> String {
    match spread {
        None => NONE.to_owned(),
        Some(Spread { mean, deviation: Some(deviation), .. }) => format!("{} ± {}", shown(mean), shown(deviation)),
        Some(Spread { mean, .. }) => shown(mean),
    }
}

/// One row a kind of task.
pub(crate) fn job_level(run: &RunReport) -> Table {
    let header = ["task set".to_owned(), "tasks".to_owned()].into_iter().chain(JOB_FIGURES.iter().map(heading));
    let mut table = Table::with(header.collect(), 1);
    for job in &run.characterisation.jobs {
        let cells = [job.task_set.clone(), job.tasks.to_string()];
        table.rows.push(cells.into_iter().chain(job.values.iter().map(|one| value(*one))).collect());
    }
    table
}

/// One row a figure.
pub(crate) fn workflow_level(run: &RunReport) -> Table {
    let mut table = Table::with(vec!["figure".to_owned(), "value".to_owned()], 1);
    for (figure, known) in WORKFLOW_FIGURES.iter().zip(&run.characterisation.workflow) {
        table.rows.push(vec![heading(figure), value(*known)]);
    }
    table
}

/// One row a figure, one column a scenario.
pub(crate) fn scenarios(scenarios: &[Scenario]) -> Table {
    let name = |scenario: &Scenario| {
        let runs = scenario.runs.len();
        format!("{}: {} ({runs} {})", scenario.workflow, scenario.name, if runs == 1 { "run" } else { "runs" })
    };
    let header = std::iter::once("figure".to_owned()).chain(scenarios.iter().map(name));
    let mut table = Table::with(header.collect(), 1);
    for (place, figure) in WORKFLOW_FIGURES.iter().enumerate() {
        let cells = scenarios.iter().map(|scenario| spread(scenario.workflow_level[place]));
        table.rows.push(std::iter::once(heading(figure)).chain(cells).collect());
    }
    table
}

/// One row a scenario and kind of task.
pub(crate) fn scenario_jobs(scenarios: &[Scenario]) -> Table {
    let header = ["workflow", "scenario", "task set"].map(str::to_owned).into_iter();
    let mut table = Table::with(header.chain(JOB_FIGURES.iter().map(heading)).collect(), 3);
    for scenario in scenarios {
        for (kind, spreads) in &scenario.job_level {
            let cells = [scenario.workflow.clone(), scenario.name.clone(), kind.clone()];
            table.rows.push(cells.into_iter().chain(spreads.iter().map(|one| spread(*one))).collect());
        }
    }
    table
}

fn rate(bytes_per_second: Option<f64>) -> String {
    bytes_per_second.map_or_else(|| NONE.to_owned(), |rate| shown(rate / 1e6))
}

/// Nothing where the number is not known.
fn files(number: u64) -> String {
    if number == 0 { String::new() } else { number.to_string() }
}

/// One row a pair of places.
pub(crate) fn pairs(run: &RunReport) -> Option<Table> {
    let transfers = &run.characterisation.transfers;
    if transfers.count == 0 {
        return None;
    }
    let header = ["from", "to", "transfers", "files", "bytes", "time (s)", "rate (MB/s)", "retries"];
    let mut table = Table::new(&header, 2);
    for pair in &transfers.pairs {
        table.rows.push(vec![
            pair.from.clone(),
            pair.to.clone(),
            pair.transfers.to_string(),
            files(pair.files),
            Bytes(pair.bytes).to_string(),
            shown(pair.seconds),
            rate(pair.bytes_per_second),
            pair.retries.to_string(),
        ]);
    }
    Some(table)
}

/// The longest ones.
pub(crate) fn longest(run: &RunReport, most: usize) -> Table {
    let header = ["job", "from", "to", "files", "bytes", "time (s)", "rate (MB/s)", "retries"];
    let mut table = Table::new(&header, 3);
    for one in run.characterisation.transfers.longest.iter().take(most) {
        table.rows.push(vec![
            one.job.clone(),
            one.from.clone(),
            one.to.clone(),
            files(one.files),
            Bytes(one.bytes).to_string(),
            shown(one.seconds),
            rate(one.bytes_per_second),
            one.retries.to_string(),
        ]);
    }
    table
}

/// What the figures of a characterisation mean.
pub(crate) const MEANING: [&str; 6] = [
    "I/O is what tasks moved through read and write calls, cache included, summed over the tasks of a set; average CPU is \
     the mean over tasks of 100 × (user + system time) / wall time; peaks are those of the largest single task.",
    "Average GPU and peak GPU memory are of tasks that held GPUs and were sampled; – is what nobody recorded.",
    "CPU and GPU hours held are the cores and devices that tasks had asked for, while they ran; used is their CPU time.",
    "Cumulative compute is the time of tasks that ended well; stage-in and stage-out are the time of transfer jobs and of \
     what jobs pulled and pushed around their tasks; all are sums over jobs that may run at once.",
    "Job time spent moving files is stage-in and stage-out, of these and compute together.",
    "Input files are those that were there before the run, each once; files staged in are those that came to tasks, as \
     often as they came, images and programs included; 1 MB is 10⁶ bytes, 1 GB 10⁹.",
];
