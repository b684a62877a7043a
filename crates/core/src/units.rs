//! Quantities as people write them (`16 GB`, `90 min`) and as the engine counts them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// A point in time: microseconds since 1970-01-01 UTC, or since the start of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
    }

    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Durations as whole microseconds in files.
pub mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

/// As [`micros`], for what need not be there.
pub mod micros_if_any {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::micros::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_micros))
    }
}

/// A number of bytes. Written with decimal (`GB`) or binary (`GiB`) units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 999.95 && unit + 1 < UNITS.len() {
            value /= 1000.0;
            unit += 1;
        }
        if unit == 0 {
            write!(f, "{} B", self.0)
        } else if value.fract() < 0.05 || value.fract() > 0.95 {
            write!(f, "{value:.0} {}", UNITS[unit])
        } else {
            write!(f, "{value:.1} {}", UNITS[unit])
        }
    }
}

/// Why a quantity could not be read. The text says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    #[error("`{0}` has no unit")]
    NoUnit(String),
    #[error("`{0}` is not a unit of {1}")]
    UnknownUnit(String, &'static str),
    #[error("`{0}` is not a number")]
    NotANumber(String),
    #[error("`{0}` is negative")]
    Negative(String),
    #[error("`{0}` is too large")]
    TooLarge(String),
    #[error("`{0}` is not a whole number")]
    NotWhole(String),
    #[error("`{0}` is not a compute capability")]
    NotACapability(String),
    #[error("`{0}` is finer than a thousandth")]
    TooFine(String),
    #[error("`{0}` is neither a whole number of devices nor a share of one")]
    NoShare(String),
}

pub const BYTES_ACCEPTED: &str =
    "write a number and a unit: `512 MB`, `16 GB`, `1.5 TB`, or `16 GiB` for powers of 1024";
pub const BANDWIDTH_ACCEPTED: &str =
    "write a number and a unit: `10 Gbit/s` or `10 Gb/s` for bits, `100 MB/s` or `100 MiB/s` for bytes";
pub const DURATION_ACCEPTED: &str =
    "write a number and a unit: `45 s`, `90 min`, `2 h`, `1h30m`, `3 days`, or `00:30:00`";
pub const CPUS_ACCEPTED: &str = "write a number of cores: `4`, or `0.5` for half of one";
pub const AMOUNT_ACCEPTED: &str = "write a number: `1`, or `0.5` for half of one";
pub const GPUS_ACCEPTED: &str =
    "write how many whole devices, `2`, or a share of one that other tasks may use too, `0.25`";
pub const CAPABILITY_ACCEPTED: &str = "write it as NVIDIA does: `7.0`, `8.6`, `9.0`";

impl UnitError {
    /// The unit that was not understood, to look for a near one.
    pub fn unit(&self) -> Option<&str> {
        match self {
            UnitError::UnknownUnit(unit, _) => Some(unit),
            _ => None,
        }
    }
}

/// Units of bytes in the spelling that suggestions use.
pub const BYTE_UNITS: &[&str] = &["B", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "PiB"];
pub const BANDWIDTH_UNITS: &[&str] =
    &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Gbps", "Mbps", "B/s", "kB/s", "MB/s", "GB/s", "MiB/s", "GiB/s"];
pub const TIME_UNITS: &[&str] = &["ms", "s", "sec", "min", "h", "hour", "hours", "d", "day", "days", "week", "weeks"];

fn byte_unit(unit: &str) -> Option<u64> {
    // The case of the letters tells people nothing they mean: `gb`, `Gb` and `GB` are all read as bytes.
    Some(match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "p" | "pb" => 1_000_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        "pi" | "pib" => 1 << 50,
        _ => return None,
    })
}

/// In milliseconds.
fn time_unit(unit: &str) -> Option<u64> {
    const SECOND: u64 = 1000;
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * SECOND,
        "d" | "day" | "days" => 86_400 * SECOND,
        "w" | "week" | "weeks" => 7 * 86_400 * SECOND,
        _ => return None,
    })
}

