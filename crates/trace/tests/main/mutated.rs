//! Whole reports of files that were cut, changed and filled with extremes: never a panic, never more memory than a small
//! file justifies, whatever a log or a profile says.

use std::path::Path;

use tulpar_trace::darshan::JobSet;
use tulpar_trace::darshan::counters::hdf5_dataset;
use tulpar_trace::report::{Report, Wanted, timeline};

use crate::generator::Recipe;
use crate::harness::peak;

/// A file of a few kB may take so much: timelines and histograms have their size whatever the log says.
const JUSTIFIED: usize = 96 << 20;

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

/// One of the things that happen to files, and that people do to them.
pub(crate) fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    const EXTREMES: [u64; 8] =
        [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 0x7ff0_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 1 << 40];
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => bytes.truncate(at),
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            let word = EXTREMES[random.below(EXTREMES.len())].to_le_bytes();
            bytes.iter_mut().skip(at & !7).zip(word).for_each(|(byte, new)| *byte = new);
        }
        3 => {
            let length = random.below(64).min(bytes.len() - at);
            let piece = bytes[at..at + length].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => drop(bytes.drain(at..(at + random.below(16)).min(bytes.len()))),
    }
}

/// A log with counters, a trace, a layout, datasets and a heat map; uncompressed, so that changes reach the records.
fn log() -> Vec<u8> {
    let mut recipe = Recipe { compression: 2, ..Recipe::new("3.41") };
    recipe.names.push((9, "heatmap:POSIX"));
    let reads: Vec<_> = (0..40).map(|index| (index * 70_000, 70_000, index as f64, index as f64 + 0.5, 1)).collect();
    let writes = [(0, 10, 50.0, 60.0, 2)];
    let trace = [recipe.trace((7, 0), false, &writes, &reads), recipe.trace((8, 1), false, &[], &reads)].concat();
    let posix = [recipe.words(&[7, 0]), recipe.words(&[3; 69]), recipe.floats(&[0.5; 17])].concat();
    let (integers, floats) = (hdf5_dataset::INTEGERS.len(), hdf5_dataset::FLOATS.len());
    let dataset =
        [recipe.words(&[8, -1, 8]), recipe.words(&vec![5; integers]), recipe.floats(&vec![0.5; floats])].concat();
    let mut lustre = recipe.words(&[7, -1, 1, 2, 1 << 20, 2, 0, 0, 0, -1, 0]);
    lustre.extend([0; 16]);
    lustre.extend(recipe.words(&[3, 4]));
    let mut heatmap = recipe.words(&[9, 0]);
    heatmap.extend(recipe.floats(&[0.1]));
    heatmap.extend(recipe.words(&[2, 0, 0, 1, 2, 3, 4]));
    recipe.modules = vec![(1, 4, posix), (4, 2, dataset), (8, 2, lustre), (10, 1, trace), (15, 1, heatmap)];
    recipe.build()
}

fn report(log: &Path, profiles: &Path) -> Option<Report> {
    let mut wanted = Wanted { profiles: vec![profiles.to_owned()], ..Wanted::default() };
    wanted.part.requests = true;
    let report = Report::of(&JobSet::one(log).ok()?, &wanted).ok()?;
    let mut drawn = Vec::new();
    timeline(std::slice::from_ref(&report), &mut drawn).unwrap();
    serde_json::from_slice::<serde_json::Value>(&drawn).unwrap();
    Some(report)
}

/// How many mutations; a campaign tries more.
pub(crate) fn rounds(few: u64) -> u64 {
    let more = std::env::var("TULPAR_CAMPAIGN").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    few * more
}

const KINETO: &str = r#"{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "name": "ProfilerStep#1", "cat": "cpu", "pid": 1, "tid": "1", "ts": 1700000001000000, "dur": 5000000},
{"ph": "X", "name": "enumerate(DataLoader)#_Iter.__next__", "cat": "cpu", "pid": 1, "tid": 1, "ts": 1700000001000000, "dur": 900000},
{"ph": "X", "name": "gemm", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1700000002000000, "dur": 3000000}
], "baseTimeNanoseconds": 0}"#;
const CHROME: &str = r#"{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:GPU:0"}},
{"ph": "X", "name": "ReadFile", "pid": 1, "tid": 1, "ts": 1000, "dur": 5000}, {"ph": "X", "name": "k", "pid": 3, "tid": 1,
"ts": 9000, "dur": 700, "args": {"step_num": "4"}}]}"#;
const DFTRACER: &str = r#"[
{"id": 1, "name": "FH", "cat": "dftracer", "ph": "M", "args": {"name": "/data/a", "value": "ab"}}
{"id": 2, "name": "read", "cat": "POSIX", "pid": 1, "tid": 1, "ts": 1700000001000000, "dur": 100, "ph": "X", "args": {"fhash": "ab", "ret": 4096}}
{"id": 3, "name": "epoch", "cat": "ai", "pid": 1, "tid": 1, "ts": 1700000001000000, "dur": 9000000, "ph": "X", "args": {"epoch": 1}}
"#;

