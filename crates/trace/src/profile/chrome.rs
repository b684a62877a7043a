//! Chrome traces, event by event: a bare array or an object with `traceEvents`, compressed or not, cut off or whole.
//! Does not hold events, nor knows which tool wrote them.

use std::fmt;
use std::io::{BufRead, Read};

use serde::Deserialize;
use serde::de::{self, Visitor};

use super::Error;
use super::json::Cutter;
use crate::gzip;

/// A process or thread: a number for some tools, a word for others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    Number(i64),
    Text(String),
}

/// One event of a trace.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Event {
    #[serde(rename = "ph")]
    pub phase: String,
    pub name: String,
    #[serde(rename = "cat")]
    pub category: String,
    pub pid: Id,
    pub tid: Id,
    /// Microseconds; since when, depends on the tool.
    #[serde(rename = "ts")]
    pub start: Number,
    #[serde(rename = "dur")]
    pub duration: Number,
    pub args: serde_json::Value,
}

/// A number that some tools write as a string.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Number(pub f64);

impl Default for Event {
    fn default() -> Event {
        let (phase, name, category) = (String::new(), String::new(), String::new());
        let (pid, tid) = (Id::Number(0), Id::Number(0));
        let args = serde_json::Value::Null;
        Event { phase, name, category, pid, tid, start: Number(0.0), duration: Number(0.0), args }
    }
}

impl Event {
    /// Start and end of an event with a duration, in microseconds.
    pub fn span(&self) -> Option<(f64, f64)> {
        (self.phase == "X").then_some((self.start.0, self.start.0 + self.duration.0))
    }
}

/// What a trace says beside its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Keys of the outer object, sorted; none for a bare array.
    pub keys: Vec<String>,
    pub events: u64,
    /// What newer Kineto traces count their times from, in nanoseconds since the epoch.
    pub base: Option<f64>,
    /// Which of how many ranks wrote it, as Kineto says of distributed training.
    pub rank: Option<(i64, i64)>,
    /// The file ended too early; what came before was handed on.
    pub torn: bool,
}

/// Hands every event to `visit`.
pub fn read(source: impl Read, mut visit: impl FnMut(&Event)) -> Result<Document, Error> {
    let mut document = Document::default();
    let result = read_into(&mut document, source, &mut visit);
    match result {
        Ok(ended) => document.torn = !ended,
        // A compressed file that was cut ends in an error of the decompressor.
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => document.torn = true,
        Err(error) => return Err(error),
    }
    if document.torn && document.events == 0 {
        return Err(Error::NotATrace("it ends before its first event"));
    }
    document.keys.sort();
    Ok(document)
}

/// Whether the end was reached.
fn read_into(document: &mut Document, source: impl Read, visit: &mut impl FnMut(&Event)) -> Result<bool, Error> {
    let mut cutter = Cutter::new(gzip::text(source)?);
    match cutter.peek()? {
        Some(b'[') => return read_events(document, &mut cutter, visit),
        Some(b'{') => cutter.take(),
        Some(_) => return Err(Error::NotATrace("it begins neither with a list nor with an object")),
        None => return Ok(false),
    }
    loop {
        match cutter.peek()? {
            Some(b'}') => return Ok(true),
            Some(b'"') => {}
            Some(_) => return Err(Error::NotATrace("a key is not a string")),
            None => return Ok(false),
        }
        let Some(key) = cutter.value(true)? else { return Ok(false) };
        let key: String = serde_json::from_slice(key)?;
        match cutter.peek()? {
            Some(b':') => cutter.take(),
            Some(_) => return Err(Error::NotATrace("a key has no value")),
            None => return Ok(false),
        }
        let begin = cutter.peek()?;
        let whole = match key.as_str() {
            "traceEvents" if begin == Some(b'[') => read_events(document, &mut cutter, visit)?,
            "baseTimeNanoseconds" => match cutter.value(true)? {
                Some(text) => {
                    document.base = Some(serde_json::from_slice::<Number>(text)?.0);
                    true
                }
                None => false,
            },
            "distributedInfo" => match cutter.value(true)? {
                Some(text) => {
                    let told: serde_json::Value = serde_json::from_slice(text)?;
                    document.rank = told["rank"].as_i64().zip(told["world_size"].as_i64());
                    true
                }
                None => false,
            },
            _ => cutter.value(false)?.is_some(),
        };
        document.keys.push(key);
        if !whole {
            return Ok(false);
        }
    }
}

fn read_events(
    document: &mut Document,
    cutter: &mut Cutter<impl BufRead>,
    visit: &mut impl FnMut(&Event),
) -> Result<bool, Error> {
    cutter.take();
    loop {
        match cutter.peek()? {
            Some(b']') => {
                cutter.take();
                return Ok(true);
            }
            Some(_) => {}
            None => return Ok(false),
        }
        let Some(text) = cutter.value(true)? else { return Ok(false) };
        let event: Event = serde_json::from_slice(text)?;
        document.events += 1;
        visit(&event);
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number or a word")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Id, E> {
        Ok(Id::Number(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Id, E> {
        Ok(Id::Number(value.cast_signed()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Id, E> {
        Ok(Id::Number(value as i64))
    }

    /// A word that is a number is that number: Kineto writes threads so.
    fn visit_str<E>(self, value: &str) -> Result<Id, E> {
        Ok(value.parse().map_or_else(|_| Id::Text(value.to_owned()), Id::Number))
    }

    fn visit_unit<E>(self) -> Result<Id, E> {
        Ok(Id::Number(0))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Number, E> {
        Ok(Number(value.parse().unwrap_or_default()))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(0.0))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}
