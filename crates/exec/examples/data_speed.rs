//! What looking up data costs, first and again. `cargo run --release -p tulpar-exec --example data_speed [FILES]`

use std::fs;
use std::time::{Duration, Instant};
use tulpar_core::workflow::{Data, DataSource, Span};
use tulpar_exec::data::{Stamp, resolve};

#[expect(clippy::print_stdout, reason = "printing figures is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(30_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("images"))?;
    let content = vec![7; 20_000];
    let mut last = folder.path().to_owned();
    for n in 0..count {
        last = folder.path().join(format!("images/{n}.jpg"));
        fs::write(&last, [&n.to_le_bytes(), &content[..]].concat())?;
    }
    let fresh = Stamp::of(&fs::metadata(&last)?);
    while !fresh.is_settled(Stamp::now()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let data = [Data {
        name: "images".into(),
        source: DataSource::Glob("images/*.jpg".into()),
        sha256: Default::default(),
        span: Span::default(),
    }];
    for what in ["first", "again"] {
        let started = Instant::now();
        let resolved = resolve(folder.path(), &folder.path().join("cache"), &data, &|_| {});
        let took = started.elapsed().as_secs_f64();
        println!("{what}: {} files, {} hashed, {took:.2} s", resolved.files[0].len(), resolved.hashed_files);
    }
    Ok(())
}
