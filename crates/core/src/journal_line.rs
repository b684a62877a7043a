//! One line of the journal: its bytes, its checksum, and the event in it.
//!
//! Pure text in both directions, shared by the journal (which is strict), the store (which is lenient)
//! and every report. It knows no file, no offset and no neighbouring line.
//!
//! ```text
//! {"seq":1,"at":1731700000000000,"v":2,"kind":"due","data":{"job":7},"crc":"0a1b2c3d"}
//! ```
//!
//! The order of the fields and the absence of spaces are part of the format: the head is read by hand,
//! because a million lines are read before a run can go on.

use crate::event::{Because, Blame, Consequence, Event};
use crate::ids::{AttemptId, JobId};
use crate::units::Timestamp;
use std::cmp::Ordering;
use std::io::Write;
use thiserror::Error;

/// The version that this Tulpar writes, and the only one that it reads. In version 1 an event followed each end of an attempt
/// that was not good, and said what became of the job.
pub const VERSION: u32 = 2;

/// `,"crc":"` + 8 digits + `"}`
const TAIL: usize = 8 + 8 + 2;

#[derive(Debug, Error)]
pub enum LineError {
    #[error("the line has no checksum at its end")]
    NoChecksum,
    #[error("the checksum says {recorded} but the bytes give {computed}")]
    Checksum { recorded: String, computed: String },
    #[error("the checksum is right but the line does not read {{\"seq\":…,\"at\":…,\"v\":…,\"kind\":…,\"data\":…}}")]
    Shape,
    #[error("written by an earlier Tulpar: the line has version {version}, this one reads version {VERSION} only")]
    OlderVersion { version: u32 },
    #[error("written by a newer Tulpar: the line has version {version}, this one reads version {VERSION} only")]
    NewerVersion { version: u32 },
    #[error("written by a newer Tulpar: the event kind `{kind}` is not known here")]
    NewerKind { kind: String },
    #[error("the event `{kind}` cannot be understood: {cause}")]
    Data { kind: String, cause: serde_json::Error },
}

impl LineError {
    /// The bytes are as they were written; this Tulpar is too old to understand them.
    pub fn is_newer(&self) -> bool {
        matches!(self, LineError::NewerVersion { .. } | LineError::NewerKind { .. })
    }
}

/// A line whose checksum is right. The event in it has not been looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub seq: u64,
    pub at: Timestamp,
    pub version: u32,
    pub kind: &'a str,
    /// JSON.
    pub data: &'a str,
}

/// Appends the line of one event, newline included.
pub fn encode(seq: u64, at: Timestamp, event: &Event, out: &mut Vec<u8>) {
    let start = out.len();
    const NEVER: &str = "writing to memory does not fail, and events hold only what JSON can say";
    write!(out, "{{\"seq\":{seq},\"at\":{},\"v\":{VERSION}", at.0).expect(NEVER);
    let brace = out.len();
    serde_json::to_writer(&mut *out, event).expect(NEVER);
    // `{"kind":…,"data":…}` becomes `,"kind":…,"data":…`.
    out[brace] = b',';
    out.pop();
    let crc = crc32fast::hash(&out[start..]);
    writeln!(out, ",\"crc\":\"{crc:08x}\"}}").expect(NEVER);
}

