//! A prediction for people: tables, and sentences that fit a terminal.

use crate::print;
use std::collections::BTreeMap;
use std::time::Duration;
use tulpar::prediction::PredictionView;
use tulpar::view::count;
use tulpar::view::duration;
use tulpar_core::asynchrony::{Analysis, SetRow};
use tulpar_core::engine::Mode;
use tulpar_sim::advice::Advice;

/// More task sets than this are for JSON.
const MOST_ROWS: usize = 40;
const WIDTH: usize = 88;

pub(super) fn show(view: &PredictionView, rules: bool) {
    let site = &view.site;
    let gpus = if site.gpus > 0 { format!(", {}", count(site.gpus, "GPU")) } else { String::new() };
    print::line(&format!("{}: {}", view.workflow, count(view.tasks as usize, "task")));
    print::line(&format!("on {}: {}, {} cores{gpus}", site.name, count(site.nodes, "node"), site.cpus));
    durations(view);
    print::line("");
    task_sets(&view.model);
    print::line("");
    figures(&view.model);
    if rules {
        print::line("");
        all_rules(view);
    }
    print::line("");
    modes(view);
    print::line("");
    say("", &view.asynchronicity.words());
    binding(view);
    if !view.advised.advice.is_empty() {
        print::line("");
        print::line(&format!("What would end earlier, simulated in the {} mode:", view.mode));
        view.advised.advice.iter().for_each(advice);
    } else if view.advised.left_out.is_empty() && view.advised.simulations > 0 {
        print::line(&format!("Nothing that was tried saves 1 % of the {} mode.", view.mode));
    }
    for note in &view.advised.notes {
        say("- ", &capital(note));
    }
    if !view.remarks.is_empty() {
        print::line("");
        view.remarks.iter().for_each(|remark| say("- ", &capital(remark)));
    }
    let left_out = &view.advised.left_out;
    if !left_out.is_empty() {
        print::note(&wrapped(
            "",
            &format!(
                "Left out, because it would take too long: {}. `--budget {}` would include more.",
                left_out.join("; "),
                tulpar_sim::advice::USUAL_BUDGET * 10
            ),
        ));
    }
    if !rules {
        print::note("Some figures of the publication follow other rules than ours: `--rules` says which.");
    }
}

fn durations(view: &PredictionView) {
    let durations = &view.durations;
    let mut parts = Vec::new();
    if durations.seen_before > 0 {
        parts.push(format!("{} by earlier runs", durations.seen_before));
    }
    if durations.assumed > 0 {
        let names: Vec<&str> = durations.assumed_of.iter().take(3).map(String::as_str).collect();
        let more = durations.assumed - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!(
            "{} assumed to be {} (--assume): {}{more}",
            durations.assumed,
            time(durations.assumed_seconds),
            names.join(", "),
        ));
    }
    if !parts.is_empty() {
        say("run times of task sets: ", &format!("{} declared, {}", durations.declared, parts.join(", ")));
    }
}

