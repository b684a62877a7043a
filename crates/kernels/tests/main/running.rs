//! What kernels say of themselves: requests, order, bytes and files as the real loaders have them; hidden and exposed I/O
//! as the set-up says.

use std::path::Path;

use tulpar_kernels::{Checkpoints, Compute, Job, Kernel, Outputs, Rank, Truth, Workload, bench, generate, run};

/// Runs a kernel on a data set of so many bytes.
fn ran(kernel: Kernel, bytes: u64, change: impl FnOnce(&mut Workload)) -> (Truth, Workload, tempfile::TempDir) {
    let mut workload = kernel.workload(bytes);
    workload.compute = Compute::Seconds(0.0);
    change(&mut workload);
    let dir = tempfile::tempdir().unwrap();
    generate(&workload.data, dir.path(), &|_| {}).unwrap();
    let outputs = Outputs { folder: dir.path().join("out") };
    let truth = run(&workload, dir.path(), &outputs, Rank::ALONE).unwrap();
    let written: Truth = serde_json::from_slice(&std::fs::read(outputs.truth()).unwrap()).unwrap();
    assert_eq!((written.read.bytes, written.steps), (truth.read.bytes, truth.steps));
    (truth, workload, dir)
}

fn sizes(truth: &Truth) -> Vec<u64> {
    truth.read.sizes.iter().map(|(size, _)| *size).collect()
}

/// Every file of the data set, as the kernel saw it: opens and bytes read, and bytes on the disk.
fn files(truth: &Truth, dir: &Path) -> Vec<(u64, u64, u64)> {
    let data = truth.files.iter().filter(|file| file.reads > 0);
    data.map(|file| (file.opens, file.bytes_read, dir.join(&file.path).metadata().unwrap().len())).collect()
}

#[test]
fn imagenet_reads_its_files_once_in_buffers_of_256_kb() {
    let (truth, workload, dir) = ran(Kernel::ImageNet, 16 << 20, |_| {});
    assert_eq!(truth.samples, workload.data.epoch());
    assert_eq!(truth.steps, truth.samples.div_ceil(64));
    assert_eq!(truth.read.sizes[0].0, 1 << 18);
    let files = files(&truth, dir.path());
    assert_eq!(files.len() as u64, workload.data.files);
    assert!(files.iter().all(|(opens, read, size)| *opens == 1 && read == size), "{files:?}");
    // Every file has one first read; one that asks for the rest of the last buffer finds nothing.
    assert_eq!(truth.read.random, workload.data.files);
    assert_eq!(truth.read.consecutive, truth.read.sequential);
    let empty = truth.read.sizes.iter().find(|(size, _)| *size == 0).map(|(_, count)| *count);
    assert_eq!(empty, Some(workload.data.files));
}

#[test]
fn cosmoflow_reads_everything_again_in_every_epoch() {
    let (truth, workload, dir) = ran(Kernel::CosmoFlow, 16 << 20, |_| {});
    assert_eq!((truth.samples, truth.steps), (16, 16));
    let files = files(&truth, dir.path());
    assert_eq!(files.len() as u64, workload.data.files);
    assert!(files.iter().all(|(opens, read, size)| *opens == 4 && *read == 4 * size), "{files:?}");
    assert_eq!(truth.sample_bytes, 4 * (16 << 20));
}

#[test]
fn cosmictagger_reads_small_chunks_nearly_in_order() {
    let (truth, _, _dir) = ran(Kernel::CosmicTagger, 10 << 20, |workload| {
        workload.checkpoints = Some(Checkpoints { every: 3, bytes: 5 << 20 });
    });
    let images = (10 << 20) / 47_104;
    assert_eq!((truth.samples, truth.steps), (images, 7));
    // Seven chunks of 6 KB and two of 2 KB an image; every node of the two indexes once; what describes the file.
    let (voxels, extents) = (images * 7, images * 2);
    let nodes = voxels.div_ceil(64) + 1 + extents.div_ceil(64) + 1;
    let expected = [(6144, voxels), (2048, extents), (2096, nodes), (512, 4), (48, 2), (8, 1), (328, 1), (544, 1)];
    assert_eq!(truth.read.sizes, expected);
    assert!(truth.read.random <= 2 * nodes + 4, "{:?}", truth.read);
    // Steps 3 and 6 write a checkpoint in pieces of a megabyte.
    assert_eq!(truth.write.sizes[0], (1 << 20, 10));
    assert!(truth.times.checkpoint > 0.0);
}

#[test]
fn ffn_reads_a_third_of_its_chunks_at_random_places() {
    let (truth, workload, _dir) = ran(Kernel::Ffn, 64 << 20, |_| {});
    let volumes = workload.data.files;
    assert_eq!((volumes, truth.samples), (16, 48));
    assert_eq!(truth.read.sizes[0], (64_000, 48 * 8));
    assert_eq!(truth.sample_bytes, 48 * 512_000);
    let share = truth.sample_bytes as f64 / (volumes * 64 * 64_000) as f64;
    assert!((0.3..0.4).contains(&share), "{share}");
    assert!(sizes(&truth).contains(&48) && sizes(&truth).contains(&512), "{:?}", truth.read.sizes);
    // A volume is opened for every place that is looked at; inside, chunks come in the order of the file.
    assert_eq!(truth.files.iter().map(|file| file.opens).sum::<u64>() - 2, 48);
    assert!(truth.read.random < truth.read.count / 3);
    assert!(truth.read.consecutive < truth.read.sequential);
}

