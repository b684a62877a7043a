//! The lines of a segment of the cache's index, both ways. Each is a JSON object with its checksum last.
//!
//! ```text
//! {"digest":"…","named":"…","at":N,"entry":{…},"crc":"…"}     the result of a key
//! {"digest":"…","used":N,"run":"…","crc":"…"}                  a run reused it
//! {"held":N,"run":"…","objects":["…"],"crc":"…"}               a run needs these, under no key
//! ```
//!
//! The head of an entry has a fixed form, so that opening the cache reads no JSON.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write;
use tulpar_core::event::Key;
use tulpar_core::ids::Digest;
use tulpar_core::job::{OutputFile, Told};

/// What the cache knows of one finished job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    pub name: String,
    /// The run that made it.
    pub run: String,
    pub key: Key,
    pub outputs: Vec<OutputFile>,
    /// The numbers that it said, as a trial of a search.
    pub told: Option<Box<Told>>,
    /// The attempt that made these files and misses a declared output; they belong to no declaration.
    pub incomplete: Option<u32>,
}

impl Remembered {
    pub(super) fn writing<'a>(&'a self, digest: Digest, stamps: &'a [i64]) -> Writing<'a> {
        let Self { name, run, key, outputs, told, incomplete } = self;
        let (told, incomplete) = (told.as_deref(), *incomplete);
        Writing { digest, name, run, key, outputs, stamps, told, incomplete, gone: false }
    }
}

/// An entry as it lies in a segment.
#[derive(Debug)]
pub(super) struct Found {
    pub at: u64,
    pub entry: Remembered,
    /// Modification time of each output's object when it was last known to be whole.
    pub stamps: Vec<i64>,
    /// Collected: only the key is left, to say what changed.
    pub gone: bool,
}

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    name: Cow<'a, str>,
    run: Cow<'a, str>,
    key: Cow<'a, Key>,
    outputs: Cow<'a, [OutputFile]>,
    stamps: Cow<'a, [i64]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Cow<'a, Told>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incomplete: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
}

#[derive(Deserialize)]
struct EntryLine<'a> {
    digest: Digest,
    at: u64,
    #[serde(borrow)]
    entry: Body<'a>,
}

#[derive(Deserialize)]
pub(super) struct UsedLine {
    pub digest: Digest,
    pub used: u64,
    pub run: String,
}

#[derive(Deserialize)]
pub(super) struct HeldLine {
    pub held: u64,
    pub run: String,
    pub objects: Vec<Digest>,
}

pub(super) enum Line {
    Entry(Digest, Found),
    Used(UsedLine),
    Held(HeldLine),
}

/// Which name a job has, in eight bytes.
pub(super) fn named(name: &str) -> u64 {
    let digest = Digest::of(name.as_bytes());
    u64::from_be_bytes(digest.0[..8].try_into().expect("a digest has more than eight bytes"))
}

const NEVER: &str = "writing to memory does not fail, and entries hold only what JSON can say";

pub(super) struct Writing<'a> {
    pub digest: Digest,
    pub name: &'a str,
    pub run: &'a str,
    pub key: &'a Key,
    pub outputs: &'a [OutputFile],
    pub stamps: &'a [i64],
    pub told: Option<&'a Told>,
    pub incomplete: Option<u32>,
    pub gone: bool,
}

pub(super) fn write_entry(at: u64, entry: &Writing<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    write!(out, "{{\"digest\":\"{}\",\"named\":\"{:016x}\",\"at\":{at},\"entry\":", entry.digest, named(entry.name))
        .expect(NEVER);
    let body = Body {
        name: entry.name.into(),
        run: entry.run.into(),
        key: Cow::Borrowed(entry.key),
        outputs: entry.outputs.into(),
        stamps: entry.stamps.into(),
        told: entry.told.map(Cow::Borrowed),
        incomplete: entry.incomplete,
        gone: entry.gone,
    };
    serde_json::to_writer(&mut *out, &body).expect(NEVER);
    seal(start, out);
}

pub(super) fn write_used(digest: Digest, at: u64, run: &str, out: &mut Vec<u8>) {
    let start = out.len();
    write!(out, "{{\"digest\":\"{digest}\",\"used\":{at},\"run\":").expect(NEVER);
    serde_json::to_writer(&mut *out, run).expect(NEVER);
    seal(start, out);
}