fn task_sets(model: &Analysis) {
    let masked: BTreeMap<&str, &str> =
        model.asynchronous.masked.iter().map(|masked| (masked.set.as_str(), masked.by.as_str())).collect();
    let waits: BTreeMap<&str, f64> =
        model.asynchronous.serialised.iter().map(|set| (set.set.as_str(), set.seconds)).collect();
    let path: std::collections::BTreeSet<&str> = model.asynchronous.longest_path.iter().map(String::as_str).collect();
    let memory = model.sets.iter().any(|set| set.memory > 0);
    let mut header = vec!["rank", "task set", "tasks", "cores", "GPUs"];
    if memory {
        header.push("memory");
    }
    header.extend(["time s", "at once", "waves", "all s", "masked by"]);
    let mut sets: Vec<&SetRow> = model.sets.iter().collect();
    sets.sort_by_key(|set| set.rank);
    let rows = sets.iter().take(MOST_ROWS).map(|set| {
        let name = set.name.as_str();
        let how = match (masked.get(name), waits.get(name)) {
            _ if path.contains(name) => "(longest path)".to_owned(),
            (Some(by), _) => (*by).to_owned(),
            (None, Some(_)) => "(waits for room)".to_owned(),
            (None, None) => String::new(),
        };
        let mut cells = vec![
            set.rank.to_string(),
            name.to_owned(),
            set.tasks.to_string(),
            thousandths(set.milli_cpus),
            thousandths(set.milli_gpus),
        ];
        if memory {
            cells.push(tulpar_core::units::Bytes(set.memory).to_string());
        }
        cells.extend([
            number(set.seconds),
            set.at_once.to_string(),
            set.waves.to_string(),
            number(set.seconds_on_allocation),
            how,
        ]);
        cells
    });
    print::table(&header, &rows.collect::<Vec<_>>());
    if sets.len() > MOST_ROWS {
        print::note(&format!("and {} more task sets; --json has all", sets.len() - MOST_ROWS));
    }
}

fn figures(model: &Analysis) {
    let degrees = model.degrees_of_sets.unwrap_or(model.degrees);
    let at_most = match degrees.resources_at_most {
        most if most > degrees.resources => format!(" to {most}"),
        _ => String::new(),
    };
    let of = |degrees: &tulpar_core::asynchrony::Degrees, at_most: &str| {
        format!("DOA_dep {}, DOA_res {}{at_most}, WLA {}", degrees.dependencies, degrees.resources, degrees.wla)
    };
    let single = match model.degrees_of_sets {
        Some(_) => format!(" (over single tasks {})", of(&model.degrees, "")),
        None => String::new(),
    };
    print::line(&format!("{}{single}", of(&degrees, &at_most)));
    let asynchronous = &model.asynchronous;
    let staggered = match &model.unstaggered {
        Some(free) => format!("iterations staggered by a rank; {} s without stagger", number(free.seconds)),
        None => "the longest path, and what does not fit beside it".to_owned(),
    };
    let rows = vec![
        vec!["t_seq".to_owned(), seconds(model.sequential.seconds), "Eq. 2: rank after rank".to_owned()],
        vec!["t_async".to_owned(), seconds(asynchronous.seconds), format!("Eq. 3: {staggered}")],
        vec!["I".to_owned(), format!("{:.3}", model.improvement), "Eq. 5: 1 - t_async / t_seq".to_owned()],
    ];
    let mut rows = rows;
    if let Some(iterated) = &model.iterated {
        let stages = iterated.stages.iter().filter(|stage| stage.masked).count();
        rows.push(vec![
            String::new(),
            seconds(iterated.equation_6),
            format!("Eq. 6: {} iterations, {} of an iteration masked", iterated.iterations, count(stages, "stage")),
        ]);
    }
    let bounds = &model.bounds;
    let mut parts = vec![format!("critical path {} s", number(bounds.critical_path))];
    parts.push(format!("cores {} s", number(bounds.cpus)));
    if bounds.gpus > 0.0 {
        parts.push(format!("GPUs {} s", number(bounds.gpus)));
    }
    if let Some(memory) = bounds.memory.filter(|memory| *memory > bounds.seconds * 0.01) {
        parts.push(format!("memory {} s", number(memory)));
    }
    rows.push(vec!["at least".to_owned(), seconds(bounds.seconds), parts.join(", ")]);
    columns(&rows);
}

/// A table without a header.
fn columns(rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    for row in rows {
        print::line(&format!("{:first$}  {:>second$}  {}", row[0], row[1], row[2]));
    }
}

fn all_rules(view: &PredictionView) {
    for rule in view.rules {
        let equation = rule.equation.map(|number| format!(" (Eq. {number})")).unwrap_or_default();
        say("", &format!("{}{equation}: {}.", rule.figure, rule.rule));
        if let Some(published) = rule.published {
            say("    ", &format!("Published: {published}."));
        }
    }
}