/// A plain decimal number, as whole and thousand-millionths: exact where floats would round.
fn decimal(text: &str) -> Result<(u64, u32), UnitError> {
    let not = || UnitError::NotANumber(text.to_owned());
    if text.starts_with('-') {
        return Err(UnitError::Negative(text.to_owned()));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(not());
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| UnitError::TooLarge(text.to_owned()))? };
    let nine: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    Ok((whole, nine.parse().map_err(|_| not())?))
}

fn scaled((whole, fraction): (u64, u32), unit: u64, text: &str) -> Result<u64, UnitError> {
    let part = u128::from(fraction) * u128::from(unit) / 1_000_000_000;
    u64::try_from(u128::from(whole) * u128::from(unit) + part).map_err(|_| UnitError::TooLarge(text.to_owned()))
}

/// Splits `1.5 TB` into number and unit.
fn number_and_unit(text: &str) -> (&str, &str) {
    // A sign belongs to the number, so that the message can say so.
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let unit = unsigned.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    (&text[..text.len() - unit.len()], unit.trim_start())
}

/// `16 GB`, `16GiB`, `512M`, `1.5 TB`; a bare `0` needs no unit.
pub fn parse_bytes(text: &str) -> Result<Bytes, UnitError> {
    let text = text.trim();
    let (number, unit) = number_and_unit(text);
    if number.is_empty() {
        return Err(UnitError::NotANumber(text.to_owned()));
    }
    let value = decimal(number)?;
    if unit.is_empty() {
        return if value == (0, 0) { Ok(Bytes(0)) } else { Err(UnitError::NoUnit(text.to_owned())) };
    }
    let factor = byte_unit(unit).ok_or_else(|| UnitError::UnknownUnit(unit.to_owned(), "bytes"))?;
    scaled(value, factor, text).map(Bytes)
}

/// Bytes a second, from `10 Gbit/s`, `100 Mbps`, `1 Gb/s`, `100 MB/s`. Here the case of the `b` counts, as networks have it.
pub fn parse_bandwidth(text: &str) -> Result<Bytes, UnitError> {
    let text = text.trim();
    let (number, unit) = number_and_unit(text);
    if number.is_empty() {
        return Err(UnitError::NotANumber(text.to_owned()));
    }
    let value = decimal(number)?;
    if unit.is_empty() {
        return Err(UnitError::NoUnit(text.to_owned()));
    }
    let unknown = || UnitError::UnknownUnit(unit.to_owned(), "bandwidth");
    let amount = ["/s", "/sec", "ps"].iter().find_map(|ending| unit.strip_suffix(ending)).ok_or_else(unknown)?;
    let (factor, per_byte) = match amount.strip_suffix("bit").or(amount.strip_suffix("bits")) {
        Some(prefix) => (byte_unit(&format!("{prefix}b")).ok_or_else(unknown)?, 8),
        // All small letters leave open whether bits or bytes are meant.
        None => match amount.strip_suffix('b') {
            Some("" | "m" | "g" | "t" | "p") => return Err(unknown()),
            Some(_) => (byte_unit(amount).ok_or_else(unknown)?, 8),
            None => (byte_unit(amount).filter(|_| amount.ends_with('B')).ok_or_else(unknown)?, 1),
        },
    };
    scaled(value, factor, text).map(|amount| Bytes(amount / per_byte))
}

/// `90 min`, `2 h`, `1h30m`, `45 s`, `3 days`, `00:30:00`; a bare `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let text = text.trim();
    if text.contains(':') {
        return clock(text);
    }
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(UnitError::NotANumber(text.to_owned()));
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = number_and_unit(rest);
        if number.is_empty() {
            return Err(UnitError::NotANumber(rest.to_owned()));
        }
        let value = decimal(number)?;
        let end = tail.find(|letter: char| !letter.is_alphabetic()).unwrap_or(tail.len());
        let unit = &tail[..end];
        if unit.is_empty() {
            return Err(UnitError::NoUnit(text.to_owned()));
        }
        let factor = time_unit(unit).ok_or_else(|| UnitError::UnknownUnit(unit.to_owned(), "time"))?;
        let part = scaled(value, factor, text)?;
        total = total.checked_add(part).ok_or_else(|| UnitError::TooLarge(text.to_owned()))?;
        rest = tail[end..].trim_start();
    }
    Ok(Duration::from_millis(total))
}

