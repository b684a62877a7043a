//! The facts and tables of runs, in words, the same in the page and in Markdown.

use crate::forecast::Figures;
use crate::summary::{RunReport, SetRow};
use crate::words::{NONE, NOT_RECORDED, Table, long_seconds, number, percent, seconds};
use tulpar_core::engine::Mode;
use tulpar_core::provenance::{Code, Metric, parameter_words};

fn improvement(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}"))
}

fn range<T: PartialEq + Copy>(ends: [T; 2], text: impl Fn(T) -> String) -> String {
    if ends[0] == ends[1] { text(ends[0]) } else { format!("{}–{}", text(ends[0]), text(ends[1])) }
}

/// How it stands.
pub(crate) fn state(run: &RunReport) -> String {
    let how = if run.facts.simulated { ", simulated" } else { "" };
    format!("{}{how}", run.facts.standing)
}

/// What is known of the run as a whole.
pub(crate) fn facts(run: &RunReport) -> Vec<(&'static str, String)> {
    let facts = &run.facts;
    let nodes = if run.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", run.nodes) };
    let gpus = match run.gpus {
        0 => String::new(),
        1 => ", 1 GPU".to_owned(),
        many => format!(", {many} GPUs"),
    };
    let mut list = vec![
        ("workflow", format!("{} ({})", run.workflow, facts.workflow_file.trim_start_matches("./"))),
        ("state", state(run)),
        ("tasks", run.tasks.to_string()),
        ("site", format!("{}: {nodes}, {} cores{gpus}", run.site, number(run.cpus))),
    ];
    if let Some(mode) = &facts.mode {
        list.push(("mode", mode.clone()));
    }
    // Virtual time begins whenever it likes.
    if let Some(started) = run.started.as_ref().filter(|_| !facts.simulated) {
        let (date, time) = started.split_once('T').unwrap_or((started, ""));
        list.push(("started", format!("{date} {} UTC", time.get(..8).unwrap_or(time))));
    }
    list.push(("makespan, start to end of the run", long_seconds(run.measured.makespan_seconds)));
    if let Some(execution) = run.measured.execution_seconds {
        list.push(("execution, first start to last end", long_seconds(execution)));
    }
    if run.resumed > 0 {
        let times = if run.resumed == 1 { "once".to_owned() } else { format!("{} times", run.resumed) };
        list.push(("resumed", format!("{times}; {} of pauses are left out", long_seconds(run.paused_seconds))));
    }
    list.extend(facts.provenance.lines());
    // Searches have a part of their own.
    let is_search = |metric: &&Metric| run.searches.iter().any(|search| search.task == metric.set);
    let metrics: Vec<String> = run.metrics.iter().filter(|metric| !is_search(metric)).map(Metric::words).collect();
    if !metrics.is_empty() {
        list.push(("metrics", metrics.join(", ")));
    }
    list.push(("made by", format!("Tulpar {}", facts.version)));
    list
}

pub(crate) fn sets(rows: &[SetRow]) -> Table {
    let header =
        ["task set", "tasks", "cores", "GPUs", "mean s", "min s", "max s", "ran", "reused", "failed", "retries"];
    let mut table = Table::new(&header, 1);
    let time = |value: Option<f64>| {
        value.map_or_else(|| NONE.to_owned(), |value| seconds(value).trim_end_matches(" s").to_owned())
    };
    for row in rows {
        table.rows.push(vec![
            row.name.clone(),
            row.tasks.to_string(),
            range(row.cpus, number),
            range(row.gpus, number),
            time(row.mean_seconds),
            time(row.min_seconds),
            time(row.max_seconds),
            row.ran.to_string(),
            row.reused.to_string(),
            row.failed.to_string(),
            row.retries.to_string(),
        ]);
    }
    table
}

/// Predicted, simulated, measured.
pub(crate) fn side_by_side(run: &RunReport) -> Table {
    let measured = &run.measured;
    let forecast = run.forecast.as_ref();
    let (predicted, simulated) = (forecast.and_then(|it| it.predicted), forecast.and_then(|it| it.simulated));
    let this = if run.facts.simulated { "this simulation" } else { "measured" };
    let mut table = Table::new(&["", "predicted", "simulated", this], 1);
    let expected = |figures: Option<Figures>, say: &dyn Fn(Figures) -> String| {
        figures.map_or_else(|| NOT_RECORDED.to_owned(), say)
    };
    let mut row = |name: &str, say: &dyn Fn(Figures) -> String, measured: String| {
        table.rows.push(vec![name.to_owned(), expected(predicted, say), expected(simulated, say), measured]);
    };
    let off = |figures: Figures| {
        let time = seconds(figures.makespan_seconds);
        if measured.makespan_seconds <= 0.0 || run.reused() > 0 {
            return time;
        }
        let by = figures.makespan_seconds / measured.makespan_seconds - 1.0;
        format!("{time} ({:+.1} %)", by * 100.0)
    };
    row("makespan", &off, seconds(measured.makespan_seconds));
    let execution = measured.execution_seconds.map_or_else(|| NONE.to_owned(), seconds);
    row("execution", &|_| NONE.to_owned(), execution);
    let share = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), percent);
    row("CPU utilisation", &|figures| share(figures.cpu_utilisation), percent(measured.cpu.of_makespan));
    if let Some(gpu) = &measured.gpu {
        row("GPU utilisation", &|figures| share(figures.gpu_utilisation), percent(gpu.of_makespan));
    }
    row("improvement I", &|figures| improvement(figures.improvement), improvement(measured.improvement));
    table
}

