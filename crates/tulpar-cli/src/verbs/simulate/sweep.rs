//! Many simulations at once: every combination of what is varied, several times each, on all cores. The table does not
//! depend on which was over first.

use super::gauge::Gauge;
use super::show::percent;
use crate::failure::Exit;
use crate::print;
use crate::simulation::{Point, SimulateArguments, Sweep, Varied};
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tulpar::Failure;
use tulpar::simulate::imitate::{self, Case};
use tulpar::simulate::source::Source;
use tulpar::simulate::{USUAL_SEED, site};
use tulpar_core::diagnostic::did_you_mean;
use tulpar_core::event::Outcome;
use tulpar_core::plan::Plan;
use tulpar_core::site::Site;

const MOST_SIMULATIONS: usize = 1_000_000;

/// One row of the table before it is simulated.
struct Combination {
    values: BTreeMap<String, String>,
    varied: Varied,
    plan: Arc<Plan>,
}

/// What one simulation came to.
#[derive(Clone, Copy)]
struct Single {
    done: bool,
    makespan: f64,
    cpu: Option<f64>,
    gpu: Option<f64>,
    wait: f64,
}

#[derive(Serialize)]
struct Row {
    values: BTreeMap<String, String>,
    simulations: usize,
    done: usize,
    makespan_seconds: f64,
    makespan_deviation: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_utilisation: Option<f64>,
    mean_wait_seconds: f64,
}

