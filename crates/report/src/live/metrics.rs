//! Runs in the text format of Prometheus: names with units, one block a metric, every label escaped.

use std::fmt::Write;

/// What is told about one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    pub run: String,
    pub workflow: String,
    /// `running`, `done`, …
    pub standing: &'static str,
    /// Nothing of it ran: its seconds are virtual, and nothing was measured.
    pub simulated: bool,
    /// Seconds since 1970.
    pub started: Option<f64>,
    pub seconds: f64,
    /// Jobs by state.
    pub jobs: Vec<(String, u64)>,
    pub reused: u64,
    pub events: u64,
    pub attempts: u64,
    /// Absent, as bytes, where nothing was measured.
    pub cpu_seconds: Option<f64>,
    pub wall_seconds: f64,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    /// Of the largest attempt, where any was seen.
    pub peak_memory: Option<u64>,
    /// What running attempts have now, where they are sampled.
    pub memory: Option<u64>,
    pub cores: Option<f64>,
    /// Files, bytes, seconds and repeated tries of transfers.
    pub transfers: Option<(u64, u64, f64, u64)>,
}

/// The whole answer of `/metrics`.
pub fn metrics(version: &str, runs: &[RunFigures]) -> String {
    let mut text = Text(String::new());
    text.block("tulpar_build_info", "gauge", "The version of Tulpar that answers.");
    text.sample("tulpar_build_info", &[("version", version)], 1.0);
    text.block("tulpar_run_info", "gauge", "A run, its workflow and how it stands.");
    for run in runs {
        let mut labels = vec![("run", run.run.as_str()), ("workflow", &run.workflow), ("state", run.standing)];
        if run.simulated {
            labels.push(("simulated", "true"));
        }
        text.sample("tulpar_run_info", &labels, 1.0);
    }
    text.block("tulpar_run_jobs", "gauge", "Jobs of a run by state.");
    for run in runs {
        for (state, count) in &run.jobs {
            text.sample("tulpar_run_jobs", &[("run", &run.run), ("state", state)], *count as f64);
        }
    }
    type Figure = fn(&RunFigures) -> Option<f64>;
    let figures: [(&str, &str, &str, Figure); 16] = [
        ("tulpar_run_start_time_seconds", "gauge", "When a run started, since 1970.", |run| run.started),
        ("tulpar_run_duration_seconds", "gauge", "How long a run took, or has taken by now.", |run| Some(run.seconds)),
        ("tulpar_run_jobs_reused", "gauge", "Jobs whose results were reused.", |run| Some(run.reused as f64)),
        ("tulpar_run_events_total", "counter", "Events in the journal of a run.", |run| Some(run.events as f64)),
        ("tulpar_run_attempts_total", "counter", "Attempts that ended.", |run| Some(run.attempts as f64)),
        ("tulpar_run_cpu_seconds_total", "counter", "CPU time of attempts that ended.", |run| run.cpu_seconds),
        ("tulpar_run_wall_seconds_total", "counter", "Wall time of attempts that ended.", |run| Some(run.wall_seconds)),
        ("tulpar_run_read_bytes_total", "counter", "Bytes read by attempts that ended.", |run| {
            run.read_bytes.map(|bytes| bytes as f64)
        }),
        ("tulpar_run_written_bytes_total", "counter", "Bytes written by attempts that ended.", |run| {
            run.written_bytes.map(|bytes| bytes as f64)
        }),
        ("tulpar_run_peak_memory_bytes", "gauge", "Memory of the largest attempt that ended.", |run| {
            run.peak_memory.map(|bytes| bytes as f64)
        }),
        ("tulpar_run_memory_bytes", "gauge", "Memory of all running attempts, by their last samples.", |run| {
            run.memory.map(|bytes| bytes as f64)
        }),
        ("tulpar_run_cores", "gauge", "Cores that running attempts keep busy, by their last samples.", |run| run.cores),
        ("tulpar_run_transfer_files_total", "counter", "Files moved.", |run| run.transfers.map(|moved| moved.0 as f64)),
        ("tulpar_run_transfer_bytes_total", "counter", "Bytes moved.", |run| run.transfers.map(|moved| moved.1 as f64)),
        ("tulpar_run_transfer_seconds_total", "counter", "Time spent moving files.", |run| {
            run.transfers.map(|moved| moved.2)
        }),
        ("tulpar_run_transfer_retries_total", "counter", "Tries of transfers beyond the first.", |run| {
            run.transfers.map(|moved| moved.3 as f64)
        }),
    ];
    for (name, kind, help, figure) in figures {
        let known: Vec<(&RunFigures, f64)> = runs.iter().filter_map(|run| Some((run, figure(run)?))).collect();
        if !known.is_empty() {
            text.block(name, kind, help);
            known.iter().for_each(|(run, value)| text.sample(name, &[("run", &run.run)], *value));
        }
    }
    text.0
}

struct Text(String);

impl Text {
    fn block(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(self.0, "{name}{{{}}} {value}", labels.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_in_the_format_of_prometheus() {
        let run = RunFigures {
            run: "a\"b\\-1".to_owned(),
            workflow: "w".to_owned(),
            standing: "running",
            started: Some(1.5),
            seconds: 2.0,
            jobs: vec![("done".to_owned(), 3), ("failed".to_owned(), 1)],
            cpu_seconds: Some(0.25),
            ..RunFigures::default()
        };
        let simulated =
            RunFigures { run: "sim-1".to_owned(), standing: "done", simulated: true, ..RunFigures::default() };
        let text = metrics("1.2", &[run, simulated]);
        for line in [
            "tulpar_build_info{version=\"1.2\"} 1",
            "# TYPE tulpar_run_jobs gauge",
            "tulpar_run_info{run=\"a\\\"b\\\\-1\",workflow=\"w\",state=\"running\"} 1",
            "tulpar_run_jobs{run=\"a\\\"b\\\\-1\",state=\"done\"} 3",
            "# HELP tulpar_run_cpu_seconds_total CPU time of attempts that ended.",
            "tulpar_run_cpu_seconds_total{run=\"a\\\"b\\\\-1\"} 0.25",
            "tulpar_run_info{run=\"sim-1\",workflow=\"\",state=\"done\",simulated=\"true\"} 1",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("transfer"), "what is not known is not told");
        assert!(!text.contains("cpu_seconds_total{run=\"sim-1") && !text.contains("read_bytes"), "{text}");
    }
}
