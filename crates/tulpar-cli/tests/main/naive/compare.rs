//! Compares the real engine with the naive one: results, decisions, forecasts, trials and lineage.

use super::model::{Files, Found, Job, Truth, digest, evaluate, hex, loss};
use super::play::{Checked, Play};
use super::world::{Kind, Search, Task, World};
use crate::main::harness::Said;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that a run showed.
pub(crate) struct Seen {
    pub(crate) results: Files,
    /// The files of the run, as `outputs --to` restores them.
    made: Files,
    rows: BTreeMap<String, Row>,
    /// Trials as they are exported.
    trials: BTreeMap<String, Value>,
}

struct Row {
    state: String,
    reused: bool,
    parameters: Option<Value>,
}

impl Seen {
    pub(crate) fn new(said: &Said, status: &Said, exported: &str, results: Files, made: Files) -> Checked<Self> {
        let view: Value = serde_json::from_str(&status.out).map_err(|error| format!("status: {error}: {status}"))?;
        let run = &said.json()["run"];
        if view["run"] != *run {
            return Err(format!("status is about {}, not {run}", view["run"]));
        }
        let rows = view["list"].as_array().ok_or("status lists no tasks")?.iter().map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let parameters = row.get("parameters").cloned();
            (text("task"), Row { state: text("state"), reused: row["reused"] == true, parameters })
        });
        let trials = exported.lines().map(|line| {
            let row: Value = serde_json::from_str(line).map_err(|error| format!("export: {error}: {line}"))?;
            Ok((row["name"].as_str().unwrap_or_default().to_owned(), row))
        });
        Ok(Self { results, made, rows: rows.collect(), trials: trials.collect::<Checked<_>>()? })
    }
}

struct Done {
    /// The digests of its outputs.
    outputs: BTreeSet<String>,
    trial: bool,
}

/// The naive engine's view of the cache.
#[derive(Default)]
pub(crate) struct Memory {
    /// Tasks that were done, by key.
    done: BTreeMap<String, Done>,
    /// The runs that really ran a task, by its key.
    ran: BTreeMap<String, BTreeSet<String>>,
    /// Tasks of runs that were disturbed: they may have been done.
    pub(crate) maybe: BTreeSet<String>,
    /// Searches that were finished, with their points.
    finished: BTreeMap<String, BTreeMap<String, Value>>,
    /// The outcome of each run, by its name.
    runs: BTreeMap<String, Truth>,
    /// Something was disturbed: other tasks than these may have been done.
    pub(crate) unsure: bool,
}

impl Memory {
    pub(crate) fn remember(
        &mut self,
        world: &World,
        truth: &Truth,
        seen: &Seen,
        found: &BTreeMap<String, Found>,
        run: &str,
    ) {
        for job in truth.jobs.values() {
            let outputs = job.outputs.iter().flatten().map(|(_, text)| hex(text)).collect();
            self.done.insert(job.key(), Done { outputs, trial: job.point.is_some() });
            if !seen.rows[&job.name].reused {
                self.ran.entry(job.key()).or_default().insert(run.to_owned());
            }
        }
        for (task, search) in searches_of(world) {
            let points = points(&found[&task.name]);
            self.finished.insert(identity(task, search, truth), points);
        }
        self.runs.insert(run.to_owned(), truth.clone());
    }

    /// An object is gone from the cache. The numbers that a trial said are objects too, which no file shows.
    pub(crate) fn lose(&mut self, object: &str, is_file: bool) {
        let maybe = |done: &Done| done.outputs.contains(object) || (!is_file && done.trial);
        self.maybe.extend(self.done.extract_if(.., |_, done| maybe(done)).map(|(key, _)| key));
        self.finished.clear();
    }
}

fn searches_of(world: &World) -> impl Iterator<Item = (&Task, &Search)> {
    world.tasks.iter().filter_map(|task| match &task.kind {
        Kind::Search(search) => Some((task, search)),
        _ => None,
    })
}

fn points(found: &Found) -> BTreeMap<String, Value> {
    found.points.iter().map(|(name, (point, _))| (name.clone(), point.clone())).collect()
}

/// Everything that a search depends on.
fn identity(task: &Task, search: &Search, truth: &Truth) -> String {
    let first = truth.jobs.get(&format!("{}[trial=1]", task.name)).cloned().unwrap_or_default();
    format!("{search:?}\n{:?}\n{:?}", first.variables, first.inputs)
}

