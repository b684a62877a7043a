//! Every data set is read by the library of its format (h5py, NumPy, the tfrecord package), which finds what a second
//! computation of the contents says.

use std::path::Path;
use std::process::Command;

use tulpar_kernels::{DataSet, Kernel, generate};

use crate::harness::skipped;

fn judge(data: &DataSet, dir: &Path) -> Option<String> {
    let there = Command::new("python3").args(["-c", "import h5py, numpy, tfrecord, crc32c"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        skipped("h5py, numpy and tfrecord are not here: no other reader judges generated data sets");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge.py");
    let output = Command::new("python3").arg(script).arg(data.folder(dir)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

fn made(
    kernel: Kernel,
    files: u64,
    samples_per_file: u64,
    sample_bytes: u64,
    spread: f64,
) -> (DataSet, tempfile::TempDir) {
    let data = DataSet { kernel, seed: 7, files, samples_per_file, sample_bytes, spread };
    let dir = tempfile::tempdir().unwrap();
    let generated = generate(&data, dir.path(), &|_| {}).unwrap();
    assert!(!generated.reused);
    (data, dir)
}

#[test]
fn tfrecord_holds_the_examples_of_imagenet() {
    let (data, dir) = made(Kernel::ImageNet, 3, 5, 3000, 0.25);
    let samples = data.epoch();
    let bytes: u64 = (0..3)
        .flat_map(|file| (0..data.samples(file)).map(move |sample| (file, sample)))
        .map(|(file, sample)| data.bytes_of(file, sample))
        .sum();
    if let Some(found) = judge(&data, dir.path()) {
        assert_eq!(found, format!("{samples} {bytes}"));
    }
}

#[test]
fn tfrecord_holds_the_examples_of_cosmoflow() {
    let (data, dir) = made(Kernel::CosmoFlow, 2, 2, 300_000, 0.0);
    if let Some(found) = judge(&data, dir.path()) {
        assert_eq!(found, "4 1200000");
    }
}

#[test]
fn hdf5_holds_the_images_of_cosmictagger_in_small_chunks() {
    // 700 images have 4,900 chunks of voxels: an index of three levels.
    let (data, dir) = made(Kernel::CosmicTagger, 1, 700, 47_104, 0.0);
    if let Some(found) = judge(&data, dir.path()) {
        assert_eq!(found, "700 32972800");
    }
}

#[test]
fn hdf5_holds_the_volumes_of_ffn() {
    let (data, dir) = made(Kernel::Ffn, 2, 3, 512_000, 0.0);
    if let Some(found) = judge(&data, dir.path()) {
        assert_eq!(found, "128 8192000");
    }
}

#[test]
fn npz_holds_the_signals_of_frnn() {
    let (data, dir) = made(Kernel::Frnn, 4, 1, 40_000, 0.1);
    if let Some(found) = judge(&data, dir.path()) {
        let bytes: u64 = (0..4).map(|file| data.bytes_of(file, 0) / 56 * 56 + 128).sum();
        assert_eq!(found, format!("4 {bytes}"));
    }
}

#[test]
fn a_data_set_is_made_once_and_anew_from_other_numbers() {
    let (mut data, dir) = made(Kernel::Frnn, 4, 1, 10_000, 0.1);
    let path = data.path(dir.path(), 2);
    let first = std::fs::read(&path).unwrap();
    assert!(generate(&data, dir.path(), &|_| {}).unwrap().reused);
    data.files = 3;
    let generated = generate(&data, dir.path(), &|_| {}).unwrap();
    assert!(!generated.reused);
    assert_eq!(std::fs::read(&path).unwrap(), first, "the same seed gives the same bytes");
    assert!(!data.path(dir.path(), 3).exists(), "what another data set had is gone");
    data.seed = 8;
    generate(&data, dir.path(), &|_| {}).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), first);
}
