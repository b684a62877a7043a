//! What tasks asked for against what they used, and what to write next time.
//!
//! The rule: a fifth more than the largest that was seen, rounded up to two digits; cores by the mean, because more
//! threads than cores only wait. What was asked for and not held against anything is left as it is.

use crate::gather::{Gathered, Used};
use crate::measured::seconds;
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
pub(crate) fn in_words(bytes: f64) -> String {
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