fn modes(view: &PredictionView) {
    let sequential = view.simulated.sequential.filter(|it| it.done && it.seconds > 0.0);
    let some_gpus = Mode::ALL.iter().any(|(_, mode)| {
        view.simulated.of(*mode).is_some_and(|simulated| simulated.gpu_utilisation.is_some_and(|part| part > 0.0))
    });
    let mut header = vec!["mode", "simulated s", "", "I", "cores in use"];
    if some_gpus {
        header.push("GPUs in use");
    }
    let rows: Vec<Vec<String>> = Mode::ALL
        .iter()
        .map(|(name, mode)| {
            let Some(simulated) = view.simulated.of(*mode) else {
                return vec![(*name).to_owned(), "-".to_owned()];
            };
            let saved = sequential.filter(|_| simulated.done && *mode != Mode::Sequential);
            let words = if simulated.done {
                duration(Duration::from_secs_f64(simulated.seconds))
            } else {
                "not all tasks end well".to_owned()
            };
            let mut cells = vec![
                (*name).to_owned(),
                number(simulated.seconds),
                words,
                saved.map(|base| format!("{:.3}", 1.0 - simulated.seconds / base.seconds)).unwrap_or_default(),
                percent(simulated.cpu_utilisation),
            ];
            if some_gpus {
                cells.push(percent(simulated.gpu_utilisation));
            }
            cells
        })
        .collect();
    print::table(&header, &rows);
}

fn binding(view: &PredictionView) {
    let binding = &view.advised.binding;
    let Some(first) = binding.first() else { return };
    let twice = |binding: &tulpar_sim::advice::Binding| {
        format!("twice the {} would save {}", binding.resource, percent(Some(binding.twice_saves.max(0.0))))
    };
    let all: Vec<String> = binding.iter().map(twice).collect();
    if first.twice_saves >= tulpar_sim::advice::WORTHWHILE {
        say("", &format!("{} bind: {}.", capital(first.resource), all.join(", ")));
    } else {
        say("", &format!("No resource binds, the graph does: {}.", all.join(", ")));
    }
}

fn advice(advice: &Advice) {
    let saves = format!("{:>6}  ", percent(Some(advice.saves.fraction)));
    let (before, after) = (&advice.simulated.before, &advice.simulated.after);
    say(&saves, &format!("{}: {} s instead of {} s", advice.what, number(after.seconds), number(before.seconds)));
    let assuming = advice.assuming.as_ref().map(|text| format!("; if {text}")).unwrap_or_default();
    say("        ", &format!("because {}{assuming}", advice.because));
}

fn thousandths(milli: u64) -> String {
    (milli as f64 / 1000.0).to_string()
}

/// Tenths where they matter, and thousandths below a second.
fn number(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 0.95 {
        return format!("{seconds:.3}");
    }
    let rounded = (seconds * 10.0).round() / 10.0;
    if rounded.fract() == 0.0 || rounded >= 10_000.0 { format!("{seconds:.0}") } else { format!("{rounded:.1}") }
}

fn seconds(seconds: f64) -> String {
    format!("{} s", number(seconds))
}

fn time(seconds: f64) -> String {
    duration(Duration::from_secs_f64(seconds))
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn say(first: &str, text: &str) {
    print::line(&wrapped(first, text));
}

/// The lines of a text behind a word; further lines begin below it.
fn wrapped(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count().min(8));
    let mut lines = vec![first.to_owned()];
    let mut empty = true;
    // A number and its unit stay together.
    let text = text.replace(" %", "\u{a0}%").replace(" s ", "\u{a0}s ");
    let text = text.strip_suffix(" s").map_or(text.clone(), |rest| format!("{rest}\u{a0}s"));
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        let fits = line.chars().count() + 1 + word.chars().count() <= WIDTH;
        if !empty && !fits {
            lines.push(format!("{indent}{word}"));
            continue;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.join("\n").replace('\u{a0}', " ")
}