/// `MM:SS`, `HH:MM:SS` or `D-HH:MM:SS`, as batch systems write wall times.
fn clock(text: &str) -> Result<Duration, UnitError> {
    let too_large = || UnitError::TooLarge(text.to_owned());
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let fields: Vec<&str> = rest.split(':').collect();
    let mut seconds: u64 = 0;
    for (position, field) in fields.iter().enumerate() {
        let (value, fraction) = decimal(field)?;
        if fraction != 0 || fields.len() > 3 || (position > 0 && value > 59) {
            return Err(UnitError::NotANumber(text.to_owned()));
        }
        seconds = seconds.checked_mul(60).and_then(|sum| sum.checked_add(value)).ok_or_else(too_large)?;
    }
    let (days, _) = decimal(days)?;
    let total = days.checked_mul(86_400).and_then(|sum| sum.checked_add(seconds)).ok_or_else(too_large)?;
    Ok(Duration::from_secs(total))
}

/// Cores to thousandths of a core.
pub fn parse_cpus(text: &str) -> Result<u32, UnitError> {
    let text = text.trim();
    let value = decimal(text)?;
    if value.1 % 1_000_000 != 0 {
        return Err(UnitError::TooFine(text.to_owned()));
    }
    u32::try_from(scaled(value, 1000, text)?).map_err(|_| UnitError::TooLarge(text.to_owned()))
}

/// Devices, and thousandths of each when it is shared: `2` is two whole ones, `0.25` a quarter of one.
pub fn parse_gpus(text: &str) -> Result<(u32, u32), UnitError> {
    let text = text.trim();
    let (whole, fraction) = decimal(text)?;
    if fraction == 0 {
        return parse_count(text).map(|count| (count, 0));
    }
    if whole > 0 {
        return Err(UnitError::NoShare(text.to_owned()));
    }
    parse_cpus(text).map(|share| (1, share))
}

/// Thousandths a second: `95`, `0.5`, `95 /s`.
pub fn parse_rate(text: &str) -> Result<u32, UnitError> {
    let text = text.trim();
    parse_cpus(text.strip_suffix("/s").unwrap_or(text))
}

/// Millionths of a whole: `0.01` and `1%` are 10000.
pub fn parse_part(text: &str) -> Result<u32, UnitError> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 10_000),
        None => (text, 1_000_000),
    };
    match scaled(decimal(number)?, unit, text)? {
        part @ 0..=1_000_000 => Ok(part as u32),
        _ => Err(UnitError::TooLarge(text.to_owned())),
    }
}

/// `8.6` is 86.
pub fn parse_capability(text: &str) -> Result<u32, UnitError> {
    let text = text.trim();
    let bad = || UnitError::NotACapability(text.to_owned());
    let (whole, fraction) = decimal(text).map_err(|_| bad())?;
    // Nobody has built a device with two digits after the point; 80 for 8.0 is the likelier slip.
    if fraction % 100_000_000 != 0 || whole > 30 {
        return Err(bad());
    }
    Ok(whole as u32 * 10 + fraction / 100_000_000)
}

pub fn parse_count(text: &str) -> Result<u32, UnitError> {
    let text = text.trim();
    let (whole, fraction) = decimal(text)?;
    if fraction != 0 || text.contains('.') {
        return Err(UnitError::NotWhole(text.to_owned()));
    }
    u32::try_from(whole).map_err(|_| UnitError::TooLarge(text.to_owned()))
}

