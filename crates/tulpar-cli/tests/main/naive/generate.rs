//! Random worlds, and random edits of them. Values are few, so that edits often lead back to an earlier state.

use super::world::{Kind, Script, Search, Source, Task, World};
use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const STEMS: [&str; 4] = ["a", "b", "c", "d"];
const SCRIPTS: usize = 3;
/// It learns from the second trial on, so that later trials depend on the order in which earlier ones ended.
const TPE: &str = "{tpe: {startup: 1}}";
/// The script of the trials of a search.
const TRIALS: usize = SCRIPTS - 1;

fn chance(random: &mut ChaCha8Rng, part: f64) -> bool {
    random.random_bool(part)
}

fn pick<'a, T>(random: &mut ChaCha8Rng, all: &'a [T]) -> &'a T {
    all.choose(random).expect("one at least")
}

pub(crate) fn world(random: &mut ChaCha8Rng, searches: bool) -> World {
    let mut world = World {
        params: ["n", "p0", "p1"].into_iter().map(|name| (name, random.random_range(1..=3))).collect(),
        given: BTreeMap::new(),
        tasks: Vec::new(),
        scripts: (0..SCRIPTS)
            .map(|index| Script { trial: index == TRIALS, version: 1, comment: 0, broken: false })
            .collect(),
        inputs: vec![1, 1],
        list: STEMS.iter().take(random.random_range(1..=3)).map(|stem| (*stem, 1)).collect(),
        large: chance(random, 0.15).then_some(1),
        many: if chance(random, 0.1) { (100..170).map(|at| (at, 1)).collect() } else { BTreeMap::new() },
        misdeclared: None,
        spoiled: None,
    };
    let count = random.random_range(1..=4);
    while world.tasks.len() < count {
        add(random, &mut world);
    }
    if searches && chance(random, 0.5) {
        add_search(random, &mut world);
    }
    world
}

fn fresh_name(world: &World) -> String {
    let taken = |name: &String| world.tasks.iter().any(|task| task.name == *name);
    (0..).map(|index| format!("t{index}")).find(|name| !taken(name)).expect("names do not end")
}

fn sources(random: &mut ChaCha8Rng, world: &World, always: bool) -> Vec<Source> {
    let mut all = vec![Source::Data(0), Source::Data(1), Source::List];
    all.extend(world.large.iter().flat_map(|_| [Source::Large, Source::Large, Source::Large]));
    if !world.many.is_empty() {
        all.extend([Source::Many, Source::Many]);
    }
    for task in &world.tasks {
        // How many files there are must not depend on a condition: then nothing could be said of the names of tasks.
        let certain = !always || world.above(&task.name).iter().all(|name| world.task(name).when.is_none());
        if !matches!(task.kind, Kind::Search(_) | Kind::Keep(_)) && certain {
            all.extend([Source::Task(task.name.clone()), Source::Task(task.name.clone())]);
        }
    }
    let mut chosen: Vec<Source> = Vec::new();
    for _ in 0..random.random_range(0..=2) {
        let source = pick(random, &all).clone();
        if !chosen.contains(&source) {
            chosen.push(source);
        }
    }
    chosen
}

fn add(random: &mut ChaCha8Rng, world: &mut World) {
    let name = fresh_name(world);
    let kind = pick(
        random,
        &[Kind::Plain, Kind::Plain, Kind::Plain, Kind::Values, Kind::Values, Kind::Files, Kind::Files, Kind::Split],
    )
    .clone();
    let kind = if kind == Kind::Plain && world.large.is_some() && chance(random, 0.5) { Kind::Large } else { kind };
    let split = kind == Kind::Split;
    let inputs = sources(random, world, split);
    let word = if split { Some("p1") } else { *pick(random, &[None, Some("p0"), Some("p1")]) };
    let variable = chance(random, 0.3).then(|| random.random_range(1..=3));
    let when = (!split && chance(random, 0.1)).then_some(2);
    let script = random.random_range(0..TRIALS);
    world.tasks.push(Task { name: name.clone(), kind, script, inputs, word, variable, when });
    if split {
        let (script, inputs) = (random.random_range(0..TRIALS), sources(random, world, true));
        let inputs = inputs.into_iter().filter(|source| *source != Source::Task(name.clone())).collect();
        let name_of_pieces = fresh_name(world);
        world.tasks.push(Task {
            name: name_of_pieces,
            kind: Kind::Pieces(name),
            script,
            inputs,
            word: None,
            variable: None,
            when: None,
        });
    }
}

