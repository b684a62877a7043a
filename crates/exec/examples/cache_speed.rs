//! What a look and a remembering cost. `cargo run --release -p tulpar-exec --example cache_speed [ENTRIES]`

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tulpar_core::event::{Cached, Key};
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;
use tulpar_exec::cache::{Cache, object_path};

#[expect(clippy::print_stdout, reason = "printing figures is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let outputs: Vec<OutputFile> = (0..count).map(|n| object(folder.path(), n)).collect::<Result<_, _>>()?;
    let print = |what: &str, time: Duration| {
        println!("{what:<28} {:>7.2} µs each", time.as_secs_f64() * 1e6 / f64::from(count));
    };

    let mut cache = Cache::open(folder.path(), "first")?;
    let mut missed = Duration::ZERO;
    let mut remembered = Duration::ZERO;
    for (n, output) in outputs.iter().enumerate() {
        let (name, key) = (format!("train[n={n}]"), key(n, 1));
        let started = Instant::now();
        let found = cache.look(&name, &key);
        missed += started.elapsed();
        assert!(matches!(found, Cached::Miss(_)));
        let started = Instant::now();
        cache.remember(&name, &key, std::slice::from_ref(output), None)?;
        remembered += started.elapsed();
    }
    print("miss, nothing there", missed);
    print("remember", remembered);
    drop(cache);
    let started = Instant::now();
    let mut cache = Cache::open(folder.path(), "second")?;
    print("open", started.elapsed());
    for (what, version) in [("hit", 1), ("miss, with what changed", 2)] {
        let started = Instant::now();
        for n in 0..outputs.len() {
            let found = cache.look(&format!("train[n={n}]"), &key(n, version));
            assert_eq!(matches!(found, Cached::Hit { .. }), version == 1);
        }
        print(what, started.elapsed());
    }
    let started = Instant::now();
    drop(cache);
    Cache::gc(folder.path(), Some(0), &Default::default(), false)?;
    print("gc of everything", started.elapsed());
    Ok(())
}

fn key(n: usize, version: u32) -> Key {
    Key {
        command: format!("python train.py --part {n} --of 6 --version {version} splits.json --out clean/"),
        environment: "container=galaxy.sif".into(),
        outputs: "clean=clean/*.npy".into(),
        inputs: [("splits".to_owned(), Digest::of(b"splits")), ("images".to_owned(), Digest::of(b"images"))].into(),
    }
}

fn object(cache: &Path, n: u32) -> std::io::Result<OutputFile> {
    let content = n.to_string();
    let digest = Digest::of(content.as_bytes());
    let place = object_path(cache, &digest);
    fs::create_dir_all(place.parent().expect("an object lies in a folder"))?;
    fs::write(&place, &content)?;
    let mut permissions = fs::metadata(&place)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&place, permissions)?;
    Ok(OutputFile { output: 0, path: format!("clean/{n}.npy"), size: content.len() as u64, digest, executable: false })
}
