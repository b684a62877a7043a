//! `tf.train.Example` in the wire format of protocol buffers: named features of bytes, floats or integers.

use std::ops::Range;

pub(crate) enum Feature<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
    Integer(i64),
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_length(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// A field with a length before its content.
fn delimited_length(content: usize) -> usize {
    1 + varint_length(content as u64) + content
}

fn delimited(field: u8, content: usize, out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    varint(content as u64, out);
}

impl Feature<'_> {
    /// Field number of the list in `Feature`, and bytes of what is in the list.
    fn shape(&self) -> (u8, usize) {
        match self {
            Feature::Bytes(bytes) => (1, delimited_length(bytes.len())),
            Feature::Floats(values) => (2, delimited_length(4 * values.len())),
            Feature::Integer(value) => (3, delimited_length(varint_length(value.cast_unsigned()))),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Feature::Bytes(bytes) => {
                delimited(1, bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Feature::Floats(values) => {
                delimited(1, 4 * values.len(), out);
                values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
            }
            Feature::Integer(value) => {
                delimited(1, varint_length(value.cast_unsigned()), out);
                varint(value.cast_unsigned(), out);
            }
        }
    }
}

/// Replaces `out` by the encoded example.
pub(crate) fn encode(features: &[(&str, Feature)], out: &mut Vec<u8>) {
    out.clear();
    let entry = |name: &str, list: usize| delimited_length(name.len()) + delimited_length(delimited_length(list));
    let all = features.iter().map(|(name, feature)| delimited_length(entry(name, feature.shape().1))).sum();
    delimited(1, all, out);
    for (name, feature) in features {
        let (field, list) = feature.shape();
        delimited(1, entry(name, list), out);
        delimited(1, name.len(), out);
        out.extend_from_slice(name.as_bytes());
        delimited(2, delimited_length(list), out);
        delimited(field, list, out);
        feature.write(out);
    }
}

/// Where the bytes of the feature `name` lie, as a loader has to find them.
pub(crate) fn find(example: &[u8], name: &str) -> Option<Range<usize>> {
    let features = content(example, 0, 1)?;
    let mut at = features.start;
    while at < features.end {
        let entry = content(example, at, 1)?;
        let key = content(example, entry.start, 1)?;
        if example.get(key.clone())? == name.as_bytes() {
            let feature = content(example, key.end, 2)?;
            let list = content(example, feature.start, 1)?;
            return content(example, list.start, 1);
        }
        at = entry.end;
    }
    None
}

/// What the field at `at` holds, when it is `field` and has a length.
fn content(bytes: &[u8], at: usize, field: u8) -> Option<Range<usize>> {
    if *bytes.get(at)? != field << 3 | 2 {
        return None;
    }
    let (mut length, mut shift, mut at) = (0_usize, 0, at + 1);
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        length |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    let end = at.checked_add(length)?;
    (end <= bytes.len()).then_some(at..end)
}

#[cfg(test)]
mod tests {
    use super::{Feature, encode, find};

    #[test]
    fn an_example_is_what_protocol_buffers_say() {
        let mut out = Vec::new();
        encode(&[("x", Feature::Bytes(b"ab")), ("n", Feature::Integer(300)), ("y", Feature::Floats(&[1.0]))], &mut out);
        let expected = [
            0x0a, 39, // features
            0x0a, 11, 0x0a, 1, b'x', 0x12, 6, 0x0a, 4, 0x0a, 2, b'a', b'b', // bytes_list
            0x0a, 11, 0x0a, 1, b'n', 0x12, 6, 0x1a, 4, 0x0a, 2, 0xac, 0x02, // int64_list, packed
            0x0a, 13, 0x0a, 1, b'y', 0x12, 8, 0x12, 6, 0x0a, 4, 0, 0, 0x80, 0x3f, // float_list, packed
        ];
        assert_eq!(out[2..], expected[2..]);
        assert_eq!(usize::from(out[1]), out.len() - 2);
        assert_eq!(find(&out, "x"), Some(13..15));
        assert_eq!(find(&out, "z"), None);
        assert_eq!(find(&out[..14], "x"), None);
    }
}
