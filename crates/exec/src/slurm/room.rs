//! How many attempts go into an array while Slurm takes no more jobs of this user.
//!
//! A cluster may limit how many jobs a user has in its queue, and an array that does not fit is refused whole, also when
//! most of it would. So arrays are halved until one is taken; when not even a single job is, the rest waits a while.

use super::PATIENCE;
use super::follow::Follower;
use super::submit::{AGAIN, Group};
use std::time::{Duration, Instant};
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::resources::Request;

/// A queue that stays full is not asked more often than this.
const AGAIN_AT_LEAST: Duration = Duration::from_secs(60);

/// Attempts that ask for the same, and so meet the same limits.
pub(crate) type Class = (Request, Duration);

pub(crate) struct Room {
    /// How many attempts the next array may have.
    most: usize,
    /// When it is submitted, at the earliest; and how long is waited when not even one is taken.
    next: Instant,
    pause: Duration,
    refused: Instant,
    /// When something was last taken.
    taken: Instant,
}

impl Room {
    fn new(now: Instant) -> Self {
        Self { most: 1, next: now, pause: AGAIN, refused: now, taken: now }
    }

    /// So many were too many.
    fn refuse(&mut self, count: usize, now: Instant) {
        self.refused = now;
        self.most = (count / 2).max(1);
        if count == 1 {
            self.next = now + self.pause;
            self.pause = (self.pause * 2).min(AGAIN_AT_LEAST);
        }
    }

    /// An array was taken. Twice as many have just been refused, unless that was long ago.
    fn take(&mut self, now: Instant) {
        self.taken = now;
        self.pause = AGAIN;
        if now.duration_since(self.refused) >= AGAIN {
            self.most *= 2;
        }
    }
}

impl Follower {
    /// How many of a class go into an array now, and whether only one array goes; none while it waits.
    pub(crate) fn room(&self, class: &Class) -> (usize, bool) {
        let largest = self.largest();
        match self.rooms.get(class) {
            None => (largest, false),
            Some(room) if Instant::now() < room.next => (0, true),
            Some(room) => (room.most.min(largest), true),
        }
    }

    fn largest(&self) -> usize {
        self.cluster.configuration.array_size.saturating_sub(1).max(1) as usize
    }

    /// An array of this class was taken.
    pub(crate) fn took(&mut self, class: &Class) {
        let largest = self.largest();
        if let Some(room) = self.rooms.get_mut(class) {
            room.take(Instant::now());
            if room.most >= largest {
                self.rooms.remove(class);
            }
        }
    }

    /// An array was refused because there are too many jobs: its attempts wait again, before those that came later.
    pub(crate) fn take_back(&mut self, group: Group, text: &str) {
        let now = Instant::now();
        let number = group.batch;
        let class = group.class();
        let room = self.rooms.entry(class.clone()).or_insert_with(|| Room::new(now));
        room.refuse(group.specs.len(), now);
        let hopeless = now.duration_since(room.taken) > PATIENCE && group.specs.len() == 1;
        if !self.told_full {
            self.told_full = true;
            self.driver.warn(format!(
                "Slurm takes no more jobs now ({text}); Tulpar submits fewer at a time, and the rest when there is room. \
                 `at_most` of the site says how many jobs of a run may be in the queue"
            ));
        }
        let tasks = self.table.remove(&number).map(|batch| batch.tasks).unwrap_or_default();
        self.batches.take_back(number);
        for (spec, task) in group.specs.into_iter().zip(tasks) {
            self.where_is.remove(&spec.attempt);
            match task.cancelled {
                Some(ending) => self.give_up(&spec, ending),
                None => self.returned.push(spec),
            }
        }
        // While jobs of this run are there, they will end and leave room.
        if self.is_closing() || hopeless && !self.table.values().any(|batch| batch.array.is_some()) {
            let of_class = |spec: &mut JobSpec| Group::class_of(spec) == class;
            let mut lost: Vec<JobSpec> = self.returned.extract_if(.., of_class).collect();
            lost.extend(self.waiting.extract_if(.., of_class));
            for spec in lost {
                self.give_up(&spec, Ending::NodeLost);
            }
        }
    }

    /// It was prepared once and will not be submitted again.
    fn give_up(&self, spec: &JobSpec, ending: Ending) {
        self.remote.forget_secrets(spec.attempt);
        self.end_unsent(spec.attempt, ending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_halved_until_one_is_taken_and_grow_again_later() {
        let start = Instant::now();
        let mut room = Room::new(start);
        room.refuse(100, start);
        room.refuse(50, start);
        assert_eq!((room.most, room.next), (25, start));
        room.take(start);
        assert_eq!(room.most, 25, "fifty have just been refused");
        room.take(start + AGAIN);
        assert_eq!(room.most, 50);
    }

    #[test]
    fn a_full_queue_is_asked_less_and_less_often() {
        let start = Instant::now();
        let mut room = Room::new(start);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            room.refuse(1, start);
            pauses.push(room.next.duration_since(start).as_secs());
        }
        assert_eq!(pauses, [3, 6, 12, 24, 48, 60, 60]);
        room.take(start);
        room.refuse(1, start);
        assert_eq!(room.next.duration_since(start), AGAIN);
    }
}