#[test]
fn frnn_reads_whole_archives_one_by_one() {
    let (truth, workload, dir) = ran(Kernel::Frnn, 20 << 20, |_| {});
    assert_eq!((workload.data.files, truth.samples, truth.steps), (11, 11, 3));
    let files = files(&truth, dir.path());
    assert_eq!(files.len(), 11);
    // What is read twice is the end of the directory: 22 bytes, then 42 with what lies before; and the first four.
    assert!(files.iter().all(|(opens, read, size)| *opens == 1 && *read == size + 26 + 20), "{files:?}");
    assert_eq!(truth.read.ranges[5], 11, "one request of one to four megabytes a file: {:?}", truth.read.sizes);
}

#[test]
fn what_is_read_on_demand_is_never_hidden() {
    let (truth, _, _dir) = ran(Kernel::Ffn, 20 << 20, |workload| workload.compute = Compute::Seconds(0.002));
    assert_eq!(truth.times.hidden, 0.0);
    assert_eq!(truth.times.exposed, truth.times.io);
    assert!(truth.times.compute >= 0.002 * truth.steps as f64);
    assert!(truth.times.wait >= truth.times.io - 0.01 * truth.run_time, "{:?}", truth.times);
    assert!(truth.times.pipeline >= truth.read.latency.sum);
}

#[test]
fn what_is_read_ahead_of_a_long_compute_is_hidden() {
    let (truth, _, _dir) = ran(Kernel::CosmoFlow, 16 << 20, |workload| {
        workload.compute = Compute::Seconds(0.03);
        workload.workers = 1;
        workload.prefetch = 2;
    });
    // Only what comes before the first compute cannot be hidden: a few of sixteen samples, and the profile.
    assert!(truth.times.overlap > 0.3, "{:?}", truth.times);
    assert!((truth.times.hidden + truth.times.exposed - truth.times.io).abs() < 1e-9);
}

#[test]
fn the_same_seed_reads_the_same_bytes_in_the_same_order() {
    let facts = |truth: &Truth| (truth.read.bytes, truth.read.sequential, truth.read.sizes.clone(), truth.samples);
    let (first, ..) = ran(Kernel::Ffn, 20 << 20, |_| {});
    let (second, ..) = ran(Kernel::Ffn, 20 << 20, |_| {});
    assert_eq!(facts(&first), facts(&second));
}

#[test]
fn a_run_may_be_cut_short() {
    let (truth, ..) = ran(Kernel::ImageNet, 16 << 20, |workload| {
        workload.steps = Some(2);
        workload.batch = 4;
    });
    assert_eq!((truth.steps, truth.samples), (2, 8));
}

#[test]
fn a_damaged_record_is_named_and_ends_the_run() {
    let workload = Workload { workers: 2, ..Kernel::ImageNet.workload(4 << 20) };
    let dir = tempfile::tempdir().unwrap();
    generate(&workload.data, dir.path(), &|_| {}).unwrap();
    let path = workload.data.path(dir.path(), 1);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error =
        run(&workload, dir.path(), &Outputs { folder: dir.path().join("out") }, Rank::ALONE).unwrap_err().to_string();
    assert!(error.contains("train-00001-of-00004.tfrecord is not what was generated"), "{error}");
    assert!(error.contains("a record has a wrong checksum"), "{error}");
}

#[test]
fn a_file_system_is_judged_by_all_processes_beside_the_raw_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = Kernel::Frnn.workload(20 << 20);
    workload.compute = Compute::Seconds(0.001);
    let job = Job { workload, dir: dir.path().to_owned(), out: dir.path().join("out"), processes: 2 };
    let start = |path: &Path| {
        let job = Job::read(path)?;
        (0..job.processes).try_for_each(|rank| job.run(rank).map(|_| ()))
    };
    let outcome = bench(job.clone(), true, &start).unwrap();
    assert_eq!(outcome.truths.iter().map(|truth| truth.samples).collect::<Vec<_>>(), [6, 5]);
    let most: u64 = outcome.truths.iter().map(|truth| truth.read.bytes).sum();
    // A few bytes of every archive are read twice.
    assert_eq!(outcome.raw.bytes, most - 11 * 46);
    assert!(outcome.read_bytes_per_second() > 0.0 && outcome.ratio() > 0.0);
    assert_eq!(outcome.generate_seconds.is_some(), !outcome.data.reused);
    let again = bench(Job { processes: 1, ..job }, false, &start).unwrap();
    assert!(again.data.reused && again.generate_seconds.is_none());
    assert_eq!(again.truths[0].samples, 11);
}

#[test]
fn a_step_computes_until_io_has_the_share_that_was_asked_for() {
    for (kernel, share) in [(Kernel::Frnn, 0.05), (Kernel::CosmoFlow, 0.03)] {
        let (truth, ..) = ran(kernel, 30 << 20, |workload| workload.compute = Compute::Share(share));
        // A machine that is late makes the share smaller, never larger.
        assert!(truth.times.compute > 0.0 && truth.times.io_share < 1.1 * share, "{kernel}: {:?}", truth.times);
    }
}