impl<'a> Line<'a> {
    /// Reads one line, given without its newline.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LineError> {
        let split = bytes.len().checked_sub(TAIL).ok_or(LineError::NoChecksum)?;
        let (body, tail) = bytes.split_at(split);
        let recorded = tail
            .strip_prefix(b",\"crc\":\"")
            .and_then(|rest| rest.strip_suffix(b"\"}"))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')))
            .ok_or(LineError::NoChecksum)?;
        let computed = crc32fast::hash(body);
        if u32::from_str_radix(recorded, 16) != Ok(computed) {
            return Err(LineError::Checksum { recorded: recorded.to_owned(), computed: format!("{computed:08x}") });
        }
        let body = std::str::from_utf8(body).map_err(|_| LineError::Shape)?;
        Self::parse_body(body).ok_or(LineError::Shape)
    }

    fn parse_body(body: &'a str) -> Option<Self> {
        let (seq, rest) = number(body.strip_prefix("{\"seq\":")?)?;
        let (at, rest) = number(rest.strip_prefix(",\"at\":")?)?;
        let (version, rest) = number(rest.strip_prefix(",\"v\":")?)?;
        let rest = rest.strip_prefix(",\"kind\":\"")?;
        let (kind, rest) = rest.split_once('"')?;
        let data = if rest.is_empty() { "null" } else { rest.strip_prefix(",\"data\":")? };
        Some(Self { seq, at: Timestamp(at), version: u32::try_from(version).ok()?, kind, data })
    }

    pub fn event(&self) -> Result<Event, LineError> {
        let version = self.version;
        match version.cmp(&VERSION) {
            Ordering::Less => return Err(LineError::OlderVersion { version }),
            Ordering::Greater => return Err(LineError::NewerVersion { version }),
            Ordering::Equal => {}
        }
        let mut text = String::with_capacity(self.kind.len() + self.data.len() + 20);
        text.push_str("{\"kind\":\"");
        text.push_str(self.kind);
        text.push_str("\",\"data\":");
        text.push_str(self.data);
        text.push('}');
        serde_json::from_str(&text).map_err(|cause| {
            if KINDS.contains(&self.kind) {
                LineError::Data { kind: self.kind.to_owned(), cause }
            } else {
                LineError::NewerKind { kind: self.kind.to_owned() }
            }
        })
    }
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Every kind that this Tulpar knows, as the journal spells it.
pub const KINDS: [&str; 24] = [
    "run_started",
    "run_resumed",
    "missed",
    "reused",
    "held_back",
    "submitted",
    "started",
    "held",
    "released",
    "ended",
    "due",
    "failed",
    "skipped",
    "cancelled",
    "grafted",
    "asked",
    "added",
    "reported",
    "curtailed",
    "continued",
    "node",
    "ordered",
    "stopping",
    "run_ended",
];

