//! What a job used, as the log tabulates it: bytes moved, and for each resource what was used, asked for and given.

use super::lines::{amount, unquoted};

/// Bytes between the submit host and the job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    pub sent: f64,
    pub received: f64,
    pub total_sent: Option<f64>,
    pub total_received: Option<f64>,
}

impl Bytes {
    /// Takes the line if it speaks of bytes.
    pub(super) fn take(&mut self, line: &str) -> bool {
        match amount(line) {
            Some((bytes, "Run Bytes Sent By Job")) => self.sent = bytes,
            Some((bytes, "Run Bytes Received By Job")) => self.received = bytes,
            Some((bytes, "Total Bytes Sent By Job")) => self.total_sent = Some(bytes),
            Some((bytes, "Total Bytes Received By Job")) => self.total_received = Some(bytes),
            _ => return false,
        }
        true
    }
}

/// A row of the table: `Memory (MB) : 5 64 128`.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceUse {
    /// `Memory`; the unit is apart.
    pub name: String,
    /// `MB`, `KB` or `s`, when one is written.
    pub unit: Option<String>,
    pub used: Option<f64>,
    pub requested: Option<f64>,
    pub allocated: Option<f64>,
    /// Which ones, for resources that have names: `GPU-78c38183`.
    pub assigned: Option<String>,
}

/// Where the columns of a table end, counted from its colon. Numbers stand flush right under their column's name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    used: usize,
    requested: usize,
    allocated: usize,
}

impl Columns {
    /// `Partitionable Resources :    Usage  Request Allocated Assigned`
    pub(super) fn read(line: &str) -> Option<Self> {
        let (title, names) = line.split_once(':')?;
        (title.trim() == "Partitionable Resources").then_some(())?;
        let end = |name: &str| names.find(name).map(|start| start + name.len());
        Some(Self { used: end("Usage")?, requested: end("Request")?, allocated: end("Allocated")? })
    }

    pub(super) fn row(&self, line: &str) -> Option<ResourceUse> {
        let (title, cells) = line.split_once(':')?;
        let title = title.trim();
        let (name, unit) = match title.split_once(" (") {
            Some((name, unit)) => (name, Some(unit.strip_suffix(')')?.to_owned())),
            None => (title, None),
        };
        let mut row =
            ResourceUse { name: name.to_owned(), unit, used: None, requested: None, allocated: None, assigned: None };
        let mut position = 0;
        for word in cells.split(' ') {
            let end = position + word.len();
            if !word.is_empty() {
                if position >= self.allocated {
                    row.assigned = Some(unquoted(cells.get(position..)?.trim()));
                    break;
                }
                let value = word.parse().ok().filter(|value: &f64| value.is_finite());
                let cell = if end <= self.used {
                    &mut row.used
                } else if end <= self.requested {
                    &mut row.requested
                } else {
                    &mut row.allocated
                };
                *cell = value;
            }
            position = end + 1;
        }
        (!row.name.is_empty()).then_some(row)
    }
}
