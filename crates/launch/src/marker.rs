//! The mark that every process of an attempt carries, so that it can be found again whatever it does.
//!
//! The number sits in two places that a process inherits. The soft limit `RLIMIT_LOCKS` is the sure one:
//! Linux has ignored that limit since 2.4.25, yet every child inherits it, `setsid` and a cleared
//! environment do not touch it, anyone may read it in `/proc/PID/limits`, and it is there even in a
//! zombie. The variable `TULPAR_RUN` is for people, and for hosts where the hard limit forbids the first.
//! Knows nothing of attempts; the serial is whatever the launcher counts.

use crate::process;

/// 23 bits of the run's name, 16 of the driver's instance, 24 of the attempt's serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker(u64);

const INSTANCE_BITS: u32 = 16;
const SERIAL_BITS: u32 = 24;
const SERIAL_MASK: u64 = (1 << SERIAL_BITS) - 1;

/// The variable that shows the mark.
pub(crate) const VARIABLE: &str = "TULPAR_RUN";

/// A run, or one driver of it. A guard ends only what its own driver started: after a quick resume the
/// next driver's tasks may already run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    run: u64,
    instance: Option<u16>,
}

impl Owner {
    pub(crate) fn run(name: &str) -> Self {
        let digest = tulpar_core::ids::Digest::of(name.as_bytes()).0;
        let bits = u64::from(u32::from_le_bytes([digest[0], digest[1], digest[2], 0])) & 0x7f_ffff;
        // 0 would make small limits that an administrator set look like marks.
        Self { run: bits.max(1), instance: None }
    }

    pub(crate) fn driver(name: &str, instance: u16) -> Self {
        Self { instance: Some(instance), ..Self::run(name) }
    }

    /// How the marks of the run begin when they are written with sixteen digits.
    pub(crate) fn digits(self) -> String {
        format!("{:06x}", self.run)
    }

    pub(crate) fn mark(self, serial: u32) -> Marker {
        let instance = u64::from(self.instance.unwrap_or(0));
        Marker(self.run << (INSTANCE_BITS + SERIAL_BITS) | instance << SERIAL_BITS | u64::from(serial) & SERIAL_MASK)
    }

    pub(crate) fn owns(self, marker: Marker) -> bool {
        marker.0 >> (INSTANCE_BITS + SERIAL_BITS) == self.run
            && self.instance.is_none_or(|instance| (marker.0 >> SERIAL_BITS) as u16 == instance)
    }
}

impl Marker {
    pub(crate) fn serial(self) -> u32 {
        (self.0 & SERIAL_MASK) as u32
    }

    pub(crate) fn limit(self) -> u64 {
        self.0
    }

    pub(crate) fn variable(self, run: &str) -> String {
        format!("{run}:{:016x}", self.0)
    }

    /// The mark of a living process or a zombie.
    pub(crate) fn of_process(pid: i32) -> Option<Self> {
        let mut buffer = Vec::with_capacity(2048);
        if process::read(pid, "limits", &mut buffer).is_ok()
            && let Some(marker) = in_limits(&buffer)
        {
            return Some(marker);
        }
        process::read(pid, "environ", &mut buffer).ok()?;
        in_environment(&buffer)
    }
}

/// The next serial after `serial`; 24 bits are more attempts than ever run at once.
pub(crate) fn next_serial(serial: u32) -> u32 {
    (serial + 1) & SERIAL_MASK as u32
}

fn in_limits(text: &[u8]) -> Option<Marker> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Max file locks"))?;
    let soft = std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?;
    plausible(soft.parse().ok()?)
}

fn in_environment(block: &[u8]) -> Option<Marker> {
    let value = block.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"TULPAR_RUN="))?;
    let hex = std::str::from_utf8(value).ok()?.rsplit_once(':')?.1;
    plausible(u64::from_str_radix(hex, 16).ok()?)
}

fn plausible(number: u64) -> Option<Marker> {
    let run = number >> (INSTANCE_BITS + SERIAL_BITS);
    (run != 0 && run <= 0x7f_ffff).then_some(Marker(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_from_the_limits_and_from_the_variable() {
        let marker = Owner::driver("galaxy-3", 77).mark(5);
        let limits = format!(
            "Max address space  unlimited  unlimited  bytes\nMax file locks             {}    unlimited  locks\n",
            marker.limit()
        );
        assert_eq!(in_limits(limits.as_bytes()), Some(marker));
        let environ = format!("HOME=/x\0TULPAR_RUN={}\0A=b\0", marker.variable("galaxy-3"));
        assert_eq!(in_environment(environ.as_bytes()), Some(marker));
        assert_eq!(marker.serial(), 5);
    }

    #[test]
    fn limits_that_an_administrator_set_are_no_marks() {
        assert_eq!(in_limits(b"Max file locks  unlimited  unlimited  locks\n"), None);
        assert_eq!(in_limits(b"Max file locks  65536  65536  locks\n"), None);
    }

    #[test]
    fn a_run_owns_what_any_of_its_drivers_started_and_a_driver_only_its_own() {
        let marker = Owner::driver("galaxy-3", 77).mark(5);
        assert!(Owner::run("galaxy-3").owns(marker));
        assert!(Owner::driver("galaxy-3", 77).owns(marker));
        assert!(!Owner::driver("galaxy-3", 78).owns(marker));
        assert!(!Owner::run("galaxy-4").owns(marker));
    }
}