impl Event {
    /// The kind as the journal and the store spell it.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted { .. } => "run_started",
            Event::RunResumed { .. } => "run_resumed",
            Event::Missed { .. } => "missed",
            Event::Reused { .. } => "reused",
            Event::HeldBack { .. } => "held_back",
            Event::Submitted { .. } => "submitted",
            Event::Started { .. } => "started",
            Event::Held { .. } => "held",
            Event::Released { .. } => "released",
            Event::Ended { .. } => "ended",
            Event::Due { .. } => "due",
            Event::Failed { .. } => "failed",
            Event::Skipped { .. } => "skipped",
            Event::Cancelled { .. } => "cancelled",
            Event::Grafted { .. } => "grafted",
            Event::Asked { .. } => "asked",
            Event::Added { .. } => "added",
            Event::Reported { .. } => "reported",
            Event::Curtailed { .. } => "curtailed",
            Event::Continued { .. } => "continued",
            Event::Node { .. } => "node",
            Event::Ordered { .. } => "ordered",
            Event::Stopping { .. } => "stopping",
            Event::RunEnded { .. } => "run_ended",
        }
    }

    /// The attempt that this event is about.
    pub fn attempt(&self) -> Option<AttemptId> {
        match self {
            Event::Submitted { attempt, .. }
            | Event::Started { attempt }
            | Event::Held { attempt, .. }
            | Event::Released { attempt }
            | Event::Curtailed { attempt, .. }
            | Event::Ended { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }

    /// The job that fails for good with this event, and what is to blame.
    pub fn failure(&self) -> Option<(JobId, Blame)> {
        match self {
            Event::Failed { job, blame } => Some((*job, *blame)),
            Event::Ended { attempt, then: Consequence::Failed { blame }, .. } => Some((attempt.job, *blame)),
            _ => None,
        }
    }

    /// The job that is skipped, or ended early, with this event, and the reason.
    pub fn skip(&self) -> Option<(JobId, &Because)> {
        match self {
            Event::Skipped { job, because } => Some((*job, because)),
            Event::Ended { attempt, then: Consequence::Pruned, .. } => Some((attempt.job, &Because::Pruned)),
            _ => None,
        }
    }

    /// The job that this event is about, directly or through one of its attempts.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Event::Missed { job, .. }
            | Event::Reused { job, .. }
            | Event::Due { job }
            | Event::Failed { job, .. }
            | Event::Skipped { job, .. }
            | Event::Asked { job, .. }
            | Event::Reported { job, .. }
            | Event::HeldBack { job, .. }
            | Event::Continued { job }
            | Event::Cancelled { job } => Some(*job),
            _ => self.attempt().map(|attempt| attempt.job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &Event) -> String {
        let mut bytes = Vec::new();
        encode(7, Timestamp(1_000_002), event, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_is_one_json_object_with_its_checksum_last() {
        assert_eq!(
            line(&Event::Due { job: JobId(3) }),
            "{\"seq\":7,\"at\":1000002,\"v\":2,\"kind\":\"due\",\"data\":{\"job\":3},\"crc\":\"3c197ed0\"}\n"
        );
    }

    #[test]
    fn an_event_comes_back_as_it_was() {
        let event = Event::Held { attempt: AttemptId { job: JobId(3), n: 2 }, reason: "quota \"x\"\nü".into() };
        let text = line(&event);
        let parsed = Line::parse(text.trim_end().as_bytes()).unwrap();
        assert_eq!((parsed.seq, parsed.at, parsed.version, parsed.kind), (7, Timestamp(1_000_002), 2, "held"));
        assert_eq!(parsed.event().unwrap(), event);
    }

    #[test]
    fn a_changed_byte_anywhere_in_the_line_is_found() {
        let good = line(&Event::Due { job: JobId(3) });
        let good = good.trim_end().as_bytes();
        for position in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.to_vec();
                bad[position] ^= 1 << bit;
                assert!(Line::parse(&bad).is_err(), "byte {position}, bit {bit}");
            }
        }
    }

    fn sealed(body: &str) -> String {
        format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()))
    }

    #[test]
    fn what_a_newer_tulpar_wrote_is_told_apart_from_damage() {
        let kind = sealed(r#"{"seq":1,"at":2,"v":2,"kind":"teleported","data":{"job":1}"#);
        let error = Line::parse(kind.as_bytes()).unwrap().event().unwrap_err();
        assert_eq!(error.to_string(), "written by a newer Tulpar: the event kind `teleported` is not known here");
        let version = sealed(r#"{"seq":1,"at":2,"v":3,"kind":"due","data":{"job":1}"#);
        assert!(Line::parse(version.as_bytes()).unwrap().event().unwrap_err().is_newer());
        let data = sealed(r#"{"seq":1,"at":2,"v":2,"kind":"due","data":{"jib":1}"#);
        assert!(!Line::parse(data.as_bytes()).unwrap().event().unwrap_err().is_newer());
    }

    #[test]
    fn an_event_of_an_earlier_version_is_refused() {
        let text = sealed(r#"{"seq":1,"at":2,"v":1,"kind":"due","data":{"job":1}"#);
        let error = Line::parse(text.as_bytes()).unwrap().event().unwrap_err();
        assert_eq!(
            error.to_string(),
            "written by an earlier Tulpar: the line has version 1, this one reads version 2 only"
        );
    }

    #[test]
    fn the_list_of_kinds_is_what_serde_accepts() {
        for kind in KINDS {
            let text = format!("{{\"kind\":\"{kind}\",\"data\":[]}}");
            let error = serde_json::from_str::<Event>(&text).unwrap_err().to_string();
            assert!(!error.contains("unknown variant"), "{kind}: {error}");
        }
    }
}