pub(super) fn sweep(source: Source, arguments: &SimulateArguments, stopped: &AtomicBool) -> Result<ExitCode, Failure> {
    let combinations = combinations(&source, arguments)?;
    let repeat = arguments.repeat.unwrap_or(1) as usize;
    let total = combinations.len().saturating_mul(repeat);
    if total > MOST_SIMULATIONS {
        return Err(Failure::usage_with(
            format!("{total} simulations are too many"),
            "vary fewer options, or in several sweeps",
        ));
    }
    let next = AtomicUsize::new(0);
    let over = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Single>>> = Mutex::new(vec![None; total]);
    let failure: Mutex<Option<Failure>> = Mutex::new(None);
    let gauge = Mutex::new(Gauge::new(arguments.json || arguments.csv));
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get()).min(total);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= total || stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    match simulate(&combinations[number / repeat], number % repeat, &source, stopped) {
                        Ok(single) => held(&results)[number] = single,
                        Err(error) => {
                            *held(&failure) = Some(error);
                            next.store(total, Ordering::Relaxed);
                        }
                    }
                    held(&gauge).count(over.fetch_add(1, Ordering::Relaxed) + 1, total);
                }
            });
        }
    });
    held(&gauge).finish();
    if let Some(failure) = held(&failure).take() {
        return Err(failure);
    }
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rows: Vec<Row> = combinations
        .iter()
        .zip(results.chunks(repeat))
        .filter_map(|(combination, singles)| {
            // What was interrupted half-way would be another mean.
            let singles: Vec<Single> = singles.iter().copied().collect::<Option<_>>()?;
            Some(row(combination, &singles))
        })
        .collect();
    show(&rows, arguments, repeat);
    if stopped.load(Ordering::Relaxed) {
        print::note(&format!("Stopped: {} of {} rows are complete.", rows.len(), combinations.len()));
        return Ok(Exit::Interrupted.into());
    }
    let done = rows.iter().all(|row| row.done == row.simulations);
    Ok(if done { Exit::Done } else { Exit::WorkflowFailed }.into())
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn simulate(
    combination: &Combination,
    repetition: usize,
    source: &Source,
    stopped: &AtomicBool,
) -> Result<Option<Single>, Failure> {
    let Combination { varied, plan, .. } = combination;
    let seed = varied.world.seed.unwrap_or(USUAL_SEED).wrapping_add(repetition as u64);
    let case = Case {
        plan: plan.clone(),
        policy: imitate::policy(varied.scheduling.policy()),
        model: site::model(&plan.site, &varied.world.choice(), &source.runtimes, seed),
    };
    let imitated = imitate::imitate(&case, None, |_, _, _| {
        Ok(if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(imitated.map(|imitated| Single {
        done: imitated.outcome == Outcome::Done,
        makespan: imitated.summary.makespan().as_secs_f64(),
        cpu: imitated.summary.cpu_utilisation(),
        gpu: imitated.summary.gpu_utilisation(),
        wait: imitated.summary.mean_wait().as_secs_f64(),
    }))
}

/// Every combination, the last option varying fastest. Plans differ by their sites only, and equal ones are shared.
fn combinations(source: &Source, arguments: &SimulateArguments) -> Result<Vec<Combination>, Failure> {
    let mut choices: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for Sweep { option, values } in &arguments.sweep {
        if choices.len().saturating_mul(values.len()) > MOST_SIMULATIONS {
            return Err(Failure::usage_with("these are too many combinations", "vary fewer options"));
        }
        choices = choices
            .iter()
            .flat_map(|before| {
                values
                    .iter()
                    .map(move |value| before.iter().copied().chain([(option.as_str(), value.as_str())]).collect())
            })
            .collect();
    }
    let mut plans: Vec<Arc<Plan>> = Vec::new();
    let mut made = Vec::with_capacity(choices.len());
    for choice in choices {
        let mut point = Point { varied: arguments.varied.clone() };
        let mut base = source.site.clone();
        for (option, value) in &choice {
            match *option {
                "site" => base = known_site(source, value)?,
                _ => set(&mut point, option, value)?,
            }
        }
        let varied = point.varied;
        let site = site::site(&base, &varied.resources.choice())?;
        if site.nodes.is_empty() {
            return Err(Failure::usage_with("the site has no nodes", "say `--cpus N`, or choose one with `--site`"));
        }
        let plan = match plans.iter().find(|plan| plan.site == site) {
            Some(plan) => plan.clone(),
            None => {
                let plan = Arc::new(Plan { site, ..source.plan.clone() });
                plans.push(plan.clone());
                plan
            }
        };
        let values = choice.iter().map(|(option, value)| ((*option).to_owned(), (*value).to_owned())).collect();
        made.push(Combination { values, varied, plan });
    }
    Ok(made)
}

fn known_site(source: &Source, name: &str) -> Result<Site, Failure> {
    let site = source.catalogue.site(name).filter(|site| !site.nodes.is_empty());
    site.cloned().ok_or_else(|| {
        Failure::usage_with(
            format!("no site with nodes is called `{name}`"),
            "`tulpar sites` lists those that are known",
        )
    })
}

fn set(point: &mut Point, option: &str, value: &str) -> Result<(), Failure> {
    let word = format!("--{option}={value}");
    point.try_update_from([word.as_str()]).map_err(|error| {
        use clap::CommandFactory;
        let command = Point::command();
        let known: Vec<&str> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
        if known.contains(&option) {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            return Failure::usage(format!("--sweep {option}: {first}"));
        }
        let hint = match did_you_mean(option, known.iter().copied().chain(["site"])) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("these can be varied: site, {}", known.join(", ")),
        };
        Failure::usage_with(format!("--sweep: there is no option `{option}` to vary"), hint)
    })
}

fn row(combination: &Combination, singles: &[Single]) -> Row {
    let count = singles.len() as f64;
    let mean = |of: &dyn Fn(&Single) -> f64| singles.iter().map(of).sum::<f64>() / count;
    let all = |of: &dyn Fn(&Single) -> Option<f64>| {
        let values: Option<Vec<f64>> = singles.iter().map(of).collect();
        values.map(|values| values.iter().sum::<f64>() / count)
    };
    let makespan = mean(&|single| single.makespan);
    let squares: f64 = singles.iter().map(|single| (single.makespan - makespan).powi(2)).sum();
    Row {
        values: combination.values.clone(),
        simulations: singles.len(),
        done: singles.iter().filter(|single| single.done).count(),
        makespan_seconds: makespan,
        // Of a sample, not of all there could be.
        makespan_deviation: if singles.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
        cpu_utilisation: all(&|single| single.cpu),
        gpu_utilisation: all(&|single| single.gpu),
        mean_wait_seconds: mean(&|single| single.wait),
    }
}

fn show(rows: &[Row], arguments: &SimulateArguments, repeat: usize) {
    if arguments.json {
        return print::json(&rows);
    }
    let options: Vec<&str> = arguments.sweep.iter().map(|sweep| sweep.option.as_str()).collect();
    let cell = |row: &Row, option: &str| row.values.get(option).cloned().unwrap_or_default();
    if arguments.csv {
        let fixed =
            "simulations,done,makespan_seconds,makespan_deviation,cpu_utilisation,gpu_utilisation,mean_wait_seconds";
        let header: Vec<String> = options.iter().map(|option| quoted(option)).chain([fixed.to_owned()]).collect();
        print::line(&header.join(","));
        for row in rows {
            let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let mut cells: Vec<String> = options.iter().map(|option| quoted(&cell(row, option))).collect();
            cells.extend([row.simulations.to_string(), row.done.to_string()]);
            cells.extend([row.makespan_seconds.to_string(), row.makespan_deviation.to_string()]);
            cells.extend([number(row.cpu_utilisation), number(row.gpu_utilisation), row.mean_wait_seconds.to_string()]);
            print::line(&cells.join(","));
        }
        return;
    }
    let some_failed = rows.iter().any(|row| row.done < row.simulations);
    let some_gpus = rows.iter().any(|row| row.gpu_utilisation.is_some());
    let mut header = options.clone();
    header.push("makespan s");
    if repeat > 1 {
        header.push("± s");
    }
    header.push("cores");
    if some_gpus {
        header.push("GPUs");
    }
    header.push("mean wait s");
    if some_failed {
        header.push("done");
    }
    let cells = |row: &Row| {
        let mut cells: Vec<String> = options.iter().map(|option| cell(row, option)).collect();
        cells.push(format!("{:.1}", row.makespan_seconds));
        if repeat > 1 {
            cells.push(format!("{:.1}", row.makespan_deviation));
        }
        cells.push(percent(row.cpu_utilisation));
        if some_gpus {
            cells.push(percent(row.gpu_utilisation));
        }
        cells.push(format!("{:.1}", row.mean_wait_seconds));
        if some_failed {
            cells.push(format!("{} of {}", row.done, row.simulations));
        }
        cells
    };
    let table: Vec<Vec<String>> = rows.iter().map(cells).collect();
    print::table(&header, &table);
}

/// A cell of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
