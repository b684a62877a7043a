//! What lies in data files: files that the kernels write, files that h5py and NumPy write and describe themselves, and files
//! that were cut and changed.

use std::io::{Cursor, Read};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tulpar_kernels::{DataSet, Kernel, generate};
use tulpar_trace::darshan::JobSet;
use tulpar_trace::report::{Report, Wanted};
use tulpar_trace::structure::{Found, Limits, hdf5, numpy, record};

use crate::generator::Recipe;
use crate::harness::{fixtures, peak, skipped};
use crate::mutated::{Random, mutate, rounds};

fn made(kernel: Kernel, samples_per_file: u64, sample_bytes: u64, spread: f64) -> (DataSet, tempfile::TempDir) {
    let data = DataSet { kernel, seed: 7, files: 1, samples_per_file, sample_bytes, spread };
    let dir = tempfile::tempdir().unwrap();
    generate(&data, dir.path(), &|_| {}).unwrap();
    (data, dir)
}

fn objects(found: &Found) -> Value {
    assert_eq!(found.not_read, Vec::<String>::new());
    serde_json::to_value(&found.objects).unwrap()
}

fn hdf5_of(path: &Path) -> Found {
    hdf5::read(std::fs::File::open(path).unwrap(), Limits::SHOWN)
}

/// A report of a job that read the file.
fn report_of(path: &Path) -> Report {
    let name: &'static str = Box::leak(path.display().to_string().into_boxed_str());
    let mut recipe = Recipe::new("3.41");
    recipe.names = vec![(7, name)];
    let trace = recipe.trace((7, 0), false, &[], &[(0, 10, 1.0, 2.0, 0)]);
    recipe.modules = vec![(10, 1, trace)];
    let log = tempfile::Builder::new().suffix(".darshan").tempfile().unwrap();
    std::fs::write(log.path(), recipe.build()).unwrap();
    Report::of(&JobSet::one(log.path()).unwrap(), &Wanted { look: true, ..Wanted::default() }).unwrap()
}

#[test]
fn hdf5_files_show_datasets_with_chunks() {
    let (data, dir) = made(Kernel::CosmicTagger, 3, 47_104, 0.0);
    let found = hdf5_of(&data.path(dir.path(), 0));
    let expected = json!([
        {"name": "/extents", "kind": "dataset", "type": "float32", "shape": [3072], "layout": "chunked",
         "chunk": [512], "index": "B-tree", "bytes": 12_288},
        {"name": "/voxels", "kind": "dataset", "type": "float32", "shape": [32_256], "layout": "chunked",
         "chunk": [1536], "index": "B-tree", "bytes": 129_024},
    ]);
    assert_eq!(objects(&found), expected);
    assert_eq!(found.samples(), None, "the two do not agree about their length");
    let (data, dir) = made(Kernel::Ffn, 3, 512_000, 0.0);
    let structures = report_of(&data.path(dir.path(), 0)).structures;
    assert_eq!(structures.len(), 1);
    let raw = json!([{"name": "/raw", "kind": "dataset", "type": "uint8", "shape": [160, 160, 160], "layout": "chunked",
        "chunk": [40, 40, 40], "index": "B-tree", "bytes": 4_096_000}]);
    assert_eq!(serde_json::to_value(&structures[0].objects).unwrap(), raw);
}

#[test]
fn archives_of_numpy_show_their_arrays_and_count_their_samples() {
    let (data, dir) = made(Kernel::Frnn, 1, 56_000, 0.0);
    let report = report_of(&data.path(dir.path(), 0));
    let structure = serde_json::to_value(&report.structures[0]).unwrap();
    assert_eq!(structure["format"], "npz");
    let expected = json!([
        {"name": "signal", "kind": "array", "type": "float32", "shape": [1000, 14], "bytes": 56_000},
        {"name": "time", "kind": "array", "type": "float64", "shape": [16], "bytes": 128},
    ]);
    assert_eq!(structure["objects"], expected);
    assert_eq!((&structure["samples"], report.files[0].samples), (&json!(1000), Some(1000)));
}

