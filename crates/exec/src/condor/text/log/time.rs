//! When an entry was written, as it was written: most logs give local time and no zone. It knows no time zone.

use tulpar_core::units::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogTime {
    /// Old logs write month and day alone.
    pub year: Option<i32>,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
    /// Seconds east of Greenwich, when the log says so: 0 after a `Z`.
    pub east: Option<i32>,
}

impl LogTime {
    /// Reads the time at the start of `text` and gives what follows it:
    /// `2026-11-16 06:06:53`, `2026-11-16T06:06:53.605Z` or `11/16 06:06:53`.
    pub(super) fn read(text: &str) -> Option<(Self, &str)> {
        let (date, rest) = match text.find(['/', '-'])? {
            2 => {
                let (month, rest) = number(text, 2)?;
                let (day, rest) = number(rest.strip_prefix('/')?, 2)?;
                ((None, month, day), rest)
            }
            _ => {
                let (year, rest) = number(text, 4)?;
                let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
                let (day, rest) = number(rest.strip_prefix('-')?, 2)?;
                ((Some(i32::try_from(year).ok()?), month, day), rest)
            }
        };
        let (hour, rest) = number(rest.strip_prefix([' ', 'T'])?, 2)?;
        let (minute, rest) = number(rest.strip_prefix(':')?, 2)?;
        let (second, rest) = number(rest.strip_prefix(':')?, 2)?;
        let (microsecond, rest) = match rest.strip_prefix('.') {
            Some(rest) => fraction(rest)?,
            None => (0, rest),
        };
        let (east, rest) = zone(rest)?;
        let (year, month, day) = date;
        let right = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
        let small = |number: u32| u8::try_from(number).ok();
        let time = Self {
            year,
            month: small(month)?,
            day: small(day)?,
            hour: small(hour)?,
            minute: small(minute)?,
            second: small(second)?,
            microsecond,
            east,
        };
        right.then_some((time, rest))
    }

    /// The moment, where `year` is taken for a log that writes none and `east` for one without a zone: seconds east of
    /// Greenwich where the log was written.
    pub fn moment(&self, year: i32, east: i32) -> Timestamp {
        // Years start in March, so that the leap day is the last of its year.
        let month = i64::from(self.month);
        let year = i64::from(self.year.unwrap_or(year)) - i64::from(month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        let of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        let seconds = days * 86_400 + of_day - i64::from(self.east.unwrap_or(east));
        let micros = seconds.saturating_mul(1_000_000) + i64::from(self.microsecond);
        Timestamp(u64::try_from(micros).unwrap_or(0))
    }
}

fn number(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(digits)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some((digits.parse().ok()?, rest))
}

/// The digits after the point, of which six count.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let digits = &text[..end.min(6)];
    let value: u32 = digits.parse().ok()?;
    Some((value * 10u32.pow(6 - digits.len() as u32), &text[end..]))
}

fn zone(text: &str) -> Option<(Option<i32>, &str)> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((Some(0), rest));
    }
    let Some(sign) = text.bytes().next().filter(|byte| matches!(byte, b'+' | b'-')) else { return Some((None, text)) };
    let (hours, rest) = number(&text[1..], 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':').unwrap_or(rest), 2)?;
    let east = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    Some((Some(if sign == b'-' { -east } else { east }), rest))
}