pub(super) fn write_held(at: u64, run: &str, objects: &[Digest], out: &mut Vec<u8>) {
    let start = out.len();
    write!(out, "{{\"held\":{at},\"run\":").expect(NEVER);
    serde_json::to_writer(&mut *out, run).expect(NEVER);
    out.extend_from_slice(b",\"objects\":");
    serde_json::to_writer(&mut *out, objects).expect(NEVER);
    seal(start, out);
}

fn seal(start: usize, out: &mut Vec<u8>) {
    let crc = crc32fast::hash(&out[start..]);
    writeln!(out, ",\"crc\":\"{crc:08x}\"}}").expect(NEVER);
}

/// Digest, name and time of an entry's line, from its head alone. Whether the rest is whole is seen when
/// it is read.
pub(super) fn head(line: &[u8]) -> Option<(Digest, u64, u64)> {
    let rest = line.strip_prefix(b"{\"digest\":\"")?;
    let (digest, rest) = rest.split_at_checked(64)?;
    let rest = rest.strip_prefix(b"\",\"named\":\"")?;
    let (named, rest) = rest.split_at_checked(16)?;
    let rest = rest.strip_prefix(b"\",\"at\":")?;
    let end = rest.iter().position(|byte| *byte == b',')?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some((
        Digest::parse(text(digest)?)?,
        u64::from_str_radix(text(named)?, 16).ok()?,
        text(&rest[..end])?.parse().ok()?,
    ))
}

/// Reads a whole line, given without its newline; nothing if it is damaged or of a kind unknown here.
pub(super) fn parse(line: &[u8]) -> Option<Line> {
    let split = line.len().checked_sub(18)?;
    let crc = line[split..].strip_prefix(b",\"crc\":\"")?.strip_suffix(b"\"}")?;
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    if crc != crc32fast::hash(&line[..split]) {
        return None;
    }
    if head(line).is_some() {
        let EntryLine { digest, at, entry } = serde_json::from_slice(line).ok()?;
        let found = Found {
            at,
            stamps: entry.stamps.into_owned(),
            gone: entry.gone,
            entry: Remembered {
                name: entry.name.into_owned(),
                run: entry.run.into_owned(),
                key: entry.key.into_owned(),
                outputs: entry.outputs.into_owned(),
                told: entry.told.map(|told| Box::new(told.into_owned())),
                incomplete: entry.incomplete,
            },
        };
        // An earlier Tulpar kept the numbers of a trial as an output that no task has.
        let is_old = found.entry.outputs.iter().any(|output| output.output == u32::MAX);
        return (found.stamps.len() == found.entry.outputs.len() && !is_old).then_some(Line::Entry(digest, found));
    }
    if line.starts_with(b"{\"digest\"") {
        return serde_json::from_slice(line).ok().map(Line::Used);
    }
    serde_json::from_slice(line).ok().map(Line::Held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line_of_json_and_comes_back_whole_or_not_at_all() {
        let key = Key {
            command: "a\nb".into(),
            environment: String::new(),
            outputs: "x".into(),
            inputs: [("i".to_owned(), Digest([7; 32]))].into(),
        };
        let output = OutputFile { output: 0, path: "x".into(), size: 3, digest: Digest([9; 32]), executable: true };
        let told = Told { values: [("loss".to_owned(), 0.5)].into(), steps: vec![(1, f64::NAN)] };
        let mut bytes = Vec::new();
        let writing = Writing {
            digest: key.digest(),
            name: "train[lr=\"1\"]",
            run: "r-1",
            key: &key,
            outputs: std::slice::from_ref(&output),
            stamps: &[-4],
            told: Some(&told),
            incomplete: Some(3),
            gone: false,
        };
        write_entry(5, &writing, &mut bytes);
        assert_eq!(bytes.pop(), Some(b'\n'));
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        assert_eq!(head(&bytes), Some((key.digest(), named("train[lr=\"1\"]"), 5)));
        let Some(Line::Entry(digest, found)) = parse(&bytes) else { panic!("does not read") };
        assert_eq!((digest, found.at, found.stamps, found.gone), (key.digest(), 5, vec![-4], false));
        let Remembered { name, run, key: read, outputs, told: numbers, incomplete } = found.entry;
        assert_eq!(
            (&name[..], &run[..], &read, outputs, incomplete),
            (writing.name, "r-1", &key, vec![output.clone()], Some(3))
        );
        let numbers = numbers.expect("they are part of the entry");
        assert_eq!(numbers.values, told.values);
        assert!(matches!(numbers.steps[..], [(1, loss)] if loss.is_nan()));
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 4;
            assert!(parse(&bad).is_none(), "byte {position}");
        }
    }
}
