//! Where the data stream stands, and the order of the sequences of an epoch.

use serde::{Deserialize, Serialize};

use super::random;

/// The next sequence to be drawn. Together with the configuration it determines everything that follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cursor {
    /// Complete passes over the training text.
    pub epoch: u64,
    /// Sequences of this epoch already drawn.
    pub position: u64,
}

impl Cursor {
    /// This many sequences further, over epochs of `sequences` sequences.
    pub const fn advanced(self, by: u64, sequences: u64) -> Self {
        if sequences == 0 {
            return self;
        }
        let position = self.position + by;
        Self { epoch: self.epoch + position / sequences, position: position % sequences }
    }

    /// Sequences drawn since the start of the run.
    pub const fn drawn(self, sequences: u64) -> u64 {
        self.epoch * sequences + self.position
    }
}

/// The order of the sequences of one epoch.
#[derive(Debug, Clone)]
pub(super) enum Order {
    Natural,
    /// Sequence numbers; a corpus is limited in bytes, so that they fit.
    Shuffled {
        epoch: u64,
        sequences: Vec<u32>,
    },
}

impl Order {
    /// A permutation drawn for (seed, epoch), or the natural order.
    pub(super) fn of_epoch(shuffle: bool, seed: u64, epoch: u64, count: u64) -> Self {
        if !shuffle {
            return Self::Natural;
        }
        let mut sequences: Vec<u32> = (0..count as u32).collect();
        let mut rng = random::generator(seed, "data order", epoch);
        for last in (1..sequences.len()).rev() {
            let other = random::below(&mut rng, last as u64 + 1) as usize;
            sequences.swap(last, other);
        }
        Self::Shuffled { epoch, sequences }
    }

    /// Whether this order serves the given epoch.
    pub(super) const fn serves(&self, wanted: u64) -> bool {
        match self {
            Self::Natural => true,
            Self::Shuffled { epoch, .. } => *epoch == wanted,
        }
    }

    /// The sequence at a position of the epoch.
    pub(super) fn at(&self, position: u64) -> u64 {
        match self {
            Self::Natural => position,
            Self::Shuffled { sequences, .. } => u64::from(sequences[position as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(shuffle: bool, seed: u64, epoch: u64, count: u64) -> Vec<u64> {
        let order = Order::of_epoch(shuffle, seed, epoch, count);
        (0..count).map(|position| order.at(position)).collect()
    }

    #[test]
    fn orders_repeat_and_differ_by_seed_and_epoch() {
        assert_eq!(drawn(true, 1, 0, 50), drawn(true, 1, 0, 50));
        assert_ne!(drawn(true, 1, 0, 50), drawn(true, 1, 1, 50));
        assert_ne!(drawn(true, 1, 0, 50), drawn(true, 2, 0, 50));
        assert_eq!(drawn(false, 1, 3, 50), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn cursor_survives_json() {
        let cursor = Cursor { epoch: 3, position: 17 };
        let text = serde_json::to_string(&cursor).unwrap();
        assert_eq!(text, r#"{"epoch":3,"position":17}"#);
        assert_eq!(serde_json::from_str::<Cursor>(&text).unwrap(), cursor);
    }

    proptest! {
        #[test]
        fn an_epoch_draws_every_sequence_exactly_once(seed: u64, epoch in 0u64..9, count in 0u64..300) {
            let mut order = drawn(true, seed, epoch, count);
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn advancing_in_parts_is_advancing_at_once(a in 0u64..500, b in 0u64..500, count in 1u64..60) {
            let start = Cursor::default();
            prop_assert_eq!(start.advanced(a, count).advanced(b, count), start.advanced(a + b, count));
            prop_assert_eq!(start.advanced(a, count).drawn(count), a);
        }
    }
}