/// `28,793`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.char_indices() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("16 GB", 16_000_000_000),
            ("16GiB", 17_179_869_184),
            ("512M", 512_000_000),
            ("1.5 TB", 1_500_000_000_000),
            ("0.1 GB", 100_000_000),
            ("64 kb", 64_000),
            ("0", 0),
            ("100 bytes", 100),
        ] {
            assert_eq!(parse_bytes(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn bytes_that_cannot_be_meant_say_why() {
        for (text, message) in [
            ("16", "`16` has no unit"),
            ("16 Gbit", "`Gbit` is not a unit of bytes"),
            ("much", "`much` is not a number"),
            ("-1 GB", "`-1` is negative"),
            ("99999999999 PB", "`99999999999 PB` is too large"),
            ("", "`` is not a number"),
            ("1.2.3 GB", "`1.2.3` is not a number"),
        ] {
            assert_eq!(parse_bytes(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn bandwidths_are_read_in_bits_and_in_bytes() {
        for (text, bytes) in [
            ("100 Gbit/s", 12_500_000_000),
            ("10 Gbps", 1_250_000_000),
            ("1 Gb/s", 125_000_000),
            ("80 kbit/s", 10_000),
            ("100 MB/s", 100_000_000),
            ("1.5 GiB/s", 1_610_612_736),
            ("8 bit/s", 1),
            ("31 MBps", 31_000_000),
        ] {
            assert_eq!(parse_bandwidth(text), Ok(Bytes(bytes)), "{text}");
        }
        for (text, message) in [
            ("100", "`100` has no unit"),
            ("100 mb/s", "`mb/s` is not a unit of bandwidth"),
            ("100 MB", "`MB` is not a unit of bandwidth"),
            ("fast", "`fast` is not a number"),
        ] {
            assert_eq!(parse_bandwidth(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90 min", 5400),
            ("2 h", 7200),
            ("1h30m", 5400),
            ("1 h 30 min", 5400),
            ("45 s", 45),
            ("3 days", 259_200),
            ("00:30:00", 1800),
            ("12:30", 750),
            ("1-00:00:00", 86_400),
            ("0.5 h", 1800),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("250 ms"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn durations_that_cannot_be_meant_say_why() {
        for (text, message) in [
            ("90", "`90` has no unit"),
            ("1h30", "`1h30` has no unit"),
            ("2 fortnights", "`fortnights` is not a unit of time"),
            ("soon", "`soon` is not a number"),
            ("00:75:00", "`00:75:00` is not a number"),
            ("1:2:3:4", "`1:2:3:4` is not a number"),
            ("99999999999999999999 h", "`99999999999999999999` is too large"),
            ("é", "`é` is not a number"),
        ] {
            assert_eq!(parse_duration(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn cores_and_capabilities_become_integers() {
        assert_eq!(parse_cpus("0.5"), Ok(500));
        assert_eq!(parse_cpus("4"), Ok(4000));
        assert_eq!(parse_cpus("0.0001"), Err(UnitError::TooFine("0.0001".into())));
        assert_eq!(parse_rate("95 /s"), Ok(95_000));
        assert_eq!(parse_rate("0.5"), Ok(500));
        assert_eq!(parse_part("0.01"), Ok(10_000));
        assert_eq!(parse_part("2.5 %"), Ok(25_000));
        assert_eq!(parse_part("1.5"), Err(UnitError::TooLarge("1.5".into())));
        assert_eq!(parse_gpus("0"), Ok((0, 0)));
        assert_eq!(parse_gpus("3"), Ok((3, 0)));
        assert_eq!(parse_gpus("0.25"), Ok((1, 250)));
        assert_eq!(parse_gpus("1.0"), Err(UnitError::NotWhole("1.0".into())));
        assert_eq!(parse_gpus("1.5"), Err(UnitError::NoShare("1.5".into())));
        assert_eq!(parse_gpus("0.0004"), Err(UnitError::TooFine("0.0004".into())));
        assert_eq!(parse_capability("8.0"), Ok(80));
        assert_eq!(parse_capability("8.6"), Ok(86));
        assert_eq!(parse_capability("9"), Ok(90));
        assert_eq!(parse_capability("80"), Err(UnitError::NotACapability("80".into())));
        assert_eq!(parse_count("7"), Ok(7));
        assert_eq!(parse_count("7.0"), Err(UnitError::NotWhole("7.0".into())));
    }
}