/// The results of a run's searches: every trial got the parameters that its record names.
pub(crate) fn found(world: &World, seen: &Seen) -> Checked<BTreeMap<String, Found>> {
    let mut all = BTreeMap::new();
    for (task, search) in searches_of(world) {
        let mut found = Found::default();
        for trial in 1..=search.trials {
            let name = format!("{}[trial={trial}]", task.name);
            let row = seen.rows.get(&name).ok_or_else(|| format!("there is no {name}"))?;
            let exported = seen.trials.get(&name).ok_or_else(|| format!("{name} is not exported"))?;
            let point = row.parameters.clone().ok_or_else(|| format!("{name} has no parameters"))?;
            if exported["params"] != point {
                return Err(format!("{name} has {point} in status, and {} where it is exported", exported["params"]));
            }
            let path = format!("{}-{trial}.txt", task.name);
            let text = seen.made.get(&path).ok_or_else(|| format!("there is no {path}"))?;
            let received = text.lines().nth(1).unwrap_or_default().to_owned();
            let read: Value =
                serde_json::from_str(&received).map_err(|error| format!("{name} was given `{received}`: {error}"))?;
            if read != point {
                return Err(format!("{name} is shown with {point}, and its result was made with {received}"));
            }
            found.points.insert(name, (point, received));
        }
        if let Some(keep) = world.tasks.iter().find(|other| other.kind == Kind::Keep(task.name.clone())) {
            let read = |ending: &str| {
                let path = format!("{}-{ending}", keep.name);
                seen.made.get(&path).cloned().ok_or_else(|| format!("there is no {path}"))
            };
            (found.best, found.trials) = (read("best.json")?, read("trials.csv")?);
            let best: Value = serde_json::from_str(&found.best).map_err(|error| format!("best: {error}"))?;
            found.best_trial = best["trial"].as_u64().ok_or("the best has no number")?;
        }
        all.insert(task.name.clone(), found);
    }
    Ok(all)
}

/// Every loss is that of the point beside it, wherever it is shown, and the best is the best.
pub(crate) fn searches(world: &World, all: &BTreeMap<String, Found>, seen: &Seen) -> Checked {
    for (task, search) in searches_of(world) {
        let found = &all[&task.name];
        let mut losses = BTreeMap::new();
        for (name, (point, _)) in &found.points {
            in_space(search, point).map_err(|words| format!("{name}: {words}: {point}"))?;
            let (right, shown) = (loss(world, task, point), seen.trials[name]["values"]["loss"].as_f64());
            if shown != Some(right) {
                return Err(format!("{name} is exported with loss {shown:?} for {point}, which gives {right}"));
            }
            losses.insert(name.clone(), right);
        }
        if found.best.is_empty() {
            continue;
        }
        let least = losses.values().copied().fold(f64::INFINITY, f64::min);
        let best: Value = serde_json::from_str(&found.best).map_err(|error| format!("best: {error}"))?;
        let name = format!("{}[trial={}]", task.name, found.best_trial);
        let right = best["values"]["loss"].as_f64() == Some(least)
            && losses.get(&name) == Some(&least)
            && Some(&best["params"]) == found.points.get(&name).map(|(point, _)| point);
        if !right {
            return Err(format!("the best is not the best: {best}, and all are {losses:?}"));
        }
        table(task, &found.trials, &found.points, &losses)?;
    }
    Ok(())
}

fn in_space(search: &Search, point: &Value) -> Checked {
    let x = point["x"].as_f64().ok_or("no x")?;
    if x < search.low as f64 || x > search.high as f64 {
        return Err("x is outside of the space".into());
    }
    let names: BTreeSet<&str> = point.as_object().ok_or("no object")?.keys().map(String::as_str).collect();
    let expected: &[&str] = match (search.conditional, point["mode"].as_str()) {
        (false, _) => &["x"],
        (true, Some("a")) => &["mode", "x", "y"],
        (true, _) => &["mode", "x"],
    };
    if names != expected.iter().copied().collect() {
        return Err(format!("the active parameters are {expected:?}"));
    }
    Ok(())
}

/// The table that tasks get has the same rows.
fn table(
    task: &Task,
    text: &str,
    points: &BTreeMap<String, (Value, String)>,
    losses: &BTreeMap<String, f64>,
) -> Checked {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    if rows.len() != points.len() {
        return Err(format!("the table of {} has not {} rows:\n{text}", task.name, points.len()));
    }
    for row in rows {
        let cell = |name: &str| header.iter().position(|other| *other == name).and_then(|at| row.get(at)).copied();
        let name = format!("{}[trial={}]", task.name, cell("trial").unwrap_or_default());
        let right = points.get(&name).is_some_and(|(point, _)| {
            let number = |name: &str| cell(name).and_then(|text| text.parse::<f64>().ok());
            cell("state") == Some("complete")
                && number("loss") == losses.get(&name).copied()
                && number("x") == point["x"].as_f64()
                && number("y") == point["y"].as_f64()
        });
        if !right {
            return Err(format!(
                "the table has {row:?}; {name} is {:?} with loss {:?}",
                points.get(&name),
                losses.get(&name)
            ));
        }
    }
    Ok(())
}

