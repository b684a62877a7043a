//! What a pilot is told on its command line, and what it finds out about its place.

use std::path::PathBuf;
use std::time::Duration;
use tulpar_core::resources::USUAL_GRACE;

#[derive(Clone, Debug, PartialEq)]
pub struct PilotOptions {
    /// Where the driver is, each tried in turn.
    pub connect: Vec<String>,
    /// A file that says so anew, where it can be seen: a driver that is started again may listen elsewhere.
    pub address: Option<PathBuf>,
    pub key: PathBuf,
    /// Of the node that it is to the scheduler.
    pub name: String,
    pub node: u32,
    /// Thousandths of cores; found out when it is not said.
    pub milli_cpus: Option<u32>,
    /// It must be gone after this.
    pub until: Option<Duration>,
    /// What its tasks get at most to save their state.
    pub grace: Duration,
    /// Its own things go into a folder below.
    pub folder: PathBuf,
    /// The folder of the workflow, where it can be seen.
    pub project: Option<PathBuf>,
    /// Contents up to so many bytes are kept for the next task.
    pub store: Option<u64>,
}

impl PilotOptions {
    /// `None`: these words are not understood.
    pub fn parse(words: &[String]) -> Option<PilotOptions> {
        let (mut connect, mut address, mut key, mut name, mut node) = (Vec::new(), None, None, None, None);
        let (mut milli_cpus, mut until, mut store) = (None, None, None);
        let mut grace = USUAL_GRACE;
        let (mut folder, mut project) = (PathBuf::from("."), None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.as_str() {
                "--connect" => connect.extend(value.split(',').filter(|part| !part.is_empty()).map(str::to_owned)),
                "--address" => address = Some(value.into()),
                "--key" => key = Some(value.into()),
                "--name" => name = Some(value.clone()),
                "--node" => node = Some(value.parse().ok()?),
                "--cpus" => milli_cpus = Some(parse_cpus(value)?),
                "--until" => until = Some(seconds(value)?),
                "--grace" => grace = seconds(value)?,
                "--folder" => folder = value.into(),
                "--project" => project = Some(value.into()),
                "--store" => store = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        if connect.is_empty() && address.is_none() {
            return None;
        }
        let (key, name, node) = (key?, name?, node?);
        Some(PilotOptions { connect, address, key, name, node, milli_cpus, until, grace, folder, project, store })
    }

    /// Where to dial, now.
    pub fn addresses(&self) -> Vec<String> {
        let text = self.address.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let mut all: Vec<String> = text.split([',', '\n']).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        for known in &self.connect {
            if !all.contains(known) {
                all.push(known.clone());
            }
        }
        all
    }
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn parse_cpus(text: &str) -> Option<u32> {
    let cpus: f64 = text.parse().ok()?;
    (cpus > 0.0 && cpus <= 65_536.0).then(|| (cpus * 1000.0).round() as u32)
}

/// What the site gave the job, as far as it says so.
pub(super) fn cores() -> u32 {
    let said =
        ["SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"].iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    said.unwrap_or_else(usable_cores).max(1)
}

/// As many as this process may use.
pub(super) fn usable_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

pub(super) fn gpus() -> Vec<String> {
    let devices = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
    devices.split(',').map(|device| device.trim().to_owned()).filter(|id| !id.is_empty()).collect()
}

/// Half of what is free where contents are kept.
pub(super) fn room(folder: &std::path::Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(1 << 30, |free| free.f_bavail.saturating_mul(free.f_frsize) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<PilotOptions> {
        PilotOptions::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_pilot_is_told_where_its_driver_is_and_who_it_is() {
        let options = parse("--connect a:1,b:2 --key k --name pilot-1 --node 3 --cpus 0.5 --until 60").unwrap();
        assert_eq!(options.addresses(), ["a:1", "b:2"]);
        assert_eq!((options.node, options.milli_cpus, options.until), (3, Some(500), Some(Duration::from_secs(60))));
    }

    #[test]
    fn words_that_make_no_sense_are_refused() {
        for line in [
            "--key k --name n --node 1",
            "--connect a:1 --key k --name n",
            "--connect a:1 --key k --name n --node x",
            "--connect a:1 --key k --name n --node 1 --cpus 0",
            "--connect a:1 --key k --name n --node 1 --until -5",
            "--connect a:1 --key k --name n --node 1 --folder",
            "--connect a:1 --key k --name n --node 1 stray",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