fn add_search(random: &mut ChaCha8Rng, world: &mut World) {
    let inputs = sources(random, world, true);
    let name = fresh_name(world);
    let float = chance(random, 0.4);
    let sampler = *pick(random, if float { &[TPE, TPE, "random", "quasi"] } else { &[TPE, TPE, "random", "grid"] });
    let search = Search {
        trials: random.random_range(2..=6),
        parallel: random.random_range(1..=3),
        seed: random.random_range(1..=2),
        sampler,
        low: 0,
        high: if float { 1 } else { 9 },
        float,
        conditional: sampler != "grid" && chance(random, 0.4),
        named: chance(random, 0.4),
    };
    let variable = chance(random, 0.3).then_some(1);
    let kind = Kind::Search(search);
    world.tasks.push(Task { name: name.clone(), kind, script: TRIALS, inputs, word: None, variable, when: None });
    let keep = fresh_name(world);
    let kind = Kind::Keep(name);
    world.tasks.push(Task {
        name: keep,
        kind,
        script: 0,
        inputs: Vec::new(),
        word: Some("p0"),
        variable: None,
        when: None,
    });
}

/// Another value of a small range.
fn other<T: Copy + PartialEq>(random: &mut ChaCha8Rng, now: T, all: &[T]) -> T {
    let others: Vec<T> = all.iter().copied().filter(|value| *value != now).collect();
    *pick(random, &others)
}

/// Changes one thing; says what.
pub(crate) fn edit(random: &mut ChaCha8Rng, world: &mut World) -> String {
    loop {
        let words = match random.random_range(0..13) {
            0..=2 => Some(edit_script(random, world)),
            3 | 4 => Some(edit_file(random, world)),
            5 if world.large.is_some() && chance(random, 0.6) => Some(edit_large(random, world)),
            5 if !world.many.is_empty() && chance(random, 0.5) => Some(edit_many(random, world)),
            5 => {
                let at = random.random_range(0..world.inputs.len());
                world.inputs[at] = other(random, world.inputs[at], &[1, 2, 3]);
                Some(format!("i{at}.txt is version {}", world.inputs[at]))
            }
            6 | 7 => Some(edit_param(random, world)),
            8 => {
                let at = random.random_range(0..world.tasks.len());
                let task = &mut world.tasks[at];
                task.variable = other(random, task.variable, &[None, Some(1), Some(2), Some(3)]);
                Some(format!("{} has E0 {:?}", task.name, task.variable))
            }
            9 | 10 => edit_search(random, world),
            11 => {
                let before = world.tasks.len();
                add(random, world);
                Some(format!("new tasks after the first {before}"))
            }
            _ => remove_task(random, world),
        };
        if let Some(words) = words {
            return words;
        }
    }
}

pub(crate) fn edit_script(random: &mut ChaCha8Rng, world: &mut World) -> String {
    let at = random.random_range(0..world.scripts.len());
    let script = &mut world.scripts[at];
    if chance(random, 0.2) {
        script.comment = other(random, script.comment, &[0, 1, 2]);
    } else {
        script.version = other(random, script.version, &[1, 2, 3]);
    }
    format!("s{at}.sh is version {}, comment {}", script.version, script.comment)
}

/// Of a script, an input or the list: what tasks read.
pub(crate) fn edit_content(random: &mut ChaCha8Rng, world: &mut World) -> String {
    match random.random_range(0..4) {
        0 | 1 => edit_script(random, world),
        2 => edit_file(random, world),
        _ if world.large.is_some() && chance(random, 0.6) => edit_large(random, world),
        _ if !world.many.is_empty() && chance(random, 0.5) => edit_many(random, world),
        _ => {
            let at = random.random_range(0..world.inputs.len());
            world.inputs[at] = other(random, world.inputs[at], &[1, 2, 3]);
            format!("i{at}.txt is version {}", world.inputs[at])
        }
    }
}

