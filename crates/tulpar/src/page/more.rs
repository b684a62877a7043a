//! What a run used over time and what runs now; runs side by side; and all of it for Prometheus.

use super::differences::{self, Difference, Side};
use super::replays::{Look, read};
use super::runs::folded;
use super::{Given, Page, Trouble, json};
use crate::replay::{self, Standing};
use serde::Serialize;
use tulpar_report::live::{RunFigures, metrics};
use tulpar_store::{LiveAnswer, SetSummary, UsageColumn};
use tulpar_transfer::{Answer, Asked};

/// Columns of a chart: as many as a wide screen can show.
const COLUMNS: usize = 400;
/// Runs that Prometheus is told about beside those that go on.
const LATEST: usize = 20;
const MOST_COMPARED: usize = 4;
/// Running attempts that are listed.
const MOST_RUNNING: usize = 200;

#[derive(Serialize)]
struct UsageView {
    /// Of the site: 0 where another system has the nodes.
    cores: f64,
    memory: u64,
    gpus: usize,
    /// When the run began; times of the columns are since 1970, as this.
    from: u64,
    columns: Vec<UsageColumn>,
}

#[derive(Serialize)]
struct LeftView {
    /// Absent where nobody knows how long tasks take, or too much is left to be played through.
    left_us: Option<u64>,
    /// Whatever the order.
    least_us: Option<u64>,
}

#[derive(Serialize)]
struct RunningView {
    total: usize,
    running: Vec<LiveAnswer>,
}

#[derive(Serialize)]
struct CompareView {
    runs: Vec<ComparedRun>,
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct ComparedRun {
    run: String,
    standing: Standing,
    #[serde(skip_serializing_if = "is_false")]
    simulated: bool,
    took_us: Option<u64>,
    tasks: u64,
    reused: u64,
    failed: u64,
    #[serde(flatten)]
    total: Sums,
    sets: Vec<ComparedSet>,
}

#[derive(Serialize)]
struct ComparedSet {
    name: String,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Sums {
    attempts: u64,
    /// Of the attempts, those whose wall time is known.
    timed: u64,
    wall_us: u64,
    /// Absent, as the rest, where nobody measured it.
    cpu_us: Option<u64>,
    peak_rss: Option<u64>,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
}

impl Sums {
    fn of<'a>(summaries: impl Iterator<Item = &'a SetSummary>) -> Self {
        summaries.fold(Sums::default(), |sums, set| {
            let with = |sum: Option<u64>, of: u64| if set.measured > 0 { Some(sum.unwrap_or(0) + of) } else { sum };
            Sums {
                attempts: sums.attempts + set.attempts,
                timed: sums.timed + set.timed,
                wall_us: sums.wall_us + set.wall_us.total,
                cpu_us: with(sums.cpu_us, set.cpu_us.total),
                peak_rss: sums.peak_rss.max(Some(set.peak_rss.max).filter(|bytes| *bytes > 0)),
                read_bytes: with(sums.read_bytes, set.read_bytes.total),
                write_bytes: with(sums.write_bytes, set.write_bytes.total),
            }
        })
    }

