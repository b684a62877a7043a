//! How fast do many small files move? 28,793 files of 13 KB (0.374 GB), as ratios in one run to `cp -r` (= 1; larger is
//! faster): our local copies and hard links, our HTTP client from our HTTP server with a SHA-256 of every file, and the
//! peers rsync and curl. The median of several rounds; every way is measured once in each round (curl in the first).
//!
//! `cargo bench -p tulpar-benches --bench staging [-- FILES [ROUNDS] [WORD …]]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tulpar_transfer::{LinkMode, Location, Options, ServeOptions, Server, Sha256Digest, Transfer, Transfers};

const FILES: usize = 28_793;
const SIZE: usize = 13_000;
const ROUNDS: usize = 3;

struct Stage {
    source: PathBuf,
    names: Vec<String>,
    sums: Vec<Sha256Digest>,
    server: Server,
    curl: PathBuf,
}

/// Moves everything to a folder that does not exist yet.
type Way = fn(&Stage, &Path);

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let files = numbers.first().copied().unwrap_or(FILES);
    let rounds = numbers.get(1).copied().unwrap_or(ROUNDS);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stage = prepare(folder.path(), files);
    let mut ways: Vec<(&str, Way)> = vec![
        ("cp -r", copy_by_cp),
        ("tulpar, local copy", copy_here),
        ("tulpar, local copy with SHA-256", copy_checked),
        ("tulpar, hard links", link_here),
        ("tulpar, HTTP with SHA-256", download),
        ("tulpar, HTTP, SHA-256 known before", download_checked),
        ("tulpar, HTTP upload with SHA-256", upload),
    ];
    for (name, program, way) in
        [("rsync -a", "rsync", copy_by_rsync as Way), ("curl --parallel, HTTP", "curl", download_by_curl as Way)]
    {
        if has(program) {
            ways.push((name, way));
        } else {
            println!("{program} is not installed: not measured");
        }
    }
    // Words choose: `-- 3000 5 links rsync` measures these beside `cp -r`.
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| word.parse::<usize>().is_err() && !word.starts_with('-')).collect();
    let chosen = |name: &str| words.is_empty() || name == "cp -r" || words.iter().any(|word| name.contains(word));
    ways.retain(|(name, _)| chosen(name));
    let mut taken: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for (place, (name, way)) in ways.iter().enumerate() {
            // With a list this long curl needs half a minute and more: once is enough to know.
            if round > 0 && name.starts_with("curl") {
                continue;
            }
            let to = folder.path().join(format!("to-{round}-{place}"));
            let begun = Instant::now();
            way(&stage, &to);
            taken[place].push(begun.elapsed());
            assert_eq!(count(&to), files, "{name}: not every file arrived");
            // Removed at the very end: ext4 does not give out the inodes of files that were removed a moment ago, and
            // looks through all of them for every new file.
        }
    }
    let medians: Vec<f64> = taken.iter_mut().map(|times| median(times)).collect();
    println!("{files} files of {SIZE} bytes, median of {rounds} rounds");
    println!("{:<36} {:>9} {:>10} {:>7}", "way", "seconds", "files/s", "ratio");
    for ((name, _), seconds) in ways.iter().zip(&medians) {
        println!("{name:<36} {seconds:>9.3} {:>10.0} {:>7.2}", files as f64 / seconds, medians[0] / seconds);
    }
}

fn prepare(folder: &Path, files: usize) -> Stage {
    let source = folder.join("source");
    std::fs::create_dir(&source).expect("a folder");
    let names: Vec<String> = (0..files).map(|number| format!("image_{number:06}.jpg")).collect();
    let mut state = 42_u64;
    let mut content = vec![0_u8; SIZE];
    let mut sums = Vec::with_capacity(files);
    for name in &names {
        for part in content.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
        }
        sums.push(Sha256Digest::of(&content));
        std::fs::write(source.join(name), &content).expect("written");
    }
    let server = Server::start(ServeOptions::new(folder)).expect("a server");
    let curl = folder.join("curl.list");
    let mut list = String::new();
    for name in &names {
        let _ = writeln!(list, "url = \"{}source/{name}\"\noutput = \"{name}\"", server.url());
    }
    std::fs::write(&curl, list).expect("written");
    Stage { source, names, sums, server, curl }
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn finish(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?} failed");
}

fn copy_by_cp(stage: &Stage, to: &Path) {
    finish(Command::new("cp").arg("-r").arg(&stage.source).arg(to));
}

fn copy_by_rsync(stage: &Stage, to: &Path) {
    finish(Command::new("rsync").arg("-a").arg(format!("{}/", stage.source.display())).arg(to));
}

fn download_by_curl(stage: &Stage, to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    let list = std::fs::canonicalize(&stage.curl).expect("the list");
    finish(Command::new("curl").args(["--silent", "--fail", "--parallel", "--config"]).arg(list).current_dir(to));
}

fn run(transfers: &Transfers, list: &[Transfer]) {
    for result in transfers.transfer(list) {
        result.expect("it arrives");
    }
}

fn local(stage: &Stage, to: &Path, options: Options) {
    let transfers = Transfers::new(options);
    let list = transfers.tree(&stage.source.as_path().into(), &to.into()).expect("listed");
    run(&transfers, &list);
}

fn copy_here(stage: &Stage, to: &Path) {
    local(stage, to, Options::default());
}

fn copy_checked(stage: &Stage, to: &Path) {
    local(stage, to, Options { hash_local: true, ..Options::default() });
}

fn link_here(stage: &Stage, to: &Path) {
    local(stage, to, Options { links: LinkMode::HardLink, ..Options::default() });
}

/// The names come from the server too.
fn download(stage: &Stage, to: &Path) {
    let transfers = Transfers::new(Options::default());
    let list = transfers.tree(&stage.server.url().join("source"), &to.into()).expect("listed");
    run(&transfers, &list);
}

/// As a plan has them: names and checksums are known, and verified.
fn download_checked(stage: &Stage, to: &Path) {
    let from = stage.server.url().join("source");
    let to = Location::from(to);
    let known = stage.names.iter().zip(&stage.sums);
    let list: Vec<Transfer> = known
        .map(|(name, sum)| Transfer {
            size: Some(SIZE as u64),
            sha256: Some(*sum),
            ..Transfer::new(from.join(name), to.join(name))
        })
        .collect();
    run(&Transfers::new(Options::default()), &list);
}

fn upload(stage: &Stage, to: &Path) {
    let transfers = Transfers::new(Options::default());
    let name = to.file_name().expect("a name").to_string_lossy();
    let to = stage.server.url().join(&name);
    let list = transfers.tree(&stage.source.as_path().into(), &to).expect("listed");
    run(&transfers, &list);
}
