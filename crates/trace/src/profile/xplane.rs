//! XSpace (`*.xplane.pb`): planes of lines of events, walked in place over the file's bytes. Times become absolute by the
//! profile's own clock. Does not copy events.

use std::collections::HashMap;

use super::Error;
use crate::protobuf::{Malformed, fields};

/// Greater is nanoseconds since the epoch, smaller counts from the start of the profile.
const EPOCH: i64 = 1_000_000_000_000_000_000;

#[derive(Debug, Clone, Default)]
pub struct Space<'a> {
    pub hosts: Vec<String>,
    pub planes: Vec<Plane<'a>>,
    /// Nanoseconds since the epoch, where the profile says them.
    pub start: Option<i64>,
    pub stop: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub struct Plane<'a> {
    pub id: i64,
    pub name: String,
    pub lines: Vec<Line<'a>>,
    pub event_names: HashMap<i64, String>,
    pub stat_names: HashMap<i64, String>,
    stats: Vec<&'a [u8]>,
}

#[derive(Debug, Clone, Default)]
pub struct Line<'a> {
    pub id: i64,
    pub name: String,
    /// As written: absolute or since the start of the profile.
    pub timestamp: i64,
    bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    pub name: i64,
    /// Picoseconds after the line's timestamp.
    pub offset: i64,
    /// Picoseconds.
    pub duration: i64,
    bytes: &'a [u8],
}

impl<'a> Space<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Space<'a>, Error> {
        let mut space = Space::default();
        for field in fields(bytes) {
            match field? {
                (1, value) => space.planes.push(Plane::parse(value.bytes())?),
                (4, value) => space.hosts.push(value.text()),
                _ => {}
            }
        }
        for plane in &space.planes {
            for stat in &plane.stats {
                let stat = Stat::parse(stat)?;
                match plane.stat_names.get(&stat.name).map(|name| &**name) {
                    Some("profile_start_time") => space.start = Some(stat.number),
                    Some("profile_stop_time") => space.stop = Some(stat.number),
                    _ => {}
                }
            }
        }
        Ok(space)
    }

    /// Seconds since the epoch of an event's start and end; since the start of the profile if that is all it knows.
    pub fn span(&self, line: &Line<'_>, event: &Event<'_>) -> (f64, f64) {
        let base = if line.timestamp > EPOCH { 0 } else { self.start.unwrap_or(0) };
        let nanoseconds = i128::from(base) + i128::from(line.timestamp);
        let start = nanoseconds as f64 / 1e9 + event.offset as f64 / 1e12;
        (start, start + event.duration as f64 / 1e12)
    }
}

impl<'a> Plane<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Plane<'a>, Malformed> {
        let mut plane = Plane::default();
        for field in fields(bytes) {
            match field? {
                (1, value) => plane.id = value.integer(),
                (2, value) => plane.name = value.text(),
                (3, value) => plane.lines.push(Line::parse(value.bytes())?),
                (4, value) => drop(named(value.bytes())?.map(|(id, name)| plane.event_names.insert(id, name))),
                (5, value) => drop(named(value.bytes())?.map(|(id, name)| plane.stat_names.insert(id, name))),
                (6, value) => plane.stats.push(value.bytes()),
                _ => {}
            }
        }
        Ok(plane)
    }

    /// The number that a statistic of an event has, e.g. `step_num`.
    pub fn number(&self, event: &Event<'_>, name: &str) -> Result<Option<i64>, Error> {
        for field in fields(event.bytes) {
            if let (4, value) = field? {
                let stat = Stat::parse(value.bytes())?;
                if self.stat_names.get(&stat.name).is_some_and(|known| known == name) {
                    return Ok(Some(stat.number));
                }
            }
        }
        Ok(None)
    }
}

/// An entry of a map from numbers to messages that have a name.
fn named(bytes: &[u8]) -> Result<Option<(i64, String)>, Malformed> {
    let (mut id, mut name) = (None, String::new());
    for field in fields(bytes) {
        match field? {
            (1, value) => id = Some(value.integer()),
            (2, value) => {
                for field in fields(value.bytes()) {
                    if let (2, value) = field? {
                        name = value.text();
                    }
                }
            }
            _ => {}
        }
    }
    Ok(id.map(|id| (id, name)))
}

impl<'a> Line<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Line<'a>, Malformed> {
        let mut line = Line { bytes, ..Line::default() };
        for field in fields(bytes) {
            match field? {
                (1, value) => line.id = value.integer(),
                (2, value) => line.name = value.text(),
                (3, value) => line.timestamp = value.integer(),
                _ => {}
            }
        }
        Ok(line)
    }

    /// Its events in the order of the file.
    pub fn events(&self) -> impl Iterator<Item = Result<Event<'a>, Error>> + use<'a> {
        fields(self.bytes).filter_map(|field| match field {
            Ok((4, value)) => Some(Event::parse(value.bytes()).map_err(Error::from)),
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        })
    }
}

impl<'a> Event<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Event<'a>, Malformed> {
        let mut event = Event { name: 0, offset: 0, duration: 0, bytes };
        for field in fields(bytes) {
            match field? {
                (1, value) => event.name = value.integer(),
                (2, value) => event.offset = value.integer(),
                (3, value) => event.duration = value.integer(),
                _ => {}
            }
        }
        Ok(event)
    }
}

struct Stat {
    name: i64,
    number: i64,
}

impl Stat {
    fn parse(bytes: &[u8]) -> Result<Stat, Malformed> {
        let mut stat = Stat { name: 0, number: 0 };
        for field in fields(bytes) {
            match field? {
                (1, value) => stat.name = value.integer(),
                (2, value) => stat.number = value.double() as i64,
                (3 | 4, value) => stat.number = value.integer(),
                _ => {}
            }
        }
        Ok(stat)
    }
}