/// What each mode was expected to take.
pub(crate) fn modes(run: &RunReport) -> Option<Table> {
    let forecast = run.forecast.as_ref().filter(|forecast| !forecast.by_mode.is_empty())?;
    let mut table = Table::new(&["mode", "predicted", "simulated", "CPU", "GPU", "I"], 1);
    let share = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), percent);
    let mut by_mode: Vec<_> = forecast.by_mode.iter().collect();
    by_mode.sort_by_key(|(name, _)| Mode::ALL.iter().position(|(known, _)| known == name).unwrap_or(Mode::ALL.len()));
    for (name, mode) in by_mode {
        let time = |figures: Option<Figures>| {
            figures.map_or_else(|| NONE.to_owned(), |figures| seconds(figures.makespan_seconds))
        };
        let best = mode.simulated.or(mode.predicted);
        let this = if run.facts.mode.as_ref() == Some(name) { " (this run)" } else { "" };
        table.rows.push(vec![
            format!("{name}{this}"),
            time(mode.predicted),
            time(mode.simulated),
            share(best.and_then(|figures| figures.cpu_utilisation)),
            share(best.and_then(|figures| figures.gpu_utilisation)),
            improvement(best.and_then(|figures| figures.improvement)),
        ]);
    }
    Some(table)
}

/// Several runs, one a row.
pub(crate) fn runs(runs: &[RunReport]) -> Table {
    let mut table = Table::new(&["run", "state", "mode", "makespan", "execution", "CPU", "GPU", "I"], 3);
    for run in runs {
        let measured = &run.measured;
        table.rows.push(vec![
            run.facts.run.clone(),
            state(run),
            run.facts.mode.clone().unwrap_or_else(|| NONE.to_owned()),
            seconds(measured.makespan_seconds),
            measured.execution_seconds.map_or_else(|| NONE.to_owned(), seconds),
            percent(measured.cpu.of_makespan),
            measured.gpu.map_or_else(|| NONE.to_owned(), |gpu| percent(gpu.of_makespan)),
            improvement(measured.improvement),
        ]);
    }
    let parameters = |run: &RunReport| parameter_words(&run.facts.provenance.parameters);
    let commit = |run: &RunReport| run.facts.provenance.code.as_ref().map(Code::short).unwrap_or_default();
    let metrics = |run: &RunReport| run.metrics.iter().map(Metric::words).collect::<Vec<_>>().join(", ");
    let more: [(&str, Vec<String>); 3] = [
        ("parameters", runs.iter().map(parameters).collect()),
        ("commit", runs.iter().map(commit).collect()),
        ("metrics", runs.iter().map(metrics).collect()),
    ];
    for (title, cells) in more {
        if cells.iter().any(|cell| !cell.is_empty()) {
            table.header.push(title.to_owned());
            table.numeric.push(false);
            table.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
    }
    table
}

/// What the figures mean, one sentence each.
pub(crate) fn notes(run: &RunReport) -> Vec<String> {
    let mut notes = vec![
        "Utilisation is what tasks held while they ran (the cores and GPUs they had asked for), of all that the site \
         has, over the whole makespan."
            .to_owned(),
    ];
    let of = |name: &str, share: Option<f64>| share.map(|share| format!("{} of the {name}", percent(share)));
    let gpu = run.measured.gpu.and_then(|gpu| of("GPUs", gpu.of_execution));
    let shares: Vec<String> = of("cores", run.measured.cpu.of_execution).into_iter().chain(gpu).collect();
    if !shares.is_empty() {
        notes.push(format!("From the first start to the last end alone it is {}.", shares.join(" and ")));
    }
    if let Some(against) = &run.measured.improvement_against {
        notes.push(format!("I = 1 − t / t(sequential); measured against {against}."));
    }
    if run.forecast.is_some() && run.reused() > 0 {
        notes.push(format!(
            "What was predicted and simulated is for all {} tasks; {} were reused, so it is not compared with what was measured.",
            run.tasks,
            run.reused()
        ));
    }
    if run.forecast.is_none() {
        notes.push("No forecast was recorded when this run was started.".to_owned());
    }
    notes
}
