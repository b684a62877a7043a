//! What a PyTorch profile says of training steps: their time, the time that waits for the DataLoader, the time in which
//! a device computes.

use std::collections::BTreeMap;
use std::io::Read;

use super::Error;
use super::chrome::{self, Event};
use crate::interval::Union;

/// Times are microseconds since the epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    pub events: u64,
    /// Events with a duration, by category as written.
    pub categories: BTreeMap<String, u64>,
    /// `ProfilerStep#…`, in order.
    pub steps: Vec<(f64, f64)>,
    /// Waits for the DataLoader.
    pub loading: Vec<(f64, f64)>,
    pub kernels: Union,
    /// Sum over kernels, which may overlap on several streams and devices.
    pub kernel_sum: f64,
    /// Which of how many ranks wrote it.
    pub rank: Option<(i64, i64)>,
    pub torn: bool,
}

impl Profile {
    pub fn read(source: impl Read) -> Result<Profile, Error> {
        let mut profile = Profile::default();
        let document = chrome::read(source, |event| profile.add(event))?;
        profile.finish(&document);
        Ok(profile)
    }

    /// When all events were added.
    pub(crate) fn finish(&mut self, document: &chrome::Document) {
        self.events = document.events;
        self.torn = document.torn;
        self.rank = document.rank;
        if let Some(base) = document.base {
            self.shift(base / 1e3);
        }
        let by_start = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0);
        self.steps.sort_by(by_start);
        self.loading.sort_by(by_start);
    }

    pub(crate) fn add(&mut self, event: &Event) {
        let Some(span) = event.span() else { return };
        match self.categories.get_mut(&event.category) {
            Some(count) => *count += 1,
            None => drop(self.categories.insert(event.category.clone(), 1)),
        }
        // Newer traces repeat a step on the rows of the device.
        let on_device = event.category.starts_with("gpu_");
        if event.name.starts_with("ProfilerStep#") && !on_device {
            self.steps.push(span);
        }
        if event.name.starts_with("enumerate(DataLoader)#") && event.name.contains("__next__") && !on_device {
            self.loading.push(span);
        }
        if event.category.eq_ignore_ascii_case("kernel") {
            self.kernels.add(span.0, span.1);
            self.kernel_sum += span.1 - span.0;
        }
    }

    /// Newer traces count from a base that they name.
    fn shift(&mut self, base: f64) {
        const EPOCH: f64 = 1e14;
        let shifted = |span: &(f64, f64)| if span.0 > EPOCH { *span } else { (span.0 + base, span.1 + base) };
        self.steps = self.steps.iter().map(shifted).collect();
        self.loading = self.loading.iter().map(shifted).collect();
        let mut kernels = Union::new();
        for span in self.kernels.pieces() {
            let (start, end) = shifted(span);
            kernels.add(start, end);
        }
        self.kernels = kernels;
    }

    pub fn step_time(&self) -> f64 {
        self.steps.iter().map(|(start, end)| end - start).sum()
    }

    pub fn loading_time(&self) -> f64 {
        self.loading.iter().map(|(start, end)| end - start).sum()
    }

    /// The share of the steps' time that waits for data.
    pub fn loading_share(&self) -> Option<f64> {
        let steps = self.step_time();
        (steps > 0.0).then(|| self.loading_time() / steps)
    }
}
