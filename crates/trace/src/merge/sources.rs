//! Finds the profiles below a folder and reads each into an [`Activity`]. What cannot be read is named, and costs only
//! itself.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::activity::{Activity, Clock, Kind, Step, Writer};
use super::columns::InputColumns;
use super::names::{self, Meaning};
use crate::collect;
use crate::profile::chrome::{self, Id};
use crate::profile::input_pipeline::InputPipeline;
use crate::profile::{dftracer, kineto, xplane};
use crate::tensorboard;

/// Microseconds of an epoch clock are beyond this, those of a run are not.
const EPOCH: f64 = 1e14;
/// XPlane files are read whole.
const LARGEST: u64 = 2 << 30;

/// A file that is a profile by its name and could not be read.
#[derive(Debug, Clone)]
pub struct Unread {
    pub path: PathBuf,
    pub why: String,
}

/// Profiles by path, and those that could not be read.
pub type Found = (Vec<(PathBuf, Activity)>, Vec<Unread>);

/// By the file's name.
fn kind(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_string_lossy();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    if ends(&[".pt.trace.json", ".pt.trace.json.gz"]) {
        return Some(Kind::Kineto);
    }
    if ends(&[".trace.json", ".trace.json.gz"]) {
        return Some(Kind::Chrome);
    }
    if ends(&[".xplane.pb"]) {
        return Some(Kind::XPlane);
    }
    if ends(&[".input_pipeline.pb"]) {
        return Some(Kind::InputPipeline);
    }
    if ends(&[".pfw", ".pfw.gz"]) {
        return Some(Kind::DfTracer);
    }
    (name.contains("events.out.tfevents") && !name.ends_with(".json")).then_some(Kind::EventFile)
}

/// Node and process, where profilers put them into the name: `node_123.1700000000000.pt.trace.json`, `node.xplane.pb`.
fn writer(path: &Path) -> Writer {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let number = |text: &str| text.parse::<i64>().ok();
    if let Some(stem) = name.strip_suffix(".pt.trace.json") {
        let stem = stem.rsplit_once('.').filter(|(_, time)| number(time).is_some()).map_or(stem, |(stem, _)| stem);
        let told = stem.rsplit_once('_').and_then(|(host, process)| Some((host.to_owned(), number(process)?)));
        let (host, process) = told.unzip();
        return Writer { host, process, ..Writer::default() };
    }
    let host = [".trace.json", ".xplane.pb"].iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned);
    Writer { host, ..Writer::default() }
}

/// All profiles in files and folders.
pub fn read(named: &[PathBuf]) -> Result<Found, collect::Error> {
    let what =
        "profile (*.pt.trace.json, *.trace.json.gz, *.xplane.pb, *.input_pipeline.pb, *.pfw, events.out.tfevents*)";
    let paths = collect::files(named, what, |path| kind(path).is_some())?;
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for path in &paths {
        // JAX writes the same profile twice, and only the other one has a clock.
        let twin = path
            .to_string_lossy()
            .strip_suffix(".trace.json.gz")
            .map(|stem| PathBuf::from(format!("{stem}.xplane.pb")));
        if twin.is_some_and(|twin| paths.contains(&twin)) {
            continue;
        }
        match read_one(path) {
            Ok(mut activity) => {
                let told = writer(path);
                activity.writer.host = told.host;
                activity.writer.process = told.process;
                activity.settle();
                found.push((path.clone(), activity));
            }
            Err(why) => unread.push(Unread { path: path.clone(), why }),
        }
    }
    Ok((found, unread))
}

