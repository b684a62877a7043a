//! Utilisation and memory of GPUs, read by a thread of its own that exists only while tasks have GPUs.
//!
//! Through NVML in-process; through `nvidia-smi` where the driver's library cannot be loaded, as by a static binary, which is
//! without the feature `nvml`. Untested on hardware: no machine of this project has a GPU; the text of `nvidia-smi` is.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Percent and bytes by what `CUDA_VISIBLE_DEVICES` may call a device: its index and its UUID.
type Readings = HashMap<String, (u32, u64)>;

#[derive(Default)]
pub(crate) struct Gpus {
    readings: Mutex<Readings>,
    /// Attempts with GPUs.
    users: AtomicUsize,
    running: AtomicBool,
}

impl Gpus {
    /// An attempt with GPUs starts.
    pub(crate) fn begin(self: &std::sync::Arc<Self>, every: Duration) {
        self.users.fetch_add(1, Ordering::SeqCst);
        if !self.running.swap(true, Ordering::SeqCst) {
            let gpus = std::sync::Arc::clone(self);
            let spawned = std::thread::Builder::new().name("gpus".into()).spawn(move || gpus.watch(every));
            if spawned.is_err() {
                self.running.store(false, Ordering::SeqCst);
            }
        }
    }

    pub(crate) fn end(&self) {
        self.users.fetch_sub(1, Ordering::SeqCst);
    }

    /// The mean utilisation and the summed memory of these devices, when all could be read.
    pub(crate) fn reading(&self, devices: &[String]) -> Option<(u32, u64)> {
        if devices.is_empty() {
            return None;
        }
        let readings = self.readings.lock().expect("no panic while held");
        let (mut percent, mut memory) = (0, 0);
        for device in devices {
            let reading = readings.get(device)?;
            percent += reading.0;
            memory += reading.1;
        }
        Some((percent / devices.len() as u32, memory))
    }

    fn watch(&self, every: Duration) {
        if let Some(mut read) = reader() {
            while self.users.load(Ordering::SeqCst) > 0 {
                let Some(readings) = read() else { break };
                *self.readings.lock().expect("no panic while held") = readings;
                std::thread::sleep(every.max(Duration::from_millis(100)));
            }
            self.running.store(false, Ordering::SeqCst);
        }
        // Without a driver there will be none in a second either: `running` stays set and nobody asks again.
    }
}

type Reader = Box<dyn FnMut() -> Option<Readings>>;

fn reader() -> Option<Reader> {
    #[cfg(feature = "nvml")]
    if let Some(read) = library() {
        return Some(Box::new(read));
    }
    tool()
}

#[cfg(feature = "nvml")]
fn library() -> Option<impl FnMut() -> Option<Readings>> {
    let nvml = nvml_wrapper::Nvml::init().ok()?;
    Some(move || {
        let mut readings = Readings::new();
        for index in 0..nvml.device_count().ok()? {
            let device = nvml.device_by_index(index).ok()?;
            let reading = (device.utilization_rates().ok()?.gpu, device.memory_info().ok()?.used);
            readings.insert(index.to_string(), reading);
            readings.insert(device.uuid().ok()?, reading);
        }
        Some(readings)
    })
}

fn tool() -> Option<Reader> {
    let query = || {
        let mut command = Command::new("nvidia-smi");
        command.args(["--query-gpu=index,uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits"]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| parse(&String::from_utf8_lossy(&output.stdout)))
    };
    query()?;
    Some(Box::new(query))
}

/// `0, GPU-8f3a…, 37, 1024`: index, UUID, percent, MiB. A device that does not tell (`[N/A]`) is left out.
fn parse(text: &str) -> Readings {
    let mut readings = Readings::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [index, uuid, percent, memory] = fields[..] else { continue };
        let (Ok(percent), Ok(memory)) = (percent.parse(), memory.parse::<u64>()) else { continue };
        readings.insert(index.into(), (percent, memory << 20));
        readings.insert(uuid.into(), (percent, memory << 20));
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_nvidia_smi_is_read_by_index_and_by_uuid() {
        let text = "0, GPU-8f3a1c2e, 37, 1024\n1, GPU-77b0, [N/A], 3\n2, GPU-9c, 100, 40536\nNVIDIA-SMI has failed\n";
        let gpus = Gpus::default();
        *gpus.readings.lock().unwrap() = parse(text);
        assert_eq!(gpus.reading(&["0".into()]), Some((37, 1 << 30)));
        assert_eq!(gpus.reading(&["GPU-8f3a1c2e".into(), "2".into()]), Some((68, 41560 << 20)));
        assert_eq!(gpus.reading(&["1".into()]), None);
        assert_eq!(gpus.reading(&[]), None);
    }
}
