//! Events: when, at which step, and the values of a summary. Scalars of both generations are numbers here. Images,
//! histograms and graphs are only named.

use crate::protobuf::{Malformed, Value, fields};

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Seconds since the epoch.
    pub wall_time: f64,
    pub step: i64,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum What {
    #[default]
    Nothing,
    FileVersion(String),
    Graph,
    Summary(Vec<SummaryValue>),
    LogMessage,
    SessionLog,
    RunMetadata,
    MetaGraph,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SummaryValue {
    pub tag: String,
    pub plugin: String,
    pub kind: SummaryKind,
    /// The number, for values that are one.
    pub scalar: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SummaryKind {
    #[default]
    None,
    Simple,
    Image,
    Histogram,
    Audio,
    Tensor,
}

impl Event {
    pub fn parse(bytes: &[u8]) -> Result<Event, Malformed> {
        let mut event = Event { wall_time: 0.0, step: 0, what: What::Nothing };
        for field in fields(bytes) {
            match field? {
                (1, value) => event.wall_time = value.double(),
                (2, value) => event.step = value.integer(),
                (3, value) => event.what = What::FileVersion(value.text()),
                (4, _) => event.what = What::Graph,
                (5, value) => event.what = What::Summary(summary(value.bytes())?),
                (6, _) => event.what = What::LogMessage,
                (7, _) => event.what = What::SessionLog,
                (8, _) => event.what = What::RunMetadata,
                (9, _) => event.what = What::MetaGraph,
                _ => {}
            }
        }
        Ok(event)
    }

    /// Tags and numbers of a summary's scalars.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        let values = match &self.what {
            What::Summary(values) => values.as_slice(),
            _ => &[],
        };
        values.iter().filter_map(|value| Some((&*value.tag, value.scalar?)))
    }
}

fn summary(bytes: &[u8]) -> Result<Vec<SummaryValue>, Malformed> {
    let mut values = Vec::new();
    for field in fields(bytes) {
        if let (1, message) = field? {
            values.push(summary_value(message.bytes())?);
        }
    }
    Ok(values)
}

fn summary_value(bytes: &[u8]) -> Result<SummaryValue, Malformed> {
    let mut value = SummaryValue::default();
    for field in fields(bytes) {
        match field? {
            (1, text) => value.tag = text.text(),
            (2, number) => {
                value.kind = SummaryKind::Simple;
                value.scalar = Some(number.double());
            }
            (4, _) => value.kind = SummaryKind::Image,
            (5, _) => value.kind = SummaryKind::Histogram,
            (6, _) => value.kind = SummaryKind::Audio,
            (8, tensor) => {
                value.kind = SummaryKind::Tensor;
                value.scalar = tensor_scalar(tensor.bytes())?;
            }
            (9, metadata) => value.plugin = plugin(metadata.bytes())?,
            _ => {}
        }
    }
    Ok(value)
}

fn plugin(metadata: &[u8]) -> Result<String, Malformed> {
    for field in fields(metadata) {
        if let (1, data) = field? {
            for field in fields(data.bytes()) {
                if let (1, name) = field? {
                    return Ok(name.text());
                }
            }
        }
    }
    Ok(String::new())
}

/// The number of a tensor with one element of type f32 or f64, from its raw content or from its list.
fn tensor_scalar(bytes: &[u8]) -> Result<Option<f64>, Malformed> {
    const FLOAT: i64 = 1;
    const DOUBLE: i64 = 2;
    let (mut kind, mut content, mut list): (i64, &[u8], Option<Value<'_>>) = (0, &[], None);
    for field in fields(bytes) {
        match field? {
            (1, value) => kind = value.integer(),
            (4, value) => content = value.bytes(),
            (5 | 6, value) => list = Some(value),
            _ => {}
        }
    }
    let bytes = match list {
        Some(Value::Bytes(packed)) if content.is_empty() => packed,
        Some(single @ (Value::Fixed32(_) | Value::Fixed64(_))) => return Ok(Some(single.double())),
        _ => content,
    };
    Ok(match kind {
        FLOAT => bytes.try_into().ok().map(|bytes| f64::from(f32::from_le_bytes(bytes))),
        DOUBLE => bytes.try_into().ok().map(f64::from_le_bytes),
        _ => None,
    })
}