fn read_one(path: &Path) -> Result<Activity, String> {
    let open = || File::open(path).map_err(|error| error.to_string());
    let whole = || -> Result<Vec<u8>, String> {
        let size = open()?.metadata().map_err(|error| error.to_string())?.len();
        if size > LARGEST {
            return Err("it is too large to be read whole".to_owned());
        }
        std::fs::read(path).map_err(|error| error.to_string())
    };
    let text = |error: crate::profile::Error| error.to_string();
    match kind(path).unwrap_or(Kind::Chrome) {
        Kind::Kineto => kineto::Profile::read(open()?).map(from_kineto).map_err(text),
        Kind::Chrome => from_chrome(open()?).map_err(text),
        Kind::XPlane => from_xplane(&whole()?).map_err(text),
        Kind::InputPipeline => InputPipeline::parse(&whole()?).map(|found| from_input_pipeline(&found)).map_err(text),
        Kind::DfTracer => from_dftracer(open()?).map_err(text),
        Kind::EventFile => from_events(open()?).map_err(|error| error.to_string()),
    }
}

fn from_kineto(mut profile: kineto::Profile) -> Activity {
    let first = profile.steps.first().or(profile.loading.first()).copied().or(profile.kernels.span());
    let clock = if first.is_some_and(|(start, _)| start > EPOCH) { Clock::Epoch } else { Clock::Relative };
    let mut activity = Activity::new(Kind::Kineto, clock);
    for (start, end) in profile.kernels.pieces() {
        activity.compute.add(start / 1e6, end / 1e6);
    }
    for (start, end) in &profile.loading {
        activity.loading.add(start / 1e6, end / 1e6);
    }
    let seconds = |(start, end): &(f64, f64)| Step { number: None, start: start / 1e6, end: end / 1e6 };
    activity.steps = profile.steps.iter().map(seconds).collect();
    activity.writer.rank = profile.rank;
    activity.torn = profile.torn;
    activity
}

/// TensorFlow's and JAX' traces: processes are devices, and names of processes come anywhere in the file. PyTorch's, under
/// whatever name a program gave it, shows by its contents.
fn from_chrome(source: File) -> Result<Activity, crate::profile::Error> {
    let mut pytorch = kineto::Profile::default();
    let mut devices: HashMap<Id, bool> = HashMap::new();
    let mut lines: HashMap<(Id, Id), bool> = HashMap::new();
    let mut busy: BTreeMap<(Id, Id), crate::interval::Union> = BTreeMap::new();
    let mut activity = Activity::new(Kind::Chrome, Clock::Relative);
    let document = chrome::read(source, |event| {
        let name = || event.args.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        match (event.phase.as_str(), event.name.as_str()) {
            ("M", "process_name") => {
                devices.insert(event.pid.clone(), names::is_device(name()));
            }
            ("M", "thread_name") => {
                lines.insert((event.pid.clone(), event.tid.clone()), names::is_derived(name()));
            }
            _ => {}
        }
        pytorch.add(event);
        let Some((start, end)) = event.span() else { return };
        let (start, end) = (start / 1e6, end / 1e6);
        match names::host(&event.name) {
            Some(Meaning::Loading) => activity.loading.add(start, end),
            Some(Meaning::Reading) => activity.reading.add(start, end),
            _ if names::is_copy(&event.name) => {}
            _ => busy.entry((event.pid.clone(), event.tid.clone())).or_default().add(start, end),
        }
        if let Some(number) = event.args.get("step_num").and_then(number) {
            activity.steps.push(Step { number: Some(number), start, end });
        }
    })?;
    let is_pytorch =
        ["deviceProperties", "distributedInfo"].iter().any(|key| document.keys.iter().any(|own| own == key))
            || !pytorch.steps.is_empty();
    if is_pytorch {
        pytorch.finish(&document);
        return Ok(from_kineto(pytorch));
    }
    for (line, union) in &busy {
        if devices.get(&line.0) == Some(&true) && lines.get(line) != Some(&true) {
            activity.compute.extend(union);
        }
    }
    activity.torn = document.torn;
    Ok(activity)
}