    /// What is invented of a simulated run is not shown as measured.
    fn of_run(self, simulated: bool) -> Self {
        match simulated {
            true => Self { cpu_us: None, peak_rss: None, read_bytes: None, write_bytes: None, ..self },
            false => self,
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Page {
    /// How long the run will still take, as playing it through says.
    pub(super) fn left(&self, run: &str) -> Given {
        let now = replay::now();
        let goes_on = self.board.line(run).is_some_and(|line| line.standing == Standing::Running);
        let forecast = match self.replays.of(&self.folder(run)?)? {
            Look::Whole(shown) if goes_on => read(&shown).replayed.engine.forecast(now),
            _ => None,
        };
        json(&LeftView {
            left_us: forecast.map(|forecast| forecast.end.0.saturating_sub(now.0)),
            least_us: forecast.map(|forecast| forecast.bound.0.saturating_sub(now.0)),
        })
    }

    /// The attempts that run now, as they were last seen.
    pub(super) fn running(&self, run: &str) -> Given {
        let facts = self.run_facts(run)?;
        let mut running = self.stores.ask(|store| store.latest_samples(run))?;
        let total = running.len();
        running.truncate(MOST_RUNNING);
        for attempt in &mut running {
            if let Some(kind) = facts.kind_name(attempt.set.as_deref()) {
                attempt.set = Some(kind.to_owned());
            }
        }
        json(&RunningView { total, running })
    }

    pub(super) fn usage(&self, run: &str) -> Given {
        let facts = self.run_facts(run)?;
        let columns = self.stores.ask(|store| store.usage_over_time(run, COLUMNS))?;
        let from = self.board.line(run).and_then(|line| line.started).map_or(0, |at| at.0);
        let (cores, memory, gpus) = facts.site.size();
        json(&UsageView { cores, memory, gpus, from, columns })
    }

    /// `?run=a&run=b`
    pub(super) fn compare(&self, asked: &Asked) -> Given {
        let names: Vec<&str> = asked.queries("run").take(MOST_COMPARED).collect();
        let runs = names.iter().map(|run| self.compared(run)).collect::<Result<_, Trouble>>()?;
        let sides = names.iter().map(|run| {
            let line = self.board.line(run).ok_or_else(|| Trouble::NotFound(format!("no run is called `{run}`")))?;
            Ok(Side::new(&line, &self.run_facts(run)?.inputs))
        });
        let differences = differences::between(&sides.collect::<Result<Vec<_>, Trouble>>()?);
        json(&CompareView { runs, differences })
    }

    fn compared(&self, run: &str) -> Result<ComparedRun, Trouble> {
        let facts = self.run_facts(run)?;
        let line = self.board.line(run).ok_or_else(|| Trouble::NotFound(format!("no run is called `{run}`")))?;
        let summaries = if line.events == 0 { Vec::new() } else { self.stores.ask(|store| store.sets(run))? };
        let sets = folded(&facts, &summaries).into_iter().map(|(node, members)| ComparedSet {
            name: node.name.clone(),
            sums: Sums::of(members.iter().map(|place| &summaries[*place])).of_run(line.simulated),
        });
        Ok(ComparedRun {
            run: line.run.clone(),
            standing: line.standing,
            simulated: line.simulated,
            took_us: line.took_us(),
            tasks: line.tasks,
            reused: line.reused,
            failed: line.states.get("failed").copied().unwrap_or(0),
            total: Sums::of(summaries.iter()).of_run(line.simulated),
            sets: sets.collect(),
        })
    }

    pub(super) fn metrics(&self) -> Given {
        let lines = self.board.lines();
        let late = lines.len().saturating_sub(LATEST);
        let told = lines.into_iter().enumerate();
        let told = told.filter(|(place, line)| *place >= late || line.standing == Standing::Running);
        let mut runs = Vec::new();
        for (_, line) in told.filter(|(_, line)| line.events > 0) {
            let live = line.standing == Standing::Running;
            let (sets, running, moved) = self.stores.ask(|store| {
                let running = if live { store.latest_samples(&line.run)? } else { Vec::new() };
                Ok((store.sets(&line.run)?, running, store.transfer_totals(&line.run)?))
            })?;
            let sums = Sums::of(sets.iter()).of_run(line.simulated);
            let known = || running.iter().filter_map(|attempt| attempt.sample);
            runs.push(RunFigures {
                standing: line.standing.word(),
                simulated: line.simulated,
                started: line.started.filter(|_| !line.simulated).map(|at| at.0 as f64 / 1e6),
                seconds: line.took_us().unwrap_or(0) as f64 / 1e6,
                reused: line.reused,
                events: line.events,
                attempts: sums.attempts,
                cpu_seconds: sums.cpu_us.map(|us| us as f64 / 1e6),
                wall_seconds: sums.wall_us as f64 / 1e6,
                read_bytes: sums.read_bytes,
                written_bytes: sums.write_bytes,
                peak_memory: sums.peak_rss,
                memory: live.then(|| known().map(|sample| sample.rss).sum()),
                cores: live.then(|| running.iter().filter_map(|attempt| attempt.cpus).sum()),
                transfers: moved.map(|[files, bytes, us, retries]| (files, bytes, us as f64 / 1e6, retries)),
                jobs: line.states.into_iter().collect(),
                run: line.run,
                workflow: line.workflow,
            });
        }
        let text = metrics(env!("CARGO_PKG_VERSION"), &runs);
        Ok(Answer::new(200, "text/plain; version=0.0.4; charset=utf-8", text.into_bytes()))
    }
}

impl super::runs::RunLine {
    /// Until its end, or now.
    fn took_us(&self) -> Option<u64> {
        let until = if self.standing == Standing::Running { Some(replay::now()) } else { self.until };
        Some(until?.0.saturating_sub(self.started?.0))
    }
}
