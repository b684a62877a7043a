//! In which order the parts of a data set are read, shared by all that read: every part once an epoch, shuffled anew.

use std::sync::Mutex;

use crate::meter::locked;
use crate::random::Random;
use crate::workload::Rank;

pub(crate) struct Turns {
    rank: usize,
    ranks: usize,
    seed: u64,
    epochs: u64,
    shuffled: bool,
    state: Mutex<State>,
}

struct State {
    epoch: u64,
    next: usize,
    parts: Vec<u32>,
}

impl Turns {
    /// `parts` numbers, from 0, of which every process takes its share: all of them shuffle alike.
    pub(crate) fn new(parts: u32, epochs: u64, seed: u64, shuffled: bool, rank: Rank) -> Turns {
        let (rank, ranks) = (rank.number as usize, rank.of.max(1) as usize);
        let state = Mutex::new(State { epoch: 0, next: rank, parts: (0..parts).collect() });
        let turns = Turns { rank, ranks, seed, epochs, shuffled, state };
        turns.shuffle(&mut locked(&turns.state));
        turns
    }

    fn shuffle(&self, state: &mut State) {
        if self.shuffled {
            Random::new(self.seed, &[3, state.epoch]).shuffle(&mut state.parts);
        }
    }

    /// Epoch and part whose turn it is.
    pub(crate) fn next(&self) -> Option<(u64, u64)> {
        let mut state = locked(&self.state);
        if state.next >= state.parts.len() {
            state.epoch += 1;
            state.next = self.rank;
            if state.epoch < self.epochs {
                self.shuffle(&mut state);
            }
        }
        if state.epoch >= self.epochs {
            return None;
        }
        let part = *state.parts.get(state.next)?;
        state.next += self.ranks;
        Some((state.epoch, u64::from(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use crate::workload::Rank;

    #[test]
    fn every_part_has_its_turn_once_an_epoch() {
        let turns = Turns::new(3, 2, 1, false, Rank::ALONE);
        let taken: Vec<_> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(taken, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        let turns = Turns::new(100, 2, 1, true, Rank::ALONE);
        let taken: Vec<_> = std::iter::from_fn(|| turns.next()).collect();
        let (first, second) = taken.split_at(100);
        assert_ne!(first.iter().map(|turn| turn.1).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert_ne!(
            first.iter().map(|turn| turn.1).collect::<Vec<_>>(),
            second.iter().map(|turn| turn.1).collect::<Vec<_>>()
        );
        for epoch in [first, second] {
            let mut parts: Vec<u64> = epoch.iter().map(|turn| turn.1).collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..100).collect::<Vec<_>>());
        }
        assert_eq!(Turns::new(0, 2, 1, true, Rank::ALONE).next(), None);
    }

    #[test]
    fn processes_share_the_parts_of_an_epoch() {
        let taken = |number| {
            let turns = Turns::new(5, 1, 1, true, Rank { number, of: 2 });
            std::iter::from_fn(|| turns.next()).map(|(_, part)| part).collect::<Vec<_>>()
        };
        let (first, second) = (taken(0), taken(1));
        assert_eq!((first.len(), second.len()), (3, 2));
        let mut all = [first, second].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        let late = Turns::new(1, 3, 1, true, Rank { number: 7, of: 8 });
        assert_eq!(late.next(), None, "more processes than parts");
    }
}
