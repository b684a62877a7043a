//! The figures of a simulation, for people.

use crate::print;
use std::time::Duration;
use tulpar::simulate::view::{GroupView, SimulationView};
use tulpar::view::count;
use tulpar::view::duration;
use tulpar_core::event::Outcome;

/// More groups than this are for JSON.
const MOST_ROWS: usize = 40;

fn row(group: &GroupView) -> Vec<String> {
    let time = |seconds: f64| duration(Duration::from_secs_f64(seconds));
    let at = |seconds: Option<f64>| seconds.map(|seconds| format!("{seconds:.1}")).unwrap_or_default();
    vec![
        group.name.clone(),
        group.done.to_string(),
        group.most_at_once.to_string(),
        group.waves.to_string(),
        time(group.mean_runtime_seconds),
        time(group.mean_wait_seconds),
        time(group.longest_wait_seconds),
        at(group.first_start_seconds),
        at(group.last_end_seconds),
    ]
}

pub(super) fn print(view: &SimulationView) {
    let site = &view.site;
    let gpus = if site.gpus > 0 { format!(", {}", count(site.gpus, "GPU")) } else { String::new() };
    print::line(&format!("site      {}: {}, {} cores{gpus}", site.name, count(site.nodes, "node"), site.cpus));
    let outcome = match view.outcome {
        Outcome::Done => String::new(),
        other => format!(" ({})", outcome_word(other)),
    };
    print::line(&format!("tasks     {} of {} done{outcome}", view.done, view.tasks));
    let makespan = duration(Duration::from_secs_f64(view.makespan_seconds));
    print::line(&format!("makespan  {:.1} s ({makespan})", view.makespan_seconds));
    print::line(&format!("cores     {} in use", percent(view.cpu_utilisation)));
    if site.gpus > 0 {
        print::line(&format!("GPUs      {} in use", percent(view.gpu_utilisation)));
    }
    let time = |seconds: f64| duration(Duration::from_secs_f64(seconds));
    print::line(&format!(
        "waited    {} in the mean, {} at most",
        time(view.mean_wait_seconds),
        time(view.longest_wait_seconds)
    ));
    if view.evicted + view.failed > 0 {
        print::line(&format!("attempts  {}: {} evicted, {} failed", view.attempts, view.evicted, view.failed));
    }
    if !view.groups.is_empty() {
        print::line("");
        let header = [
            "task",
            "done",
            "at once",
            "waves",
            "run time",
            "mean wait",
            "longest wait",
            "first start s",
            "last end s",
        ];
        let rows: Vec<Vec<String>> = view.groups.iter().take(MOST_ROWS).map(row).collect();
        print::table(&header, &rows);
        if view.groups.len() > MOST_ROWS {
            print::note(&format!("and {} more; --json has all", view.groups.len() - MOST_ROWS));
        }
    }
    if view.unknown_runtimes > 0 {
        print::note(&format!(
            "Of {} nothing is known: `runtime:` says how long tasks take, and so do earlier runs; \
             --default-runtime holds for the rest.",
            count(view.unknown_runtimes, "task set")
        ));
    }
    print::note(&format!("{} events simulated in {}", view.events, duration(view.simulated_in)));
    if let Some(run) = &view.run {
        print::note(&format!("Kept as {run}: `tulpar status {run}` and `tulpar story` work on it."));
    }
}

pub(super) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
        Outcome::Interrupted => "interrupted",
    }
}

pub(super) fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
}
