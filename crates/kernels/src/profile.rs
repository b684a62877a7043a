//! What the kernel tells of its steps as a framework would: a profile as PyTorch writes it, and an event file of
//! TensorBoard, both with times of the wall clock. Both are written through the meter: they are I/O of the kernel too.

use std::io::Write;
use std::path::Path;

use crate::clock::seconds;
use crate::error::Error;
use crate::format::record;
use crate::interval::Span;
use crate::meter::{Probe, Seen};

/// When what happened in a step.
pub(crate) struct Step {
    pub(crate) number: u64,
    pub(crate) whole: Span,
    pub(crate) wait: Span,
    pub(crate) compute: Span,
    pub(crate) checkpoint: Option<Span>,
    pub(crate) samples: u64,
}

pub(crate) struct Profile {
    trace: Seen,
    events: Seen,
    trace_text: Vec<u8>,
    event_bytes: Vec<u8>,
    process: u32,
}

/// Written when so much has gathered.
const GATHERED: usize = 256 << 10;
/// Rows of the process, the loader and the device.
const MAIN: u32 = 1;
const DEVICE: u32 = 7;

impl Profile {
    pub(crate) fn create(probe: &mut Probe, folder: &Path, now: u64) -> Result<Profile, Error> {
        let process = std::process::id();
        let host = rustix::system::uname().nodename().to_string_lossy().replace('/', "_");
        let trace = probe.create(&folder.join(format!("{host}_{process}.{}.pt.trace.json", now / 1_000_000)))?;
        let events = format!("events.out.tfevents.{}.{host}.{process}.0", now / 1_000_000_000);
        let events = probe.create(&folder.join(events))?;
        let mut trace_text = b"{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [\n".to_vec();
        for (row, name) in [(MAIN, "steps"), (DEVICE, "emulated device")] {
            let _ = writeln!(
                trace_text,
                r#"{{"ph": "M", "name": "thread_name", "pid": {process}, "tid": {row}, "ts": 0, "args": {{"name": "{name}"}}}},"#
            );
        }
        let mut event_bytes = Vec::new();
        let mut version = event(now, 0);
        version.extend_from_slice(b"\x1a\x0dbrain.Event:2");
        append(&version, &mut event_bytes);
        Ok(Profile { trace, events, trace_text, event_bytes, process })
    }

    pub(crate) fn step(&mut self, probe: &mut Probe, step: &Step) -> Result<(), Error> {
        let number = step.number;
        self.span(MAIN, "user_annotation", &format!("ProfilerStep#{number}"), step.whole);
        self.span(MAIN, "user_annotation", "enumerate(DataLoader)#_KernelIter.__next__", step.wait);
        self.span(DEVICE, "kernel", "emulated_compute", step.compute);
        if let Some(checkpoint) = step.checkpoint {
            self.span(MAIN, "user_annotation", "save_checkpoint", checkpoint);
        }
        let mut bytes = event(step.whole.1, number);
        let mut summary = Vec::new();
        let length = |span: Span| seconds(span.1 - span.0) as f32;
        for (tag, value) in [
            ("step/seconds", length(step.whole)),
            ("step/wait_seconds", length(step.wait)),
            ("step/samples", step.samples as f32),
        ] {
            summary.extend_from_slice(&[0x0a, tag.len() as u8 + 7, 0x0a, tag.len() as u8]);
            summary.extend_from_slice(tag.as_bytes());
            summary.push(0x15);
            summary.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&[0x2a, summary.len() as u8]);
        bytes.extend_from_slice(&summary);
        append(&bytes, &mut self.event_bytes);
        if self.trace_text.len() >= GATHERED {
            self.write(probe)?;
        }
        Ok(())
    }

    /// Times are microseconds since the epoch.
    fn span(&mut self, row: u32, category: &str, name: &str, span: Span) {
        let (start, length) = (span.0, span.1 - span.0);
        let _ = writeln!(
            self.trace_text,
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {}, "tid": {row}, "ts": {}.{:03}, "dur": {}.{:03}}},"#,
            self.process,
            start / 1000,
            start % 1000,
            length / 1000,
            length % 1000
        );
    }

    fn write(&mut self, probe: &mut Probe) -> Result<(), Error> {
        probe.write(&mut self.trace, &self.trace_text)?;
        probe.write(&mut self.events, &self.event_bytes)?;
        self.trace_text.clear();
        self.event_bytes.clear();
        Ok(())
    }

    pub(crate) fn close(mut self, probe: &mut Probe) -> Result<(), Error> {
        // No comma after the last event: it is one that says nothing.
        let _ = write!(
            self.trace_text,
            r#"{{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "ts": 0, "args": {{"name": "kernel"}}}}"#,
            self.process
        );
        self.trace_text.extend_from_slice(b"\n]}\n");
        self.write(probe)?;
        probe.close(self.trace);
        probe.close(self.events);
        Ok(())
    }
}

/// The begin of an event: when, and in which step.
fn event(at: u64, step: u64) -> Vec<u8> {
    let mut bytes = vec![0x09];
    bytes.extend_from_slice(&seconds(at).to_le_bytes());
    bytes.push(0x10);
    let mut rest = step;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn append(event: &[u8], to: &mut Vec<u8>) {
    record::write(event, to).expect("memory takes what is written to it");
}