#[test]
fn a_report_of_a_changed_log_never_panics_nor_eats_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.darshan");
    std::fs::write(folder.path().join("a.pt.trace.json"), KINETO).unwrap();
    let sound = log();
    std::fs::write(&path, &sound).unwrap();
    let first = report(&path, folder.path()).unwrap();
    assert!(first.damage.is_empty() && first.pipeline.unwrap().whole.is_some(), "{:?}", first.damage);
    let mut random = Random(1);
    for round in 0..rounds(600) {
        let mut bytes = sound.clone();
        for _ in 0..=random.below(4) {
            mutate(&mut random, &mut bytes);
        }
        std::fs::write(&path, &bytes).unwrap();
        let (found, most) = peak(|| report(&path, folder.path()));
        assert!(most < JUSTIFIED, "round {round}: {most} bytes");
        // What it says must be sayable.
        drop(found.map(|found| serde_json::to_string(&found).unwrap()));
    }
}

#[test]
fn a_report_beside_changed_profiles_never_panics_nor_eats_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.darshan");
    std::fs::write(&path, log()).unwrap();
    let profiles: [(&str, &[u8]); 5] = [
        ("a.pt.trace.json", KINETO.as_bytes()),
        ("b.trace.json", CHROME.as_bytes()),
        ("c.pfw", DFTRACER.as_bytes()),
        // A plane with a line and an event; a step of an input pipeline.
        ("d.xplane.pb", b"\x0a\x1e\x12\x0d/device:GPU:0\x1a\x0d\x12\x01s\x18\x05\x22\x06\x08\x01\x10\x07\x18\x09"),
        ("e.input_pipeline.pb", b"\x22\x1c\x0a\x15PerGenericStepDetails\x12\x03\x08\x01\x10"),
    ];
    let mut random = Random(2);
    for round in 0..rounds(400) {
        let beside = folder.path().join("profiles");
        std::fs::create_dir_all(&beside).unwrap();
        for (name, sound) in profiles {
            let mut bytes = sound.to_vec();
            for _ in 0..random.below(4) {
                mutate(&mut random, &mut bytes);
            }
            std::fs::write(beside.join(name), bytes).unwrap();
        }
        let (found, most) = peak(|| report(&path, &beside));
        assert!(most < JUSTIFIED, "round {round}: {most} bytes");
        assert!(found.is_some(), "a profile that cannot be read must not cost the report");
    }
}

#[test]
fn the_seeds_of_fuzzing_are_read_without_damage() {
    use std::io::Cursor;
    use tulpar_trace::darshan::{Log, Visitor};
    use tulpar_trace::profile::{chrome, dftracer, input_pipeline, kineto, xplane};
    use tulpar_trace::{structure, tensorboard};

    struct Everything;
    impl Visitor for Everything {}

    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut seen = 0;
    for path in crate::harness::files(&corpus, "") {
        let bytes = std::fs::read(&path).unwrap();
        let target = path.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        let sound = match target.as_str() {
            "darshan" => Log::new(Cursor::new(&bytes)).is_ok_and(|mut log| log.visit(&mut Everything).is_empty()),
            "tensorboard" => tensorboard::Event::parse(&bytes).is_ok() || tensorboard::read(&bytes[..], drop).is_ok(),
            "chrome" => chrome::read(&bytes[..], |_| {}).is_ok(),
            "kineto" => kineto::Profile::read(&bytes[..]).is_ok(),
            "dftracer" => dftracer::read(&bytes[..], |_| {}).is_ok_and(|document| document.events == 1),
            "xplane" => xplane::Space::parse(&bytes).is_ok(),
            "input_pipeline" => input_pipeline::InputPipeline::parse(&bytes).is_ok(),
            "structure" => {
                let limits = structure::Limits::SHOWN;
                let all = [
                    structure::hdf5::read(Cursor::new(&bytes), limits),
                    structure::numpy::array(&bytes[..]),
                    structure::numpy::archive(Cursor::new(&bytes), limits),
                ];
                all.iter().any(|found| found.samples().is_some())
            }
            "report" => {
                let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
                let folder = tempfile::tempdir().unwrap();
                let (log, profile) = (folder.path().join("job.darshan"), folder.path().join("a.pt.trace.json"));
                std::fs::write(&log, &bytes[2..2 + length]).unwrap();
                std::fs::write(&profile, &bytes[2 + length..]).unwrap();
                report(&log, &profile).is_some_and(|found| found.damage.is_empty() && found.pipeline.is_some())
            }
            other => panic!("no reader for {other}"),
        };
        assert!(sound, "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 17, "{seen}");
}
