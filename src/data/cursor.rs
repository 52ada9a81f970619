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
    /// Sequence numbers, of at most [`LISTED`].
    Shuffled {
        epoch: u64,
        sequences: Vec<u32>,
    },
    /// The same for more of them, without a list.
    Mixed {
        epoch: u64,
        mixer: Mixer,
    },
}

/// Longest order that is kept as a list; a longer one is computed place by place.
const LISTED: u64 = 1 << 22;

/// A permutation of the numbers below a bound that needs no memory: a Feistel network over the next power of four, walked
/// until it comes back below the bound.
#[derive(Debug, Clone)]
pub(super) struct Mixer {
    count: u64,
    /// Bits of half a number.
    half: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 6;

impl Mixer {
    fn new(rng: &mut impl rand::Rng, count: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    fn at(&self, place: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let mut number = place;
        loop {
            let (mut left, mut right) = (number >> self.half, number & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (random::mix(right ^ key) & mask));
            }
            number = left << self.half | right;
            // The walk began below the bound, so that it comes back there.
            if number < self.count || place >= self.count {
                return number;
            }
        }
    }
}

impl Order {
    /// A permutation drawn for (seed, epoch), or the natural order.
    pub(super) fn of_epoch(shuffle: bool, seed: u64, epoch: u64, count: u64) -> Self {
        if !shuffle {
            return Self::Natural;
        }
        let mut rng = random::generator(seed, "data order", epoch);
        if count > LISTED {
            return Self::Mixed { epoch, mixer: Mixer::new(&mut rng, count) };
        }
        let mut sequences: Vec<u32> = (0..count as u32).collect();
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
            Self::Shuffled { epoch, .. } | Self::Mixed { epoch, .. } => *epoch == wanted,
        }
    }

    /// The sequence at a position of the epoch.
    pub(super) fn at(&self, position: u64) -> u64 {
        match self {
            Self::Natural => position,
            Self::Shuffled { sequences, .. } => u64::from(sequences[position as usize]),
            Self::Mixed { mixer, .. } => mixer.at(position),
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

    #[test]
    fn a_long_epoch_is_drawn_without_a_list() {
        let orders = [0, 1].map(|epoch| Order::of_epoch(true, 1, epoch, LISTED + 5));
        assert!(orders.iter().all(|order| matches!(order, Order::Mixed { .. })));
        let places = |order: &Order| -> Vec<u64> { (0..4).map(|place| order.at(place)).collect() };
        assert_ne!(places(&orders[0]), places(&orders[1]));
        assert_eq!(places(&orders[0]), places(&Order::of_epoch(true, 1, 0, LISTED + 5)));
    }

    proptest! {
        #[test]
        fn the_mixer_is_a_permutation_without_an_order(seed: u64, count in 2u64..3000) {
            let mixer = Mixer::new(&mut random::generator(seed, "test", 0), count);
            let drawn: Vec<u64> = (0..count).map(|place| mixer.at(place)).collect();
            if count > 100 {
                let kept = drawn.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
                prop_assert!(kept < 12, "{kept} pairs stand as they stood");
            }
            let mut sorted = drawn;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..count).collect::<Vec<_>>());
        }

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