#[test]
fn tfrecord_files_show_the_features_of_their_records() {
    let (data, dir) = made(Kernel::ImageNet, 12, 3000, 0.0);
    let report = report_of(&data.path(dir.path(), 0));
    let structure = serde_json::to_value(&report.structures[0]).unwrap();
    assert_eq!((&structure["records_seen"], &structure["samples"]), (&json!(10), &json!(12)));
    let of = |name: &str| {
        let all = structure["objects"].as_array().unwrap();
        all.iter().find(|object| object["name"] == name).unwrap_or_else(|| panic!("{structure:#}")).clone()
    };
    let label = of("image/class/label");
    assert_eq!((&label["type"], &label["values"], &label["records"]), (&json!("int64"), &json!([1, 1]), &json!(10)));
    let image = of("image/encoded");
    assert_eq!((&image["type"], &image["values"]), (&json!("bytes"), &json!([1, 1])));
}

#[test]
fn records_that_tensorflow_wrote_show_their_features() {
    let Some(folder) = fixtures("tensorboard/tfrecord") else { return };
    let expected = json!([
        {"name": "x", "kind": "feature", "type": "float", "values": [1024, 1024], "bytes": 4096, "records": 10},
        {"name": "y", "kind": "feature", "type": "int64", "values": [1, 1], "bytes": 8, "records": 10},
    ]);
    let open = || std::fs::File::open(folder.join("part-0.tfrecord")).unwrap();
    assert_eq!(objects(&record::read(open(), Limits::SHOWN)), expected);
    let mut packed = flate2::read::GzEncoder::new(open(), flate2::Compression::fast());
    let mut bytes = Vec::new();
    packed.read_to_end(&mut bytes).unwrap();
    assert_eq!(objects(&record::read(&bytes[..], Limits::SHOWN)), expected);
    assert_eq!(report_of(&folder.join("part-0.tfrecord")).structures[0].samples, Some(64));
}

