//! What `io record` and `io report` say of a kernel is what the kernel measured of itself: shares of I/O, hidden and
//! exposed, waiting, bytes, requests and their order, file by file.

use super::harness::Scene;
use serde_json::Value;

/// Times may differ by two parts in a hundred of themselves. What takes hardly any of the run is below what the clocks of
/// two programs agree on, and may differ by half a point.
const PART: f64 = 0.02;
const LEAST: f64 = 0.005;
/// A busy machine takes the processor away between the clock of the kernel and that of the recorder: then it is tried
/// again. What is wrong every time is wrong.
const TRIES: u32 = 5;

struct Compared {
    truth: Value,
    report: Value,
    /// Of the data files alone.
    data: Value,
    /// By how much times may differ.
    part: f64,
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value:#}"))
}

/// Runs a kernel under the recorder and reports on it with its profile: times, requests, bytes and order agree.
#[track_caller]
fn agreed(scene: &Scene, kernel: &str, options: &str) -> Compared {
    let mut wrong = String::new();
    for _ in 0..TRIES {
        let found = compared(scene, kernel, options);
        found.requests();
        match found.shares() {
            Ok(()) => return found,
            Err(words) => wrong = words,
        }
    }
    panic!("{kernel}: {wrong}");
}

fn compared(scene: &Scene, kernel: &str, options: &str) -> Compared {
    let said = scene.tulpar(&format!("io bench {kernel} --dir d --record --json {options}")).done();
    let truth = said.json()[0]["truths"][0].clone();
    let report = |more: &str| {
        let said = scene.tulpar(&format!("io report d/{kernel}.out/kernel.darshan --json {more}")).done();
        said.json()[0].clone()
    };
    let data = scene.path(&format!("d/{kernel}/**"));
    let (report, data) =
        (report(&format!("--profile d/{kernel}.out")), report(&format!("--files '{}'", data.display())));
    // Reads of a microsecond from memory: the recorder itself takes a few parts in a hundred of that.
    let part = if kernel == "cosmictagger" { 2.0 * PART } else { PART };
    Compared { truth, report, data, part }
}

impl Compared {
    fn near(&self, what: &str, reported: f64, truth: f64) -> Result<(), String> {
        match (reported - truth).abs() < (self.part * truth.abs()).max(LEAST) {
            true => Ok(()),
            false => Err(format!("{what}: reported {reported}, truth {truth}: {:#}", self.truth["times"])),
        }
    }

    /// Time in I/O, hidden and exposed, and waiting, as shares of the run.
    fn shares(&self) -> Result<(), String> {
        let run_time = number(&self.truth, "/run_time");
        let truth = |name: &str| number(&self.truth, &format!("/times/{name}"));
        let whole = |name: &str| number(&self.report, &format!("/pipeline/whole/{name}"));
        // The process lives a little longer than the kernel in it.
        let lived = number(&self.report, "/job/run_time");
        assert!(lived >= run_time, "{lived} s of process, {run_time} s of kernel");
        self.near("I/O of the process", number(&self.report, "/io/share"), truth("io") / lived)?;
        for (reported, name) in [("io", "io"), ("hidden", "hidden"), ("exposed", "exposed"), ("compute", "compute")] {
            self.near(name, whole(reported) / run_time, truth(name) / run_time)?;
        }
        self.near("waiting", number(&self.report, "/pipeline/loading_share"), truth("wait") / truth("steps"))?;
        // Hidden over I/O is right where both are; of little I/O it says nothing.
        if truth("io_share") > 0.05 {
            let overlap = whole("hidden") / whole("io").max(1e-9);
            if (overlap - truth("overlap")).abs() >= 2.0 * self.part {
                return Err(format!("overlap {overlap}, truth {}", truth("overlap")));
            }
        }
        assert_eq!(number(&self.report, "/pipeline/steps_total"), number(&self.truth, "/steps"));
        Ok(())
    }

    /// Requests, bytes and their order on the data files: these are equal.
    #[track_caller]
    fn requests(&self) {
        let read = self.data["layers"].as_array().unwrap().iter().find(|layer| layer["layer"] == "POSIX");
        let read = &read.unwrap_or_else(|| panic!("no layer POSIX in {:#}", self.data))["read"];
        for (reported, truth) in [
            ("/requests", "/read/count"),
            ("/bytes", "/read/bytes"),
            ("/sequential", "/read/sequential"),
            ("/consecutive", "/read/consecutive"),
            ("/random", "/read/random"),
        ] {
            assert_eq!(number(read, reported), number(&self.truth, truth), "{truth}");
        }
        let reported = rows(&self.data["files"], "name");
        let truth = rows(&self.truth["files"], "path");
        let truth: Vec<_> = truth.into_iter().filter(|row| row.2 > 0.0).collect();
        assert_eq!(reported, truth);
    }
}

/// Path, bytes read, reads and opens of every file, by path.
fn rows(files: &Value, name: &str) -> Vec<(String, f64, f64, f64)> {
    let mut rows: Vec<_> = files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let path = file[name].as_str().unwrap().to_owned();
            (path, number(file, "/bytes_read"), number(file, "/reads"), number(file, "/opens"))
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

#[test]
fn what_is_read_ahead_in_threads_is_reported_as_the_kernel_measured_it() {
    let scene = Scene::empty();
    let imagenet = agreed(&scene, "imagenet", "--scale 24MB --compute 20 --batch 8 --prefetch 16");
    assert_eq!(number(&imagenet.truth, "/read/sizes/0/0"), 262_144.0);
    agreed(&scene, "cosmoflow", "--scale 24MB --compute 12%");
}

#[test]
fn small_chunks_and_checkpoints_are_reported_as_the_kernel_measured_them() {
    let scene = Scene::empty();
    let tagger = agreed(&scene, "cosmictagger", "--scale 24MB --compute 10");
    let writes = number(&tagger.truth, "/write/bytes");
    assert!(number(&tagger.report, "/bytes_written") >= writes, "{writes}");
}

#[test]
fn what_is_read_on_demand_is_reported_as_exposed() {
    let scene = Scene::empty();
    for (kernel, options) in [("ffn", "--scale 24MB --compute 18.4%"), ("frnn", "--scale 24MB --compute 20%")] {
        let found = agreed(&scene, kernel, options);
        assert!(number(&found.report, "/pipeline/whole/hidden") < 1e-3 * number(&found.truth, "/run_time"), "{kernel}");
    }
}

#[test]
fn several_processes_are_one_job_with_the_bytes_of_all() {
    let scene = Scene::empty();
    let said = scene.tulpar("io bench frnn --dir d --record --json --scale 24MB --compute 5 --processes 2").done();
    let truths = said.json()[0]["truths"].clone();
    let bytes: f64 = truths.as_array().unwrap().iter().map(|truth| number(truth, "/read/bytes")).sum();
    let data = scene.path("d/frnn/**");
    let said = scene.tulpar(&format!("io report d/frnn.out/kernel.darshan --json --files '{}'", data.display()));
    assert_eq!(number(&said.done().json()[0], "/bytes_read"), bytes);
}
