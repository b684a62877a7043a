//! In which order a process accesses a file. The rules are Darshan's, so that traces and counters agree.

/// Accesses of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pattern {
    pub accesses: u64,
    /// Began after the end of the one before; includes the consecutive ones.
    pub sequential: u64,
    /// Began right where the one before ended.
    pub consecutive: u64,
}

impl Pattern {
    pub fn random(&self) -> u64 {
        self.accesses.saturating_sub(self.sequential)
    }

    pub(crate) fn extend(&mut self, other: Pattern) {
        self.accesses = self.accesses.saturating_add(other.accesses);
        self.sequential = self.sequential.saturating_add(other.sequential);
        self.consecutive = self.consecutive.saturating_add(other.consecutive);
    }
}

/// Follows the accesses of one process to one file in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Follower {
    last_byte: i64,
}

impl Follower {
    pub(super) fn follow(&mut self, pattern: &mut Pattern, offset: i64, length: i64) {
        pattern.accesses += 1;
        if offset > self.last_byte {
            pattern.sequential += 1;
        }
        if self.last_byte.checked_add(1) == Some(offset) {
            pattern.consecutive += 1;
        }
        self.last_byte = offset.saturating_add(length).saturating_sub(1);
    }
}