fn number(value: &serde_json::Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn from_xplane(bytes: &[u8]) -> Result<Activity, crate::profile::Error> {
    let space = xplane::Space::parse(bytes)?;
    let mut activity = Activity::new(Kind::XPlane, Clock::Relative);
    for plane in &space.planes {
        let is_device = names::is_device(&plane.name);
        for line in &plane.lines {
            for event in line.events() {
                let event = event?;
                let (start, end) = space.span(line, &event);
                // A billion seconds is 2001.
                if start > 1e9 {
                    activity.clock = Clock::Epoch;
                }
                let name = plane.event_names.get(&event.name).map_or("", |name| name);
                if is_device {
                    if !names::is_derived(&line.name) && !names::is_copy(name) {
                        activity.compute.add(start, end);
                    }
                    continue;
                }
                match names::host(name) {
                    Some(Meaning::Loading) => activity.loading.add(start, end),
                    Some(Meaning::Reading) => activity.reading.add(start, end),
                    _ => {}
                }
                if let Some(number) = plane.number(&event, "step_num")? {
                    activity.steps.push(Step { number: Some(number), start, end });
                }
            }
        }
    }
    // Inner annotations repeat the number of the step that they are in.
    activity.steps.sort_by(|a, b| a.number.cmp(&b.number).then((b.end - b.start).total_cmp(&(a.end - a.start))));
    activity.steps.dedup_by_key(|step| step.number);
    Ok(activity)
}

fn from_input_pipeline(found: &InputPipeline) -> Activity {
    let mut activity = Activity::new(Kind::InputPipeline, Clock::None);
    activity.loading_share = found.waiting_share();
    activity.input = Some(Box::new(InputColumns::of(found)));
    activity
}

fn from_dftracer(source: File) -> Result<Activity, crate::profile::Error> {
    let mut activity = Activity::new(Kind::DfTracer, Clock::Relative);
    let document = dftracer::read(source, |event| {
        let Some((start, end)) = event.span() else { return };
        if start > EPOCH {
            activity.clock = Clock::Epoch;
        }
        let (start, end) = (start / 1e6, end / 1e6);
        let argument = |name: &str| event.args.get(name).and_then(number);
        match names::dftracer(&event.category, &event.name) {
            Some(Meaning::Compute) => activity.compute.add(start, end),
            Some(Meaning::Loading) => activity.loading.add(start, end),
            Some(Meaning::Reading) => activity.reading.add(start, end),
            Some(Meaning::Epoch) => activity.epochs.push(Step { number: argument("epoch"), start, end }),
            Some(Meaning::Step) => activity.steps.push(Step { number: argument("step"), start, end }),
            None => {}
        }
    })?;
    activity.torn = document.damaged_lines > 0;
    Ok(activity)
}

/// A scalar is written at the end of its step, or of its epoch.
fn from_events(source: File) -> Result<Activity, tensorboard::Error> {
    let mut activity = Activity::new(Kind::EventFile, Clock::Epoch);
    let (mut steps, mut epochs): (BTreeMap<i64, f64>, BTreeMap<i64, f64>) = (BTreeMap::new(), BTreeMap::new());
    let mut begun = None;
    let end = tensorboard::read(source, |event| {
        begun.get_or_insert(event.wall_time);
        for (tag, _) in event.scalars() {
            let ends = if tag.starts_with("epoch") { &mut epochs } else { &mut steps };
            let at = ends.entry(event.step).or_insert(event.wall_time);
            *at = at.max(event.wall_time);
        }
    })?;
    let spans = |ends: &BTreeMap<i64, f64>| -> Vec<Step> {
        let mut before = begun.unwrap_or(0.0);
        let mut spans = Vec::new();
        for (number, end) in ends {
            spans.push(Step { number: Some(*number), start: before.min(*end), end: *end });
            before = *end;
        }
        spans
    };
    activity.steps = spans(&steps);
    activity.epochs = spans(&epochs);
    activity.torn = end.torn;
    Ok(activity)
}