/// Has a task take an input that several tasks can share: that input, and the script of the task.
pub(crate) fn share(random: &mut ChaCha8Rng, world: &mut World) -> Option<(&'static str, usize)> {
    let runs = |task: &&Task| !world.is_skipped(&task.name) && !matches!(task.kind, Kind::Search(_) | Kind::Keep(_));
    let names: Vec<String> = world.tasks.iter().filter(runs).map(|task| task.name.clone()).collect();
    let name = names.choose(random)?;
    let (shared, source) = match world.many.is_empty() || chance(random, 0.5) {
        true => ("large", Source::Large),
        false => ("many", Source::Many),
    };
    world.large.get_or_insert(1);
    let task = world.tasks.iter_mut().find(|task| task.name == *name)?;
    if !task.inputs.contains(&source) {
        task.inputs.push(source);
    }
    Some((shared, task.script))
}

fn edit_large(random: &mut ChaCha8Rng, world: &mut World) -> String {
    world.large = world.large.map(|version| other(random, version, &[1, 2, 3]));
    format!("large.txt is version {:?}", world.large)
}

fn edit_many(random: &mut ChaCha8Rng, world: &mut World) -> String {
    let at = *pick(random, &world.many.keys().copied().collect::<Vec<_>>());
    let version = other(random, world.many[&at], &[1, 2, 3]);
    world.many.insert(at, version);
    format!("m/{at}.txt is version {version}")
}

fn edit_file(random: &mut ChaCha8Rng, world: &mut World) -> String {
    let stem = *pick(random, &STEMS);
    match world.list.get(stem).copied() {
        None => {
            world.list.insert(stem, random.random_range(1..=2));
            format!("d/{stem}.txt is new")
        }
        Some(_) if world.list.len() > 1 && chance(random, 0.5) => {
            world.list.remove(stem);
            format!("d/{stem}.txt is gone")
        }
        Some(version) => {
            let version = other(random, version, &[1, 2, 3]);
            world.list.insert(stem, version);
            format!("d/{stem}.txt is version {version}")
        }
    }
}

fn edit_param(random: &mut ChaCha8Rng, world: &mut World) -> String {
    let name = *pick(random, &["n", "p0", "p1"]);
    let value = other(random, world.param(name), &[1, 2, 3]);
    world.given.remove(name);
    if chance(random, 0.5) {
        world.given.insert(name, value);
        return format!("--param {name}={value}");
    }
    world.params.insert(name, value);
    format!("params: {name}: {value}")
}

fn edit_search(random: &mut ChaCha8Rng, world: &mut World) -> Option<String> {
    let search = world.tasks.iter_mut().find_map(|task| match &mut task.kind {
        Kind::Search(search) => Some(search),
        _ => None,
    })?;
    match random.random_range(0..3) {
        0 => search.seed = other(random, search.seed, &[1, 2, 3]),
        1 => search.trials = other(random, search.trials, &[2, 3, 4, 6]),
        _ => {
            let low = other(random, search.low, &[0, 1, 2]);
            search.high += low - search.low;
            search.low = low;
        }
    }
    Some(format!("seed {}, {} trials, x from {} to {}", search.seed, search.trials, search.low, search.high))
}

fn remove_task(random: &mut ChaCha8Rng, world: &mut World) -> Option<String> {
    let leaves: Vec<String> = leaves(world);
    if world.tasks.len() < 2 || leaves.is_empty() {
        return None;
    }
    let name = pick(random, &leaves).clone();
    world.tasks.retain(|task| task.name != name);
    Some(format!("{name} is removed"))
}

/// Tasks that nothing depends on.
pub(crate) fn leaves(world: &World) -> Vec<String> {
    let needed = |name: &str| world.tasks.iter().any(|task| task.needs().contains(name));
    world.tasks.iter().map(|task| task.name.clone()).filter(|name| !needed(name)).collect()
}
