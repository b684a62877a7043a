//! What tasks asked for against what they used, and what to write next time.
//!
//! The rule: a fifth more than the largest that was seen, rounded up to two digits; cores by the mean, because more
//! threads than cores only wait. What was asked for and not held against anything is left as it is.

use crate::csv::{Csv, CsvFile, number};
use crate::gather::{Gathered, Used};
use crate::scenario::Document;
use crate::summary::{RunReport, seconds};
use crate::words::{NONE, Table, percent, shown};
use serde::Serialize;

/// More than was seen, by this.
const MARGIN: f64 = 1.2;
/// A task with more than this share of what it asked for is left alone.
const ENOUGH: f64 = 0.8;

/// One kind of task: asked for, used, and what would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Efficiency {
    pub task_set: String,
    pub tasks: u64,
    /// Cores asked for, and cores busy on average.
    pub cpus_asked: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_used: Option<f64>,
    /// Bytes: asked for (absent: nothing was said), and the largest that any task had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_asked: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used: Option<u64>,
    pub gpus_asked: f64,
    /// Devices busy on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_used: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_used: Option<u64>,
    /// Seconds: the limit that was asked for, and the longest task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_asked: Option<f64>,
    pub time_used: f64,
    /// As a workflow file says it; absent where what was asked for is right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// What that would have freed in this run: core hours and gigabyte hours.
    pub frees_core_hours: f64,
    pub frees_gb_hours: f64,
}

pub(crate) fn efficiency(gathered: &Gathered) -> Vec<Efficiency> {
    let ran = gathered.kinds().iter().zip(&gathered.used).filter(|(_, used)| used.tasks > 0);
    ran.map(|(name, used)| of(name, used)).collect()
}

fn of(name: &str, used: &Used) -> Efficiency {
    let asked = &used.asked;
    let wall = used.wall_us as f64;
    let cpus_asked = asked.milli_cpu_us as f64 / 1000.0 / wall.max(1.0);
    let cpus_used = (used.measured > 0 && wall > 0.0).then(|| used.cpu_us as f64 / wall);
    let gpus_asked = asked.milli_gpu_us as f64 / 1000.0 / wall.max(1.0);
    let gpus_used = (used.with_gpu > 0 && wall > 0.0).then(|| asked.busy_milli_gpu_us / 1000.0 / wall);
    let memory_asked = (asked.memory > 0).then_some(asked.memory);
    let memory_used = (used.peak_rss > 0).then_some(used.peak_rss);
    let time_asked = asked.time.map(|time| time.as_secs_f64());
    let time_used = seconds(used.longest_us);
    let mut next = Vec::new();
    let (mut frees_core_hours, mut frees_gb_hours) = (0.0, 0.0);
    if let Some(busy) = cpus_used {
        // Whole cores; quarters where less than one was asked for and is enough.
        let step = if cpus_asked < 1.0 && busy * MARGIN <= 1.0 { 4.0 } else { 1.0 };
        let wanted = (busy * MARGIN * step).ceil().max(1.0) / step;
        if wanted < cpus_asked * ENOUGH || busy > cpus_asked * MARGIN {
            next.push(format!("cpus: {}", crate::words::number(wanted)));
            frees_core_hours = ((cpus_asked - wanted) * wall / 3.6e9).max(0.0);
        }
    }
    if let Some(peak) = memory_used {
        let wanted = rounded(peak as f64 * MARGIN);
        let fits = memory_asked.is_some_and(|asked| wanted <= asked as f64 && wanted >= asked as f64 * ENOUGH);
        if !fits && memory_asked.is_none_or(|asked| wanted != asked as f64) {
            next.push(format!("memory: {}", in_words(wanted)));
            let asked = asked.memory_us as f64 / wall.max(1.0);
            frees_gb_hours = ((asked - wanted) * wall / 1e9 / 3.6e9).max(0.0);
        }
    }
    if let Some(limit) = time_asked {
        let wanted = whole_time(time_used * MARGIN);
        if wanted < limit * ENOUGH {
            next.push(format!("time: {}", time_in_words(wanted)));
        }
    }
    Efficiency {
        task_set: name.to_owned(),
        tasks: used.tasks,
        cpus_asked,
        cpus_used,
        memory_asked,
        memory_used,
        gpus_asked,
        gpus_used,
        gpu_memory_used: (used.peak_gpu_memory > 0).then_some(used.peak_gpu_memory),
        time_asked,
        time_used,
        next,
        frees_core_hours,
        frees_gb_hours,
    }
}

/// Up to two digits, and not below 10 MB.
fn rounded(bytes: f64) -> f64 {
    let bytes = bytes.max(10e6);
    let unit = 10f64.powf(bytes.log10().floor() - 1.0);
    (bytes / unit - 1e-9).ceil() * unit
}

/// `1.3 GB`, `450 MB`
fn in_words(bytes: f64) -> String {
    if bytes >= 1e9 { format!("{} GB", crate::words::number(bytes / 1e9)) } else { format!("{:.0} MB", bytes / 1e6) }
}

/// Whole minutes, above two hours quarters of an hour.
fn whole_time(seconds: f64) -> f64 {
    let step = if seconds <= 7200.0 { 60.0 } else { 900.0 };
    (seconds / step).ceil().max(1.0) * step
}

fn time_in_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 7200.0 => format!("{} min", seconds / 60.0),
        seconds => format!("{} h", crate::words::number(seconds / 3600.0)),
    }
}

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
            Some(table) => crate::markdown::table(&mut text, &table),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::Asked;
    use std::time::Duration;

    fn used(cpu_us: u64, peak_rss: u64) -> Used {
        let asked = Asked {
            milli_cpus: 8000,
            memory: 16_000_000_000,
            time: Some(Duration::from_secs(36_000)),
            milli_cpu_us: 8000 * 3_600_000_000,
            memory_us: 16_000_000_000 * 3_600_000_000,
            ..Asked::default()
        };
        Used {
            tasks: 1,
            measured: 1,
            wall_us: 3_600_000_000,
            longest_us: 3_600_000_000,
            cpu_us,
            peak_rss,
            asked,
            ..Used::default()
        }
    }

    #[test]
    fn what_was_asked_for_in_vain_is_said_with_what_would_do() {
        // One hour with two busy cores of eight, and 3.1 GB of 16.
        let row = of("train", &used(7_200_000_000, 3_100_000_000));
        assert_eq!(row.next, ["cpus: 3", "memory: 3.8 GB", "time: 72 min"]);
        assert_eq!((row.cpus_used, row.cpus_asked), (Some(2.0), 8.0));
        assert_eq!(row.frees_core_hours, 5.0);
        assert!((row.frees_gb_hours - 12.2).abs() < 1e-9, "{}", row.frees_gb_hours);
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let mut fitting = used(7 * 3_600_000_000, 13_000_000_000);
        fitting.asked.time = None;
        assert_eq!(of("train", &fitting).next, Vec::<String>::new());
    }

    #[test]
    fn memory_is_rounded_up_to_two_digits() {
        for (bytes, words) in
            [(1.0, "10 MB"), (123e6, "130 MB"), (1_230e6, "1.3 GB"), (41_190e6, "42 GB"), (200e9, "200 GB")]
        {
            assert_eq!(in_words(rounded(bytes)), words);
        }
    }
}
