//! Types of HDF5 in words: `float32`, `string of 10`, `fields (x float64, y int16)`. Knows how a type is written down, not
//! how its values are.

use super::source::{DAMAGED, Fields, Stop, text};

/// Types within types.
const DEPTH: usize = 8;
/// Fields that are named.
const NAMED: usize = 8;

/// A type, and the bytes of a value; those of values of no fixed length lie elsewhere.
pub(super) struct Datatype {
    pub(super) name: String,
    pub(super) bytes: Option<u64>,
}

pub(super) fn read(body: &[u8]) -> Result<Datatype, Stop> {
    let mut fields = Fields(body);
    one(&mut fields, 0)
}

fn one(fields: &mut Fields<'_>, depth: usize) -> Result<Datatype, Stop> {
    if depth > DEPTH {
        return Err(Stop::Not("its type is too deep"));
    }
    let head = fields.byte()?;
    let (version, class) = (head >> 4, head & 15);
    let bits = fields.number(3)?;
    let size = fields.number(4)?;
    let width = size * 8;
    let order = if bits & 1 != 0 && size > 1 { " big-endian" } else { "" };
    let mut bytes = Some(size);
    let name = match class {
        0 => {
            fields.take(4)?;
            format!("{}{width}{order}", if bits & 8 != 0 { "int" } else { "uint" })
        }
        1 => {
            let properties = fields.take(12)?;
            let brain = size == 2 && properties[5] == 8;
            if brain { format!("bfloat16{order}") } else { format!("float{width}{order}") }
        }
        2 => {
            fields.take(2)?;
            "time".to_owned()
        }
        3 => format!("string of {size}"),
        4 => {
            fields.take(4)?;
            format!("{width} bits")
        }
        5 => {
            fields.take(bits as usize & 0xff)?;
            format!("opaque of {size}")
        }
        6 => compound(fields, version, bits as usize & 0xffff, size, depth)?,
        7 => "reference".to_owned(),
        8 => enumeration(fields, version, bits as usize & 0xffff, depth)?,
        9 => {
            let of = one(fields, depth + 1)?;
            bytes = None;
            if bits & 15 == 1 { "string".to_owned() } else { format!("sequence of {}", of.name) }
        }
        10 => {
            let dimensions = fields.byte()?;
            fields.take(if version < 3 { 3 } else { 0 })?;
            let lengths: Vec<u64> = (0..dimensions).map(|_| fields.number(4)).collect::<Result<_, _>>()?;
            fields.take(if version < 3 { 4 * usize::from(dimensions) } else { 0 })?;
            let of = one(fields, depth + 1)?;
            bytes = bytes.and(of.bytes).map(|_| size);
            let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
            format!("{} of {}", lengths.join("×"), of.name)
        }
        11 => format!("complex of {}", one(fields, depth + 1)?.name),
        _ => return Err(Stop::Not("its type is of a kind that is not understood")),
    };
    Ok(Datatype { name, bytes })
}

/// A name before a type or a value; older versions fill up to eight bytes.
fn member<'a>(fields: &mut Fields<'a>, version: u8) -> Result<&'a [u8], Stop> {
    let name = fields.ended_text()?;
    if version < 3 {
        fields.take((name.len() + 1).next_multiple_of(8) - name.len() - 1)?;
    }
    Ok(name)
}

fn compound(fields: &mut Fields<'_>, version: u8, count: usize, size: u64, depth: usize) -> Result<String, Stop> {
    let mut named: Vec<(String, String)> = Vec::new();
    for number in 0..count {
        let name = member(fields, version)?;
        // Newer versions give the place in as few bytes as the whole needs.
        let place = (64 - size.leading_zeros() as usize).div_ceil(8).max(1);
        fields.take(if version < 3 { 4 } else { place })?;
        fields.take(if version == 1 { 28 } else { 0 })?;
        let of = one(fields, depth + 1)?;
        if number < NAMED {
            named.push((text(name), of.name));
        }
    }
    if let [(real, a), (imaginary, b)] = &named[..]
        && (real.as_str(), imaginary.as_str()) == ("r", "i")
        && a == b
        && let Some(bits) = a.strip_prefix("float").and_then(|bits| bits.parse::<u64>().ok())
    {
        return Ok(format!("complex{}", bits.saturating_mul(2)));
    }
    let more = if count > named.len() { format!(", {} more", count - named.len()) } else { String::new() };
    let named: Vec<String> = named.into_iter().map(|(name, of)| format!("{name} {of}")).collect();
    Ok(format!("fields ({}{more})", named.join(", ")))
}

fn enumeration(fields: &mut Fields<'_>, version: u8, count: usize, depth: usize) -> Result<String, Stop> {
    let of = one(fields, depth + 1)?;
    let mut names = Vec::new();
    for _ in 0..count {
        let name = member(fields, version)?;
        if names.len() < NAMED {
            names.push(name);
        }
    }
    let values = usize::try_from(of.bytes.ok_or(DAMAGED)?).ok().and_then(|each| each.checked_mul(count));
    fields.take(values.ok_or(DAMAGED)?)?;
    let bool = of.name == "int8" && names == [&b"FALSE"[..], b"TRUE"];
    Ok(if bool { "bool".to_owned() } else { format!("enum of {}", of.name) })
}
