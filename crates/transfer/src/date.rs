//! Dates as HTTP and object stores write them, from seconds since 1970. It reads no clock.

/// Year, month, day, hour, minute, second, and the day of the week (0 is Sunday), in UTC.
fn civil(seconds: u64) -> (u64, usize, u64, u64, u64, u64, usize) {
    let days = seconds / 86_400;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Years are counted from 1 March, so that the leap day is the last of them; eras of 400 years repeat exactly.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month as usize, day, hour, minute, second, ((days + 4) % 7) as usize)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
pub(crate) fn http(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day, hour, minute, second, weekday) = civil(seconds);
    format!("{}, {day:02} {} {year} {hour:02}:{minute:02}:{second:02} GMT", DAYS[weekday], MONTHS[month - 1])
}

/// `19941106T084937Z`
pub(crate) fn compact(seconds: u64) -> String {
    let (year, month, day, hour, minute, second, _) = civil(seconds);
    format!("{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(http(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(compact(951_782_400), "20000229T000000Z");
        assert_eq!(compact(4_107_542_400), "21000301T000000Z");
    }
}