/// The checksum of records, bit by bit.
fn masked(bytes: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[test]
fn features_of_any_wire_form_and_of_sequences_are_counted() {
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    // 300 as it is, 5 and 300 packed; 1.0 as it is, 1.0 and 2.0 packed; nothing.
    let integers = field(3, b"\x08\xac\x02\x0a\x03\x05\xac\x02");
    let floats = [field(2, b"\x0d\0\0\x80\x3f"), field(2, b"\x0a\x08\0\0\x80\x3f\0\0\0\x40"), Vec::new()];
    let context = field(1, &field(1, &[field(1, b"n"), field(2, &integers)].concat()));
    let list: Vec<u8> = floats.iter().flat_map(|one| field(1, one)).collect();
    let lists = field(2, &field(1, &[field(1, b"f"), field(2, &list)].concat()));
    let message = [context, lists].concat();
    let length = (message.len() as u64).to_le_bytes();
    let mut bytes = [&length[..], &masked(&length), &message, &masked(&message)].concat();
    let found = record::read(&bytes[..], Limits::SHOWN);
    let expected = json!([
        {"name": "f", "kind": "feature", "type": "float", "values": [3, 3], "bytes": 12, "records": 1},
        {"name": "n", "kind": "feature", "type": "int64", "values": [3, 3], "bytes": 24, "records": 1},
    ]);
    assert_eq!(objects(&found), expected);
    bytes[14] ^= 1;
    let found = record::read(&bytes[..], Limits::SHOWN);
    assert!(found.objects.is_empty() && found.not_read[0].contains("checksum"), "{found:?}");
}

#[test]
fn what_is_of_another_kind_than_its_name_is_not_read() {
    for found in [
        hdf5::read(Cursor::new(b"PK\x05\x06 not at all"), Limits::SHOWN),
        record::read(&b"\x89HDF\r\n\x1a\n0123456789"[..], Limits::SHOWN),
        numpy::array(&b"\x93NUMPY\x09\x00........."[..]),
        numpy::archive(Cursor::new(b"no archive"), Limits::SHOWN),
        hdf5::read(Cursor::new(b""), Limits::SHOWN),
    ] {
        assert!(found.objects.is_empty() && found.not_read.len() == 1, "{found:?}");
        assert_eq!(found.samples(), None);
    }
}

/// Files that h5py and NumPy write, and what h5py says of its own.
fn judged() -> Option<(tempfile::TempDir, Vec<Value>)> {
    let there = Command::new("python3").args(["-c", "import h5py, numpy"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        skipped("h5py and numpy are not here: nobody else says what lies in HDF5 files");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/structure.py");
    let output = Command::new("python3").arg(script).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    Some((folder, said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()))
}

#[test]
fn trees_of_files_of_h5py_are_what_h5py_says() {
    let Some((folder, said)) = judged() else { return };
    assert_eq!(said.len(), 6);
    for theirs in said {
        let name = theirs["name"].as_str().unwrap();
        let mut ours = objects(&hdf5_of(&folder.path().join(format!("{name}.h5"))));
        // h5py does not tell how chunks are found.
        for object in ours.as_array_mut().unwrap() {
            object.as_object_mut().unwrap().remove("index");
        }
        let (ours, theirs) = (ours.as_array().unwrap(), theirs["objects"].as_array().unwrap());
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
}

#[test]
fn indexes_of_chunks_in_new_files_are_named_and_dense_groups_are_said_not_to_be_read() {
    let Some((folder, _)) = judged() else { return };
    let latest = hdf5_of(&folder.path().join("latest.h5"));
    let index = |name: &str| latest.objects.iter().find(|object| object.name == name).unwrap().index;
    assert_eq!(index("/train/image"), Some("fixed array"));
    assert_eq!(index("/train/label"), Some("extensible array"));
    assert_eq!(index("/train/mask"), Some("single chunk"));
    assert_eq!(index("/train/both"), Some("B-tree of the second version"));
    let dense = hdf5_of(&folder.path().join("dense.h5"));
    let shots = &dense.objects[1];
    assert_eq!((dense.objects.len(), shots.name.as_str()), (2, "/shots"));
    assert!(shots.not_read.as_ref().unwrap().contains("densely"));
    assert_eq!(dense.samples(), None);
}

#[test]
fn arrays_of_numpy_are_what_was_saved() {
    let Some((folder, _)) = judged() else { return };
    let open = |name: &str| std::fs::File::open(folder.path().join(name)).unwrap();
    let plain = numpy::archive(open("plain.npz"), Limits::SHOWN);
    let expected = json!([
        {"name": "x", "kind": "array", "type": "float32", "shape": [5, 2], "bytes": 40},
        {"name": "y", "kind": "array", "type": "int64", "shape": [5], "bytes": 40},
        {"name": "z", "kind": "array", "type": "float64", "shape": [], "bytes": 8},
    ]);
    assert_eq!(objects(&plain), expected);
    assert_eq!(plain.samples(), None, "a single value that is as large as an array has no length");
    let expected = json!([
        {"name": "text", "kind": "array", "type": "text of 2", "shape": [2], "filters": ["deflate"], "bytes": 16},
        {"name": "pairs", "kind": "array", "type": "fields", "shape": [3], "filters": ["deflate"]},
    ]);
    assert_eq!(objects(&numpy::archive(open("packed.npz"), Limits::SHOWN)), expected);
    let expected = json!([{"name": "", "kind": "array", "type": "float64 big-endian", "shape": [3, 4], "bytes": 96}]);
    assert_eq!(objects(&numpy::array(open("big.npy"))), expected);
}

#[test]
fn a_file_is_looked_at_no_further_than_its_limits() {
    let Some((folder, _)) = judged() else { return };
    let open = || std::fs::File::open(folder.path().join("default.h5")).unwrap();
    let few = hdf5::read(open(), Limits { objects: 5, ..Limits::SHOWN });
    assert_eq!((few.objects.len(), &few.not_read[..]), (5, &["what comes after the first 5 objects".to_owned()][..]));
    let shallow = hdf5::read(open(), Limits { depth: 2, ..Limits::SHOWN });
    let deep = shallow.objects.iter().find(|object| object.name == "/a/b").unwrap();
    assert_eq!(deep.not_read.as_deref(), Some("it lies too deep"));
    let poor = hdf5::read(open(), Limits { bytes: 4096, ..Limits::SHOWN });
    assert!(poor.objects.len() < 20 && poor.not_read.len() == 1 && poor.samples().is_none());
}

/// Every reader on the bytes of a file that is of one of its kinds, or was.
fn survive(bytes: &[u8]) {
    for limits in [Limits::SHOWN, Limits::COUNTED] {
        for found in [
            hdf5::read(Cursor::new(bytes), limits),
            record::read(bytes, limits),
            numpy::array(bytes),
            numpy::archive(Cursor::new(bytes), limits),
        ] {
            assert!(found.objects.len() <= limits.objects);
            drop((found.samples(), serde_json::to_string(&found.objects).unwrap()));
        }
    }
}

#[test]
fn files_that_are_cut_or_changed_never_panic_nor_eat_memory() {
    let mut sound: Vec<Vec<u8>> = Vec::new();
    for (kernel, samples, bytes) in
        [(Kernel::CosmicTagger, 1, 47_104), (Kernel::ImageNet, 3, 400), (Kernel::Frnn, 1, 560)]
    {
        let (data, dir) = made(kernel, samples, bytes, 0.0);
        sound.push(std::fs::read(data.path(dir.path(), 0)).unwrap());
    }
    if let Some((folder, _)) = judged() {
        for name in ["earliest.h5", "latest.h5", "ordered.h5", "plain.npz", "packed.npz", "big.npy"] {
            sound.push(std::fs::read(folder.path().join(name)).unwrap());
        }
    }
    let mut random = Random(3);
    for (number, sound) in sound.iter().enumerate() {
        for length in (0..sound.len()).step_by((sound.len() / 40).max(1)) {
            survive(&sound[..length]);
        }
        for round in 0..rounds(60) {
            let mut bytes = sound.clone();
            for _ in 0..=random.below(8) {
                mutate(&mut random, &mut bytes);
            }
            // What describes the data lies in front, in HDF5: most changes there.
            for _ in 0..random.below(6) {
                let at = random.below(bytes.len().min(6000));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            let ((), most) = peak(|| survive(&bytes));
            assert!(most < 64 << 20, "file {number}, round {round}: {most} bytes");
        }
    }
}

#[test]
fn links_and_blocks_in_circles_end() {
    let (data, dir) = made(Kernel::CosmicTagger, 1, 47_104, 0.0);
    let mut bytes = std::fs::read(data.path(dir.path(), 0)).unwrap();
    let words = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let root = words(&bytes, 64);
    // Both datasets lead back to the root.
    let leaf = bytes.windows(4).position(|four| four == b"SNOD").unwrap();
    for entry in 0..2 {
        let at = leaf + 8 + 40 * entry + 8;
        bytes[at..at + 8].copy_from_slice(&root.to_le_bytes());
    }
    let found = hdf5::read(Cursor::new(&bytes), Limits::SHOWN);
    let targets: Vec<_> = found.objects.iter().map(|object| object.target.as_deref()).collect();
    assert_eq!(targets, [Some("/"), Some("/")]);
    // The tree of the root's names is its own child.
    let tree = bytes.windows(4).position(|four| four == b"TREE").unwrap();
    bytes[tree + 5] = 1;
    bytes[tree + 32..tree + 40].copy_from_slice(&(tree as u64).to_le_bytes());
    let found = hdf5::read(Cursor::new(&bytes), Limits::SHOWN);
    assert_eq!((found.objects.len(), &found.not_read[..]), (0, &["it is damaged".to_owned()][..]));
}
