//! Plays a case against the real binary: writes the files of a world, edits them between runs and while a run is under
//! way, interrupts and resumes, and has everything compared with the naive engine.

use super::compare::{self, Memory, Seen};
use super::generate;
use super::model::{Files, Job, Truth, digest, hex, recompute};
use super::world::{Kind, Task, World, read_back, written};
use super::{Case, Step, StepKind};
use crate::main::harness::{Running, Said, Scene, files_below, wait_for};
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// A difference from the truth, in words.
pub(crate) type Checked<T = ()> = Result<T, String>;

pub(crate) struct Play {
    pub(crate) scene: Scene,
    world: World,
    past: Vec<World>,
    written: Files,
    pub(crate) memory: Memory,
    /// Every text that anybody wrote, by digest; and the files of inputs that have several.
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) inputs: BTreeMap<String, Files>,
    /// The files that a person put under `results/`.
    touched: Files,
    /// Versions that no script ever had.
    fresh: u32,
    pub(crate) log: Vec<String>,
}

impl Play {
    pub(crate) fn new(case: &Case) -> Self {
        Self {
            scene: Scene::empty(),
            world: case.world.clone(),
            past: Vec::new(),
            written: Files::new(),
            memory: Memory::default(),
            texts: BTreeMap::new(),
            inputs: BTreeMap::new(),
            touched: Files::new(),
            fresh: 100,
            log: Vec::new(),
        }
    }

    /// How many steps went well, and the difference that ended it.
    pub(crate) fn play(&mut self, steps: &[Step]) -> Result<(), (usize, String)> {
        for (index, step) in steps.iter().enumerate() {
            let mut random = ChaCha8Rng::seed_from_u64(step.seed);
            self.log.push(format!("{}. {:?}", index + 1, step.kind));
            self.step(step.kind, &mut random).map_err(|words| (index, words))?;
        }
        Ok(())
    }

    fn say(&mut self, words: impl Into<String>) {
        self.log.push(format!("     {}", words.into()));
    }

    fn step(&mut self, kind: StepKind, random: &mut ChaCha8Rng) -> Checked {
        match kind {
            StepKind::Run => self.run(random),
            StepKind::Edit => {
                for _ in 0..random.random_range(1..=2) {
                    self.edit(random, generate::edit);
                }
                self.run(random)
            }
            StepKind::Revert => {
                if let Some(index) = (0..self.past.len()).collect::<Vec<_>>().choose(random).copied() {
                    self.say(format!("all files are as at run {}", index + 1));
                    self.world = self.past[index].clone();
                }
                self.run(random)
            }
            StepKind::EditDuring => self.edit_during(random),
            StepKind::Kill => self.kill(random),
            StepKind::Fail => self.fail(random),
            StepKind::Misdeclare => self.misdeclare(random),
            StepKind::Spoil => self.spoil(random),
            StepKind::LoseObject => {
                self.lose_object(random);
                self.run(random)
            }
            StepKind::FlipByte => {
                self.flip_byte(random);
                self.run(random)
            }
            StepKind::Touch => {
                self.touch(random);
                if random.random_bool(0.5) {
                    self.edit(random, generate::edit);
                }
                self.run(random)
            }
        }
    }

    fn edit(&mut self, random: &mut ChaCha8Rng, how: fn(&mut ChaCha8Rng, &mut World) -> String) {
        let words = how(random, &mut self.world);
        self.say(words);
    }

    /// Writes what changed, in place or, as editors do, as a new file under the old name.
    fn write(&mut self, random: &mut ChaCha8Rng) {
        let files = self.world.files();
        for path in self.written.keys().filter(|path| !files.contains_key(*path)) {
            fs::remove_file(self.scene.path(path)).expect("removed");
        }
        for (path, text) in files.iter().filter(|(path, text)| self.written.get(*path) != Some(text)) {
            self.texts.insert(hex(text), text.clone());
            if random.random_bool(0.5) {
                self.scene.write(path, &written(text));
            } else {
                self.scene.write("new~", &written(text));
                let path = self.scene.path(path);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::rename(self.scene.path("new~"), path).expect("renamed");
            }
        }
        self.written = files;
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let mut words = vec!["run".to_owned(), "--json".into()];
        words.extend(more.iter().map(|word| (*word).to_owned()));
        for (name, value) in &self.world.given {
            words.extend(["--param".to_owned(), format!("{name}={value}")]);
        }
        words
    }