/// `results/` shows exactly what the naive engine made, and what a person put there; the run says so where these differ.
pub(crate) fn results(truth: &Truth, seen: &Seen, touched: &Files, said: &Said) -> Checked {
    let made = truth.results();
    let hidden = touched.keys().filter(|path| made.contains_key(*path)).count();
    let mut expected = made.clone();
    expected.extend(touched.clone());
    same("results", &seen.results, &expected)?;
    same("outputs", &seen.made, &made)?;
    let (code, missing) = (if hidden > 0 { 3 } else { 0 }, said.json()["results"]["missing"].as_u64());
    if said.code != Some(code) || missing != Some(hidden as u64) {
        return Err(format!("{hidden} files of a person are in the way, and the run says {said}"));
    }
    Ok(())
}

fn same(folder: &str, seen: &Files, expected: &Files) -> Checked {
    for (path, text) in expected {
        match seen.get(path) {
            Some(shown) if shown == text => {}
            Some(shown) => return Err(format!("{folder}/{path} is\n{shown}and should be\n{text}")),
            None => return Err(format!("{folder}/{path} is not there; it should be\n{text}")),
        }
    }
    match seen.keys().find(|path| !expected.contains_key(*path)) {
        Some(path) => Err(format!("{folder}/{path} does not belong to this run:\n{}", seen[path])),
        None => Ok(()),
    }
}

/// A result is reused exactly if it was made from the same contents.
pub(crate) fn decisions(world: &World, truth: &Truth, seen: &Seen, memory: &Memory) -> Checked {
    for (name, row) in &seen.rows {
        match (truth.jobs.get(name), truth.skipped.contains(name), row.state.as_str()) {
            (Some(_), _, "done") | (None, true, "skipped") => {}
            (job, _, state) => {
                let should = if job.is_some() { "done" } else { "skipped or not there at all" };
                return Err(format!("{name} is {state}, and should be {should}"));
            }
        }
    }
    if let Some(name) = truth.jobs.keys().chain(&truth.skipped).find(|name| !seen.rows.contains_key(*name)) {
        return Err(format!("{name} is missing"));
    }
    for (name, job) in &truth.jobs {
        let (key, reused) = (job.key(), seen.rows[name].reused);
        match memory.done.contains_key(&key) {
            true if !reused => {
                return Err(format!("{name} ran again, although nothing that it depends on has changed:\n{key}"));
            }
            false if reused && !memory.unsure && !memory.maybe.contains(&key) => {
                return Err(format!("{name} was reused, although it never ran with this:\n{key}"));
            }
            _ => {}
        }
    }
    for (task, search) in searches_of(world) {
        let Some(before) = memory.finished.get(&identity(task, search, truth)) else { continue };
        let jobs: Vec<&Job> = truth.jobs.values().filter(|job| job.set == task.name).collect();
        let now: BTreeMap<String, Value> =
            jobs.iter().map(|job| (job.name.clone(), job.point.clone().unwrap_or_default())).collect();
        if now != *before {
            return Err(format!("{} is an unchanged search, and tried {now:?} in place of {before:?}", task.name));
        }
        if let Some(job) = jobs.iter().find(|job| !seen.rows[&job.name].reused) {
            return Err(format!("{} ran again, although its search has not changed", job.name));
        }
    }
    Ok(())
}

/// The run does exactly as its dry run said.
pub(crate) fn foreseen(world: &World, seen: &Seen, view: &Value) -> Checked {
    let names = |list: &str| -> BTreeSet<String> {
        let rows = view[list].as_array().into_iter().flatten();
        rows.filter_map(|row| row["task"].as_str().map(str::to_owned)).collect()
    };
    let (runs, reused, waits, skipped, unknown) =
        (names("runs"), names("reused"), names("waits"), names("skipped"), names("unknown"));
    let is = |row: &Row| match (row.state.as_str(), row.reused) {
        ("done", true) => "reused",
        ("done", false) => "run",
        _ => "skipped",
    };
    for (list, word) in [(&runs, "run"), (&reused, "reused"), (&skipped, "skipped")] {
        for name in list {
            let happened = seen.rows.get(name).map_or("not there", is);
            if happened != word {
                return Err(format!("the dry run has {name} as {word}, and it was {happened}: {view:#}"));
            }
        }
    }
    let set = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
    let running: BTreeSet<String> = runs.iter().map(|name| set(name)).collect();
    for name in waits.iter().chain(&unknown) {
        let own = set(name);
        let mut above = world.above(&own);
        if !matches!(world.task(&own).kind, Kind::Search(_)) {
            above.remove(own.as_str());
        }
        if !above.iter().any(|name| running.contains(*name)) {
            return Err(format!("the dry run knows nothing of {name}, and nothing above it runs: {view:#}"));
        }
    }
    let told = |name: &String| {
        [&runs, &reused, &waits, &skipped].iter().any(|list| list.contains(name)) || unknown.contains(&set(name))
    };
    match seen.rows.keys().find(|name| !told(name)) {
        Some(name) => Err(format!("the dry run does not name {name}: {view:#}")),
        None => Ok(()),
    }
}

