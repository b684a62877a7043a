//! dftracer's `.pfw` and `.pfw.gz`: one Chrome event a line, with hashes for names of files and hosts that other lines
//! explain. Does not hold events.

use std::collections::HashMap;
use std::io::{BufRead, Read};

use super::Error;
use super::chrome::Event;
use crate::gzip;

const LONGEST_LINE: u64 = 1 << 20;

/// What a trace says beside its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    pub events: u64,
    /// Hash → path.
    pub files: HashMap<String, String>,
    /// Hash → host.
    pub hosts: HashMap<String, String>,
    /// Lines that are no events: a writer that was killed leaves one at the end.
    pub damaged_lines: u64,
}

impl Document {
    /// The path of the file that an event is about.
    pub fn file<'a>(&'a self, event: &'a Event) -> Option<&'a str> {
        let argument = |name: &str| event.args.get(name).and_then(|value| value.as_str());
        argument("fhash").and_then(|hash| self.files.get(hash).map(|path| &**path)).or(argument("fname"))
    }
}

/// The bytes that an event moved: what the call returned, or its size.
pub fn bytes(event: &Event) -> Option<i64> {
    ["ret", "size", "image_size"]
        .into_iter()
        .find_map(|name| event.args.get(name)?.as_i64())
        .filter(|count| *count >= 0)
}

/// Hands every event with a duration to `visit`.
pub fn read(source: impl Read, mut visit: impl FnMut(&Event)) -> Result<Document, Error> {
    let mut document = Document::default();
    let mut text = gzip::text(source)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = match (&mut text).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(count) => count as u64,
            // A compressed file of a killed writer ends inside a block.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                document.damaged_lines += 1;
                return Ok(document);
            }
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            return Ok(document);
        }
        if count == LONGEST_LINE && line.last() != Some(&b'\n') {
            return Err(Error::TooLong);
        }
        let trimmed = line.trim_ascii();
        let trimmed = trimmed.strip_suffix(b",").unwrap_or(trimmed);
        if matches!(trimmed, b"" | b"[" | b"]") {
            continue;
        }
        let Ok(event) = serde_json::from_slice::<Event>(trimmed) else {
            document.damaged_lines += 1;
            continue;
        };
        match event.phase.as_str() {
            "X" => {
                document.events += 1;
                visit(&event);
            }
            "M" => {
                let argument = |name: &str| event.args.get(name).and_then(|value| value.as_str()).map(str::to_owned);
                if let (Some(name), Some(hash)) = (argument("name"), argument("value")) {
                    match event.name.as_str() {
                        "FH" => drop(document.files.insert(hash, name)),
                        "HH" => drop(document.hosts.insert(hash, name)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
