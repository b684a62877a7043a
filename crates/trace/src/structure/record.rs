//! The features of a TFRecord file, as its first records have them: `tf.train.Example` and `SequenceExample`. No
//! description of features is needed: records carry names, kinds and values.

use std::collections::BTreeMap;
use std::io::Read;

use super::{Found, Kind, Limits, Object};
use crate::gzip;
use crate::protobuf::{Malformed, Value, fields};
use crate::tensorboard::{Next, Records};

/// Records that are looked at.
const LOOKED: u64 = 10;

/// What is known of one feature.
#[derive(Default)]
struct Feature {
    kind: Option<&'static str>,
    least: u64,
    most: u64,
    records: u64,
    /// Of the values of a record, at most.
    bytes: u64,
}

/// Looks at the first records; the file may be compressed with gzip.
pub fn read(source: impl Read, limits: Limits) -> Found {
    let Ok(text) = gzip::text(source) else { return Found::nothing("it cannot be read") };
    let mut records = Records::new(text.take(limits.bytes), 0);
    let mut features: BTreeMap<String, Feature> = BTreeMap::new();
    let mut not_read = Vec::new();
    let mut seen = 0;
    while seen < LOOKED {
        match records.read() {
            Ok(Next::Record(bytes)) => {
                if example(bytes, &mut features, limits.objects).is_err() {
                    not_read.push("its records are no examples of TensorFlow".to_owned());
                    break;
                }
                seen += 1;
            }
            Ok(Next::End) => break,
            Ok(Next::Torn) => {
                // Either the file ends here, or what may be read of it; with some records seen both are no matter.
                if seen == 0 {
                    not_read.push("its first record is not complete, or too large to be looked at".to_owned());
                }
                break;
            }
            Err(error) => {
                not_read.push(error.to_string());
                break;
            }
        }
    }
    if seen > 0 && features.is_empty() && not_read.is_empty() {
        not_read.push("its records are no examples of TensorFlow, or have no features".to_owned());
    }
    if features.len() >= limits.objects {
        not_read.push(format!("features beyond the first {}", limits.objects));
    }
    let objects = features
        .into_iter()
        .map(|(name, feature)| Object {
            name,
            kind: Kind::Feature,
            data_type: Some(feature.kind.unwrap_or("nothing").to_owned()),
            values: Some((feature.least, feature.most)),
            bytes: Some(feature.bytes),
            records: Some(feature.records),
            ..Object::default()
        })
        .collect();
    Found { objects, records_seen: Some(seen), not_read }
}

/// Adds the features of one record. Examples and those of sequences begin alike.
fn example(record: &[u8], features: &mut BTreeMap<String, Feature>, most: usize) -> Result<(), Malformed> {
    for field in fields(record) {
        match field? {
            (1, Value::Bytes(context)) => {
                for entry in fields(context) {
                    let (name, value) = entry_of(entry?)?;
                    add(features, name, &[value], most)?;
                }
            }
            (2, Value::Bytes(lists)) => {
                for entry in fields(lists) {
                    let (name, list) = entry_of(entry?)?;
                    let mut values = Vec::new();
                    for value in fields(list) {
                        match value? {
                            (1, Value::Bytes(value)) => values.push(value),
                            _ => return Err(Malformed),
                        }
                    }
                    add(features, name, &values, most)?;
                }
            }
            _ => return Err(Malformed),
        }
    }
    Ok(())
}

/// Name and value of an entry of a map.
fn entry_of<'a>((number, entry): (u64, Value<'a>)) -> Result<(String, &'a [u8]), Malformed> {
    let (1, Value::Bytes(entry)) = (number, entry) else { return Err(Malformed) };
    let (mut name, mut value): (String, &[u8]) = (String::new(), &[]);
    for field in fields(entry) {
        match field? {
            (1, text) => name = text.text(),
            (2, Value::Bytes(bytes)) => value = bytes,
            _ => return Err(Malformed),
        }
    }
    Ok((name, value))
}

fn add(features: &mut BTreeMap<String, Feature>, name: String, values: &[&[u8]], most: usize) -> Result<(), Malformed> {
    let (mut kind, mut count, mut bytes) = (None, 0, 0);
    for value in values {
        let (own, many, size) = list(value)?;
        kind = kind.or(own);
        count += many;
        bytes += size;
    }
    if !features.contains_key(&name) && features.len() >= most {
        return Ok(());
    }
    let known = features.entry(name).or_insert_with(|| Feature { least: u64::MAX, ..Feature::default() });
    known.kind = match (known.kind, kind) {
        (Some(a), Some(b)) if a != b => Some("several kinds"),
        (a, b) => a.or(b),
    };
    known.least = known.least.min(count);
    known.most = known.most.max(count);
    known.bytes = known.bytes.max(bytes);
    known.records += 1;
    Ok(())
}

/// Kind, number and bytes of the values in a `Feature`.
fn list(feature: &[u8]) -> Result<(Option<&'static str>, u64, u64), Malformed> {
    let mut found = (None, 0u64, 0u64);
    for field in fields(feature) {
        let (number, Value::Bytes(values)) = field? else { return Err(Malformed) };
        found.0 = Some(match number {
            1 => "bytes",
            2 => "float",
            3 => "int64",
            _ => return Err(Malformed),
        });
        for value in fields(values) {
            let (1, value) = value? else { return Err(Malformed) };
            let (many, size) = match (number, value) {
                (1, Value::Bytes(bytes)) => (1, bytes.len() as u64),
                (2, Value::Bytes(packed)) => (packed.len() as u64 / 4, packed.len() as u64),
                (2, Value::Fixed32(_)) => (1, 4),
                // The last byte of a number has its highest bit clear.
                (3, Value::Bytes(packed)) => {
                    let many = packed.iter().filter(|byte| **byte < 0x80).count() as u64;
                    (many, 8 * many)
                }
                (3, Value::Varint(_)) => (1, 8),
                _ => return Err(Malformed),
            };
            found.1 += many;
            found.2 += size;
        }
    }
    Ok(found)
}
