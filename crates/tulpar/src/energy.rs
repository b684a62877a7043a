//! The energy of this machine while it drives a run, where the kernel lets us read it (RAPL): two small files a
//! processor, read twice a minute.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tulpar_exec::folder::RunFolder;

const ZONES: &str = "/sys/class/powercap";
const FILE: &str = "energy.jsonl";
/// A counter of a busy processor begins again after some minutes.
const EVERY: Duration = Duration::from_secs(30);

struct Zone {
    counter: PathBuf,
    /// Where it begins again.
    most: u64,
    last: u64,
}

/// Adds up what the processors take.
pub(crate) struct Meter {
    zones: Vec<Zone>,
    microjoules: u64,
    read: Instant,
}

impl Meter {
    /// `None` where nothing can be read: on most machines only an administrator may.
    pub(crate) fn start() -> Option<Self> {
        Self::of(Path::new(ZONES))
    }

    fn of(folder: &Path) -> Option<Self> {
        let whole = |path: &Path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let mut zones = Vec::new();
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            // Packages only: what is inside them, `intel-rapl:0:1`, is counted in them.
            let package = |name: &str| name.starts_with("intel-rapl:") && name.matches(':').count() == 1;
            if !path.file_name().and_then(|name| name.to_str()).is_some_and(package) {
                continue;
            }
            let counter = path.join("energy_uj");
            if let (Some(last), Some(most)) = (whole(&counter), whole(&path.join("max_energy_range_uj"))) {
                zones.push(Zone { counter, most, last });
            }
        }
        (!zones.is_empty()).then(|| Self { zones, microjoules: 0, read: Instant::now() })
    }

    /// Looks again when it is time.
    pub(crate) fn ticked(&mut self) {
        if self.read.elapsed() >= EVERY {
            self.look();
        }
    }

    fn look(&mut self) {
        self.read = Instant::now();
        for zone in &mut self.zones {
            let text = std::fs::read_to_string(&zone.counter).unwrap_or_default();
            let Ok(now) = text.trim().parse::<u64>() else { continue };
            self.microjoules += if now >= zone.last { now - zone.last } else { zone.most - zone.last + now };
            zone.last = now;
        }
    }

    /// Notes what was taken since the start in the folder of the run. Without it a report uses a model.
    pub(crate) fn finish(mut self, folder: &RunFolder) {
        self.look();
        let line = format!("{{\"joules\":{}}}\n", self.microjoules as f64 / 1e6);
        let file = std::fs::File::options().create(true).append(true).open(folder.path.join(FILE));
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// All that was recorded of a run, which may have been driven several times.
pub(crate) fn recorded(folder: &RunFolder) -> Option<f64> {
    let text = std::fs::read_to_string(folder.path.join(FILE)).ok()?;
    let joules = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["joules"].as_f64();
    let all: Vec<f64> = text.lines().filter_map(joules).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_added_up_and_a_counter_that_begins_again_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |zone: &str, file: &str, value: u64| {
            let path = folder.path().join(zone);
            std::fs::create_dir_all(&path).expect("a folder");
            std::fs::write(path.join(file), format!("{value}\n")).expect("a file");
        };
        for zone in ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"] {
            write(zone, "energy_uj", 900);
            write(zone, "max_energy_range_uj", 1000);
        }
        write("intel-rapl", "enabled", 1);
        let mut meter = Meter::of(folder.path()).expect("packages");
        write("intel-rapl:0", "energy_uj", 950);
        write("intel-rapl:1", "energy_uj", 20);
        meter.look();
        assert_eq!(meter.microjoules, 50 + 120);
        let run = RunFolder { name: "w-1".into(), path: folder.path().to_owned() };
        meter.microjoules += 3_000_000 - 170;
        meter.finish(&run);
        assert_eq!(recorded(&run), Some(3.0));
        assert!(Meter::of(&folder.path().join("nowhere")).is_none());
    }
}