/// The file follows from the contents that its lineage names; and these are the contents of this run, where the truth is
/// known.
pub(crate) fn lineage(play: &Play, path: &str, text: &str, truth: Option<&Truth>) -> Checked {
    let said = play.scene.tulpar(&format!("lineage 'results/{path}' --json"));
    let view: Value = serde_json::from_str(&said.out).map_err(|error| format!("lineage of {path}: {error}: {said}"))?;
    if view["digest"].as_str() != Some(&hex(text)) {
        return Err(format!("the lineage of {path} is of another content: {view:#}"));
    }
    made(play, &view["made"], Some((path, text)), truth)
        .map_err(|words| format!("lineage of results/{path}: {words}\n{view:#}"))
}

fn made(play: &Play, made: &Value, file: Option<(&str, &str)>, truth: Option<&Truth>) -> Checked {
    let task = made["task"].as_str().ok_or("nothing made it")?;
    let run = made["run"].as_str().unwrap_or_default();
    let Some(command) = made["command"]["shell"]["line"].as_str() else { return Ok(()) };
    let inputs = made["inputs"].as_array().ok_or("no inputs")?;
    let variables: BTreeMap<String, String> = made["variables"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    if let Some(truth) = truth {
        let job = truth.jobs.get(task).ok_or_else(|| format!("{task} is no task of this run"))?;
        let mut declared = variables.clone();
        declared.retain(|name, _| !name.starts_with("TULPAR_"));
        if command != job.command || declared != job.variables {
            return Err(format!(
                "{task} has another command or environment: {command} {declared:?}, not {} {:?}",
                job.command, job.variables
            ));
        }
        let named: BTreeMap<&str, &str> =
            inputs.iter().filter_map(|input| Some((input["name"].as_str()?, input["digest"].as_str()?))).collect();
        let right: BTreeMap<&str, String> =
            job.inputs.iter().map(|(name, files)| (name.as_str(), digest(files))).collect();
        if let Some(name) = right.keys().find(|name| named.get(*name).copied() != Some(right[*name].as_str())) {
            return Err(format!("{task} read {} as `{name}`", right[name]));
        }
        if let Some(runs) = play.memory.ran.get(&job.key())
            && !play.memory.unsure
            && !runs.contains(run)
        {
            return Err(format!("{task} ran in {runs:?}, not in {run}"));
        }
    }
    let mut sandbox = Files::new();
    let mut known = true;
    for input in inputs {
        let (digest, path) = (input["digest"].as_str().unwrap_or_default(), input["paths"][0].as_str());
        match (input["files"].as_u64(), path, play.texts.get(digest), play.inputs.get(digest)) {
            (Some(1), Some(path), Some(text), _) => drop(sandbox.insert(path.to_owned(), text.clone())),
            (Some(1), Some(path), None, _) => return Err(format!("{task} read a {path} that nobody ever wrote")),
            (_, _, _, Some(files)) => sandbox.extend(files.clone()),
            _ => known = false,
        }
    }
    if let Some((path, text)) = file.filter(|_| known) {
        let outputs = evaluate(command, &variables, &sandbox);
        let right = outputs.as_ref().and_then(|outputs| outputs.get(path));
        if right.map(String::as_str) != Some(text) {
            return Err(format!(
                "{task} cannot have made this from the contents that are named:\n{text}They give\n{}",
                right.map_or("a failure", String::as_str)
            ));
        }
    }
    for input in inputs {
        let text = input["digest"].as_str().and_then(|digest| play.texts.get(digest));
        let only = input["files"] == 1
            && input["data"].is_null()
            && !["best", "trials"].contains(&input["name"].as_str().unwrap_or_default());
        for maker in input["made_by"].as_array().into_iter().flatten() {
            let file = input["paths"][0].as_str().zip(text.map(String::as_str)).filter(|_| only);
            // A task that was reused read what an earlier run made: the same content, perhaps from another script.
            let run = maker["run"].as_str().unwrap_or_default();
            self::made(play, maker, file, play.memory.runs.get(run))?;
        }
    }
    Ok(())
}
