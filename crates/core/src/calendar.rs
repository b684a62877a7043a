//! Points in time as calendar dates in UTC, for people and for other programs. It knows no time zone and no clock.

use crate::units::Timestamp;
use std::fmt;

/// A point in time that reads `2024-11-15 20:57:03 UTC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    pub month: u64,
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
    pub microsecond: u64,
}

impl From<Timestamp> for Date {
    fn from(at: Timestamp) -> Self {
        let (seconds, microsecond) = (at.0 / 1_000_000, at.0 % 1_000_000);
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Days are counted from 0000-03-01, so that the leap day is the last of its year.
        let day = days + 719_468;
        let (era, of_era) = (day / 146_097, day % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let year = (year + era * 400) as i64 + i64::from(month <= 2);
        Self { year, month, day, hour: rest / 3600, minute: rest % 3600 / 60, second: rest % 60, microsecond }
    }
}

impl Date {
    /// `2024-11-15T20:57:03.000042Z`
    pub fn rfc3339(&self) -> String {
        let Date { year, month, day, hour, minute, second, microsecond } = self;
        format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{microsecond:06}Z")
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day, hour, minute, second, .. } = self;
        write!(f, "{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_calendar_dates_in_utc() {
        for (micros, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400_000_000, "2000-02-29 00:00:00 UTC"),
            (1_731_704_223_000_000, "2024-11-15 20:57:03 UTC"),
            (4_107_542_399_999_999, "2100-02-28 23:59:59 UTC"),
        ] {
            assert_eq!(Date::from(Timestamp(micros)).to_string(), text);
        }
        assert_eq!(Date::from(Timestamp(1_731_704_223_000_042)).rfc3339(), "2024-11-15T20:57:03.000042Z");
    }
}
