//! Writes the corpus that fuzzing begins with: a small sound file of every kind, `cargo run --bin seeds`.

#[path = "../crates/trace/tests/main/generator.rs"]
#[allow(dead_code)]
mod generator;

use std::path::Path;

use generator::Recipe;

const KINETO: &str = r#"{"schemaVersion":1,"traceEvents":[
{"ph":"X","name":"ProfilerStep#1","cat":"cpu","pid":1,"tid":"1","ts":1700000001000000,"dur":5000000},
{"ph":"X","name":"enumerate(DataLoader)#_Iter.__next__","cat":"cpu","pid":1,"tid":1,"ts":1700000001000000,"dur":900000},
{"ph":"X","name":"gemm","cat":"kernel","pid":0,"tid":7,"ts":1700000002000000,"dur":3000000}],"baseTimeNanoseconds":5}"#;
const CHROME: &str = r#"{"traceEvents":[{"ph":"M","name":"process_name","pid":3,"args":{"name":"/device:GPU:0"}},
{"ph":"X","name":"ReadFile","pid":1,"tid":1,"ts":1000,"dur":5000,"args":{"step_num":"4"}}]}"#;
const DFTRACER: &str = r#"[
{"id":1,"name":"FH","cat":"dftracer","ph":"M","args":{"name":"/data/a","value":"ab"}}
{"id":2,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":5,"dur":100,"ph":"X","args":{"fhash":"ab","ret":4096}}
"#;

fn main() {
    for (name, version, big_endian, compression) in [
        ("plain", "3.41", false, 2),
        ("big-endian", "3.41", true, 2),
        ("zlib", "3.41", false, 0),
        ("bzip2", "3.21", false, 1),
        ("old", "3.00", false, 2),
    ] {
        write("darshan", name, &log(version, big_endian, compression));
    }
    // A log behind its length, and a profile.
    let sound = log("3.41", false, 0);
    let length = u16::try_from(sound.len()).expect("a small log");
    write("report", "log-and-profile", &[&length.to_le_bytes(), &sound[..], KINETO.as_bytes()].concat());
    // wall_time, step, and a summary with one value.
    let event = b"\x09\0\0\0\0\0\0\xf0?\x10\x05*\x0d\x0a\x0b\x0a\x04loss\x15\0\0\x80?";
    write("tensorboard", "event", event);
    write("tensorboard", "empty-record", b"\0\0\0\0\0\0\0\0)\x03\x98\x07\xd8\xea\x82\xa2");
    write("chrome", "object", CHROME.as_bytes());
    write("chrome", "array", br#"[{"ph":"X","ts":"1","dur":2,"pid":"a"},]"#);
    write("kineto", "steps", KINETO.as_bytes());
    write("dftracer", "lines", DFTRACER.as_bytes());
    let plane = b"\x0a\x1e\x12\x0d/device:GPU:0\x1a\x0d\x12\x01s\x18\x05\x22\x06\x08\x01\x10\x07\x18\x09";
    write("xplane", "plane", plane);
    let step = b"\x22\x26\x0a\x15PerGenericStepDetails\x12\x0d\x08\x01\x11\0\0\0\0\0\0\xf0?\x18\x01";
    write("input_pipeline", "step", step);
    write("structure", "hdf5", &hdf5());
    let array = b"\x93NUMPY\x01\x00\x3c\x00{'descr': '<f4', 'fortran_order': False, 'shape': (42, 3), }";
    write("structure", "npy", array);
    // A stored member, the directory, its end.
    let sizes = [u32::try_from(array.len()).expect("short").to_le_bytes(); 2].concat();
    let entry = [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &sizes, b"\x05\0\0\0"].concat();
    let member = [b"PK\x03\x04", &entry[..], b"x.npy", array].concat();
    let central = [b"PK\x01\x02\x14\x03", &entry[..], &[0; 14], b"x.npy"].concat();
    let at = u32::try_from(member.len()).expect("short").to_le_bytes();
    let length = u32::try_from(central.len()).expect("short").to_le_bytes();
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &length[..], &at, &[0; 2]].concat();
    write("structure", "npz", &[member, central, end].concat());
}

/// A file of the newest kind: a root, and a dataset of 60 × 8 floats in compressed chunks.
fn hdf5() -> Vec<u8> {
    let nowhere = [0xff; 8];
    let header = |messages: &[(u8, Vec<u8>)]| -> Vec<u8> {
        let body: Vec<u8> = messages
            .iter()
            .flat_map(|(kind, body)| [&[*kind, u8::try_from(body.len()).expect("short"), 0, 0][..], body].concat())
            .collect();
        [b"OHDR\x02\0", &[u8::try_from(body.len()).expect("short")][..], &body, &[0; 4]].concat()
    };
    let root = |dataset: u64| {
        let link = [b"\x01\0\x01x", &dataset.to_le_bytes()[..]].concat();
        header(&[(2, [&[0, 0][..], &nowhere, &nowhere].concat()), (6, link)])
    };
    let dataset = header(&[
        (1, b"\x02\x02\0\x01\x3c\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0".to_vec()),
        (3, b"\x11\x20\x1f\0\x04\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0".to_vec()),
        (8, [b"\x04\x02\0\x03\x01\x04\x08\x04\x03\x0a", &nowhere[..]].concat()),
        (11, b"\x02\x02\x02\0\x01\0\x01\0\x04\0\0\0\x01\0\x01\0\x01\0\x06\0\0\0".to_vec()),
    ]);
    let at = 48 + root(0).len() as u64;
    let end = at + dataset.len() as u64;
    let mut file = b"\x89HDF\r\n\x1a\n\x02\x08\x08\0".to_vec();
    file.extend([&[0; 8][..], &nowhere, &end.to_le_bytes(), &48u64.to_le_bytes(), &[0; 4]].concat());
    file.extend([root(at), dataset].concat());
    file
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(name), bytes).expect("a seed");
}

/// Counters, a trace, a layout and a heat map; the numbers of modules are those of the log's version.
fn log(version: &'static str, big_endian: bool, compression: u8) -> Vec<u8> {
    let mut recipe = Recipe { big_endian, compression, ..Recipe::new(version) };
    let reads = [(0, 10, 1.0, 2.0, 5), (10, 10, 2.0, 3.0, 5)];
    let trace = recipe.trace((7, 0), false, &reads[..1], &reads);
    let posix = [recipe.words(&[7, 0]), recipe.words(&[3; 69]), recipe.floats(&[0.5; 17])].concat();
    let mut lustre = recipe.words(&[7, -1, 1, 2, 1 << 20, 2, 0, 0, 0, -1, 0]);
    lustre.extend([0; 16]);
    lustre.extend(recipe.words(&[3, 4]));
    let mut heatmap = recipe.words(&[9, 0]);
    heatmap.extend(recipe.floats(&[0.1]));
    heatmap.extend(recipe.words(&[2, 0, 0, 1, 2, 3, 4]));
    recipe.modules = match version {
        "3.41" => vec![(1, 4, posix), (8, 2, lustre), (10, 1, trace), (15, 1, heatmap)],
        "3.00" => vec![(8, 1, trace)],
        _ => vec![(1, 4, posix), (9, 1, trace)],
    };
    recipe.build()
}