    fn start(&self, words: &[String]) -> Running {
        self.scene.start(self.scene.command(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// A run of the world as it is: everything must be as the naive engine has it.
    fn run(&mut self, random: &mut ChaCha8Rng) -> Checked {
        self.write(random);
        let foreseen = self.start(&self.arguments(&["--dry-run"])).end();
        if foreseen.code != Some(0) {
            return Err(format!("the dry run failed: {foreseen}"));
        }
        let said = self.start(&self.arguments(&[])).end();
        self.check(&said, Some(&foreseen))
    }

    fn check(&mut self, said: &Said, foreseen: Option<&Said>) -> Checked {
        if !self.is_good(said) {
            return Err(format!("the run failed: {said}"));
        }
        let seen = self.see(said)?;
        let found = compare::found(&self.world, &seen)?;
        let truth = recompute(&self.world, &found);
        self.learn(&truth);
        compare::results(&truth, &seen, &self.touched, said)?;
        compare::searches(&self.world, &found, &seen)?;
        compare::decisions(&self.world, &truth, &seen, &self.memory)?;
        if let Some(foreseen) = foreseen {
            compare::foreseen(&self.world, &seen, &foreseen.json())?;
        }
        let run = said.json()["run"].as_str().unwrap_or_default().to_owned();
        self.memory.remember(&self.world, &truth, &seen, &found, &run);
        for path in seen.results.keys().filter(|path| !self.touched.contains_key(*path)) {
            compare::lineage(self, path, &seen.results[path], Some(&truth))?;
        }
        self.past.push(self.world.clone());
        Ok(())
    }

    fn see(&mut self, said: &Said) -> Checked<Seen> {
        let status = self.scene.tulpar("status --tasks --json");
        let searched = self.world.tasks.iter().any(|task| matches!(task.kind, Kind::Search(_)));
        let exported = if searched { self.scene.tulpar("export --format trials").out } else { String::new() };
        let results = self.read("results")?;
        if self.touched.is_empty() && self.past.len() % 3 != 1 {
            return Seen::new(said, &status, &exported, results.clone(), results);
        }
        let restored = self.scene.tulpar("outputs --to restored");
        if restored.code != Some(0) {
            return Err(format!("the outputs cannot be restored: {restored}"));
        }
        let made = self.read("restored")?;
        let _ = fs::remove_dir_all(self.scene.path("restored"));
        Seen::new(said, &status, &exported, results, made)
    }

    fn read(&mut self, folder: &str) -> Checked<Files> {
        let folder = self.scene.path(folder);
        let mut files = Files::new();
        for path in files_below(&folder) {
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            // A flipped bit may leave no text.
            let text = read_back(String::from_utf8_lossy(&bytes).into_owned());
            self.texts.insert(hex(&text), text.clone());
            files.insert(path.strip_prefix(&folder).expect("below it").display().to_string(), text);
        }
        Ok(files)
    }

    /// All is done; a person's own files may be in the way of results.
    fn is_good(&self, said: &Said) -> bool {
        match said.code {
            Some(0) => true,
            Some(3) => !self.touched.is_empty() && said.json()["outcome"] == "done",
            _ => false,
        }
    }

    fn learn(&mut self, truth: &Truth) {
        for job in truth.jobs.values() {
            for text in job.outputs.iter().flat_map(Files::values) {
                self.texts.insert(hex(text), text.clone());
            }
            for files in job.inputs.values() {
                self.inputs.insert(digest(files), files.clone());
            }
        }
    }

    /// A run that was disturbed may fail and say so. What it shows must come from what it names.
    fn check_disturbed(&mut self, random: &mut ChaCha8Rng, said: &Said, before: &World) -> Checked {
        self.memory.unsure = true;
        for world in [before, &self.world.clone()] {
            let truth = recompute(world, &BTreeMap::new());
            self.learn(&truth);
            self.memory.maybe.extend(truth.jobs.values().map(Job::key));
        }
        self.say(format!("it ended with exit code {:?}", said.code));
        match said.code {
            _ if self.is_good(said) => {}
            Some(1..=4) if ["changed", "appeared"].iter().any(|word| format!("{said}").contains(word)) => return Ok(()),
            Some(1..=4) if before.list.keys().any(|stem| !self.world.list.contains_key(stem)) => return Ok(()),
            _ => return Err(format!("the disturbed run failed and does not say what changed: {said}")),
        }
        let seen = self.see(said)?;
        let mut doubtful: Vec<String> = Vec::new();
        match compare::found(before, &seen) {
            Ok(found) => {
                let truth = recompute(before, &found).results();
                let differs = |path: &&String| truth.get(*path) != seen.results.get(*path);
                doubtful.extend(seen.results.keys().filter(differs).cloned());
            }
            Err(_) => doubtful.extend(seen.results.keys().cloned()),
        }
        let all: Vec<&String> = seen.results.keys().collect();
        doubtful.extend((0..3).filter_map(|_| all.choose(random)).map(|path| (*path).clone()));
        for path in doubtful.iter().filter(|path| !self.touched.contains_key(*path)) {
            compare::lineage(self, path, &seen.results[path], None)?;
        }
        Ok(())
    }

    fn gate(&self, script: usize) -> PathBuf {
        self.scene.home(&format!("gate-s{script}"))
    }

    /// Starts a run that stops inside of a task; the file lets it go on.
    fn start_gated(&mut self, random: &mut ChaCha8Rng, scripts: &[usize]) -> Checked<(usize, Running, File)> {
        let Some(script) = scripts.choose(random).copied() else { return Err("no task runs".into()) };
        self.fresh += 1;
        self.world.scripts[script].version = self.fresh;
        self.say(format!("s{script}.sh is version {}, and waits", self.fresh));
        self.write(random);
        let gate = self.gate(script);
        mknodat(CWD, &gate, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
        let mut running = self.start(&self.arguments(&[]));
        let mut opened = None;
        let mut over = false;
        wait_for("a task waits", || {
            // Nobody reads it until a task waits there.
            opened = OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&gate).ok();
            over = running.is_over();
            opened.is_some() || over
        });
        match opened {
            Some(file) => Ok((script, running, file)),
            None => Err(format!("s{script}.sh is new, and no task ran it: {}", running.end())),
        }
    }

    fn edit_during(&mut self, random: &mut ChaCha8Rng) -> Checked {
        let Ok(gated) = self.gated(random)? else { return Ok(()) };
        let (script, running, mut gate) = gated;
        let before = self.world.clone();
        for _ in 0..random.random_range(1..=2) {
            self.edit(random, generate::edit_content);
        }
        self.write(random);
        fs::remove_file(self.gate(script)).expect("removed");
        // One line for each that waits, now or in a moment; it stays open until all are gone.
        gate.write_all(&[b'\n'; 1000]).expect("written");
        let said = running.end();
        drop(gate);
        self.check_disturbed(random, &said, &before)?;
        if random.random_bool(0.5) {
            let after = std::mem::replace(&mut self.world, before);
            self.say("all files are as before the edit");
            self.run(random)?;
            self.say("all files are as after the edit");
            self.world = after;
        }
        self.run(random)
    }

    /// None where no task would run.
    fn gated(&mut self, random: &mut ChaCha8Rng) -> Checked<Result<(usize, Running, File), ()>> {
        let used: Vec<usize> =
            self.world.tasks.iter().filter(|task| !self.world.is_skipped(&task.name)).map(|task| task.script).collect();
        if used.is_empty() {
            return Ok(Err(()));
        }
        self.start_gated(random, &used).map(Ok)
    }

    fn kill(&mut self, random: &mut ChaCha8Rng) -> Checked {
        let Ok(gated) = self.gated(random)? else { return Ok(()) };
        let (script, running, gate) = gated;
        running.kill();
        fs::remove_file(self.gate(script)).expect("removed");
        drop(gate);
        let truth = recompute(&self.world, &BTreeMap::new());
        self.memory.maybe.extend(truth.jobs.values().map(Job::key));
        self.memory.unsure = true;
        let before = self.world.clone();
        let edited = random.random_bool(0.5);
        if edited {
            self.edit(random, generate::edit_content);
            self.write(random);
        }
        if random.random_bool(0.6) {
            self.say("killed and resumed");
            let said = self.scene.tulpar("resume --json");
            if !edited {
                return self.check(&said, None);
            }
            self.check_disturbed(random, &said, &before)?;
            if random.random_bool(0.5) {
                self.say("all files are as before the edit");
                self.world = before;
            }
        }
        self.run(random)
    }

    fn fail(&mut self, random: &mut ChaCha8Rng) -> Checked {
        let used: Vec<usize> =
            self.world.tasks.iter().filter(|task| !self.world.is_skipped(&task.name)).map(|task| task.script).collect();
        let Some(script) = used.choose(random).copied() else { return Ok(()) };
        self.fresh += 1;
        self.world.scripts[script].broken = true;
        self.world.scripts[script].comment = self.fresh;
        self.say(format!("s{script}.sh fails"));
        let broken = self.world.clone();
        self.run_broken(random)?;
        self.world.scripts[script].broken = false;
        self.say(format!("s{script}.sh is repaired"));
        if random.random_bool(0.6) {
            self.write(random);
            self.say("resumed");
            let said = self.scene.tulpar("resume --json");
            self.check_disturbed(random, &said, &broken)?;
        }
        self.run(random)?;
        if random.random_bool(0.5) {
            let repaired = std::mem::replace(&mut self.world, broken);
            self.say(format!("s{script}.sh fails again"));
            self.run_broken(random)?;
            self.say(format!("s{script}.sh is repaired again"));
            self.world = repaired;
            self.run(random)?;
        }
        Ok(())
    }

    /// A task computes and misses a declared output. When the declaration is mended, its files are accepted.
    fn misdeclare(&mut self, random: &mut ChaCha8Rng) -> Checked {
        let is_split = |task: &&Task| task.kind == Kind::Split && !self.world.is_skipped(&task.name);
        let splits: Vec<(String, usize)> =
            self.world.tasks.iter().filter(is_split).map(|task| (task.name.clone(), task.script)).collect();
        let Some((name, script)) = splits.choose(random).cloned() else { return self.run(random) };
        self.fresh += 1;
        self.world.scripts[script].version = self.fresh;
        self.world.misdeclared = Some(name.clone());
        self.say(format!("s{script}.sh is version {}, and {name} declares other files than it makes", self.fresh));
        self.run_broken(random)?;
        self.world.misdeclared = None;
        self.say(format!("{name} declares what it makes"));
        if random.random_bool(0.4) {
            self.write(random);
            self.say("resumed");
            let said = self.scene.tulpar("resume --json");
            self.check(&said, None)?;
        }
        self.run(random)?;
        let status = self.scene.tulpar("status --tasks --json").json();
        let rows = status["list"].as_array().into_iter().flatten();
        match rows.into_iter().find(|row| row["task"] == name.as_str()).map(|row| row["reused"] == true) {
            Some(true) => Ok(()),
            _ => Err(format!("{name} has computed, and its files were not accepted: {status:#}")),
        }
    }

    /// A task writes to an input that others share with it, while they run: it fails, and nothing is recorded wrong.
    fn spoil(&mut self, random: &mut ChaCha8Rng) -> Checked {
        let Some((shared, script)) = generate::share(random, &mut self.world) else { return self.run(random) };
        self.world.spoiled = Some(shared);
        self.say(format!("another task appends to `{shared}` in place"));
        let (script, running, mut gate) = self.start_gated(random, &[script])?;
        let done = self.scene.home("spoiled");
        wait_for("the input is spoiled", || done.exists());
        fs::remove_file(done).expect("removed");
        fs::remove_file(self.gate(script)).expect("removed");
        gate.write_all(&[b'\n'; 1000]).expect("written");
        let said = running.end();
        drop(gate);
        self.world.spoiled = None;
        self.doubt();
        let status = self.scene.tulpar("status --tasks --json").json();
        let mut rows = status["list"].as_array().into_iter().flatten();
        if said.code != Some(1) || !rows.any(|row| row["task"] == "spoil" && row["state"] == "failed") {
            return Err(format!("a task wrote to a shared input and did not fail: {said}"));
        }
        for (path, text) in self.read("results")?.iter().filter(|(path, _)| !self.touched.contains_key(*path)) {
            compare::lineage(self, path, text, None)?;
        }
        self.run(random)
    }

    /// Every task of the world may have been done now.
    fn doubt(&mut self) {
        let truth = recompute(&self.world, &BTreeMap::new());
        self.learn(&truth);
        self.memory.maybe.extend(truth.jobs.values().map(Job::key));
        self.memory.unsure = true;
    }

    fn run_broken(&mut self, random: &mut ChaCha8Rng) -> Checked {
        self.write(random);
        let said = self.start(&self.arguments(&[])).end();
        if said.code != Some(1) {
            return Err(format!("a script that can only fail did not: {said}"));
        }
        self.doubt();
        Ok(())
    }

    fn lose_object(&mut self, random: &mut ChaCha8Rng) {
        let Some(object) = self.lost_object(random, "gone from the cache") else { return };
        fs::remove_file(object).expect("removed");
    }

    /// Nothing but the content and the change time of the object shows it.
    fn flip_byte(&mut self, random: &mut ChaCha8Rng) {
        let Some(object) = self.lost_object(random, "damaged") else { return };
        let mut bytes = fs::read(&object).expect("read");
        let Some(byte) = bytes.choose_mut(random) else { return };
        *byte ^= 1;
        let before = fs::metadata(&object).expect("an object");
        fs::set_permissions(&object, Permissions::from_mode(0o600)).expect("ours");
        let file = OpenOptions::new().write(true).open(&object).expect("writable");
        file.write_all_at(&bytes, 0).expect("written");
        file.set_modified(before.modified().expect("a time")).expect("ours");
        file.set_permissions(before.permissions()).expect("ours");
    }

    /// An object of the cache that is lost now.
    fn lost_object(&mut self, random: &mut ChaCha8Rng, how: &str) -> Option<PathBuf> {
        let object = files_below(&self.scene.path(".tulpar/cache/objects")).choose(random)?.clone();
        let parts: Vec<String> = object.iter().rev().take(2).map(|part| part.to_string_lossy().into_owned()).collect();
        let lost = format!("{}{}", parts[1], parts[0]);
        let text = self.texts.get(&lost).cloned();
        let first = text.as_ref().map_or("no file", |text| text.lines().next().unwrap_or_default());
        self.say(format!("the object {lost} is {how}: {first}"));
        self.memory.lose(&lost, text.is_some());
        Some(object)
    }

    /// A person puts a file under `results/`, changes one there, or takes that back.
    fn touch(&mut self, random: &mut ChaCha8Rng) {
        let folder = self.scene.path("results");
        if let Some(path) = self.touched.keys().next().cloned().filter(|_| random.random_bool(0.5)) {
            self.say(format!("results/{path} is removed by hand"));
            fs::remove_file(folder.join(&path)).expect("removed");
            self.touched.remove(&path);
            return;
        }
        let mut paths: Vec<String> = files_below(&folder)
            .iter()
            .filter_map(|path| Some(path.strip_prefix(&folder).ok()?.display().to_string()))
            .collect();
        paths.push("notes.txt".into());
        let path = paths.choose(random).expect("one at least").clone();
        self.say(format!("results/{path} is written by hand"));
        self.scene.write("results/new~", "mine\n");
        fs::rename(folder.join("new~"), folder.join(&path)).expect("renamed");
        self.touched.insert(path, "mine\n".into());
    }
}
