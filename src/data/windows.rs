//! The micro-batches of one update at a time.

use super::{Batch, Cursor, DataError, Dataset, cursor::Order};
use crate::config::Config;

/// All micro-batches of one update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub micro_batches: Vec<Batch>,
    /// Targets that count, over all micro-batches: what the summed gradient is divided by.
    pub target_count: u64,
    /// Where the stream stands once this window has been used.
    pub after: Cursor,
}

/// The windows of a run from a cursor on.
///
/// With `train.max_updates` the stream never ends, every window is full, and a window may span two epochs.
/// With `train.epochs` no window spans two epochs: the last of an epoch may hold fewer micro-batches and its
/// last micro-batch fewer rows, and the stream ends after the last epoch.
#[derive(Debug, Clone)]
pub struct Windows {
    dataset: Dataset,
    micro_batch: usize,
    accumulate: usize,
    seed: u64,
    shuffle: bool,
    epochs: Option<u64>,
    cursor: Cursor,
    order: Order,
}

/// Which micro-batch of the run this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The update it belongs to; the first is 1.
    pub update: u64,
    /// Its place in the window; the first is 0.
    pub micro_batch: u64,
    /// Targets of the whole window.
    pub target_count: u64,
}

impl Pass {
    /// The only micro-batch of that update.
    pub const fn alone(update: u64, batch: &Batch) -> Self {
        Self { update, micro_batch: 0, target_count: batch.target_count }
    }
}

impl Window {
    /// The micro-batches, as those of that update.
    pub fn passes(&self, update: u64) -> impl Iterator<Item = (&Batch, Pass)> {
        let pass = move |at: usize| Pass { update, micro_batch: at as u64, target_count: self.target_count };
        self.micro_batches.iter().enumerate().map(move |(at, batch)| (batch, pass(at)))
    }

    /// Refuses ids that an embedding of so many rows does not have.
    ///
    /// # Errors
    /// One of the micro-batches holds one.
    pub fn check(&self, vocabulary: usize) -> Result<(), DataError> {
        self.micro_batches.iter().try_for_each(|batch| batch.check(vocabulary))
    }

    /// Real input tokens of each row.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.micro_batches.iter().flat_map(|batch| batch.lengths.iter().copied())
    }

    /// Real input tokens, over all micro-batches.
    pub fn tokens(&self) -> u64 {
        self.micro_batches.iter().map(Batch::tokens).sum()
    }
}

impl Windows {
    /// Starts at a cursor; [`Cursor::default`] is the beginning of the run.
    ///
    /// # Errors
    /// The cursor lies beyond the end of an epoch: the text is not the one it was written for.
    pub fn new(dataset: Dataset, config: &Config, cursor: Cursor) -> Result<Self, DataError> {
        let sequences = dataset.train_sequences();
        if cursor.position > sequences {
            return Err(DataError::Cursor { position: cursor.position, sequences });
        }
        let cursor = cursor.advanced(0, sequences);
        let (train, shuffle) = (&config.train, config.data.shuffle);
        Ok(Self {
            micro_batch: train.micro_batch.max(1),
            accumulate: train.accumulate.max(1),
            seed: train.seed,
            shuffle,
            epochs: if train.max_updates.is_some() { None } else { train.epochs },
            order: Order::of_epoch(shuffle, train.seed, cursor.epoch, sequences),
            cursor,
            dataset,
        })
    }

    /// Where the stream stands: the first sequence of the next window.
    pub const fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The next window; `None` after the last epoch, and when the data can no longer be read ([`Dataset::fault`]).
    pub fn next_window(&mut self) -> Option<Window> {
        let sequences = self.dataset.train_sequences();
        let full = self.micro_batch.saturating_mul(self.accumulate) as u64;
        let rows = match self.epochs {
            Some(epochs) if self.cursor.epoch >= epochs => return None,
            Some(_) => full.min(sequences - self.cursor.position),
            None => full,
        };
        let drawn: Vec<u64> = (0..rows).map(|_| self.draw(sequences)).collect();
        let micro_batches: Vec<Batch> =
            drawn.chunks(self.micro_batch).map(|part| self.dataset.batch(part)).collect();
        // A batch could not be read: the data ends here, and the data set says why.
        self.dataset.fault().ok()?;
        let target_count = micro_batches.iter().map(|batch| batch.target_count).sum();
        Some(Window { micro_batches, target_count, after: self.cursor })
    }

    fn draw(&mut self, sequences: u64) -> u64 {
        if !self.order.serves(self.cursor.epoch) {
            self.order = Order::of_epoch(self.shuffle, self.seed, self.cursor.epoch, sequences);
        }
        let sequence = self.order.at(self.cursor.position);
        self.cursor = self.cursor.advanced(1, sequences);
        sequence
    }
}

impl Iterator for Windows {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        self.next_window()
    }
}

/// Updates of the whole run: `train.max_updates`, or the windows of all epochs.
pub fn total_updates(config: &Config, dataset: &Dataset) -> u64 {
    let train = &config.train;
    train.max_updates.unwrap_or_else(|| {
        let micro_batches = dataset.train_sequences().div_ceil(train.micro_batch.max(1) as u64);
        micro_batches.div_ceil(train.accumulate.max(1) as u64) * train.epochs.unwrap_or(1)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{config::Layers, data::Corpus};

    /// A data set of exactly so many sequences of 4 targets, the last of them one target long.
    pub(crate) fn dataset(sequences: usize) -> Dataset {
        let mut corpus = Corpus::new("test");
        let text: String =
            (0..(sequences - 1) * 4 + 1).map(|place| char::from(b'A' + (place % 53) as u8)).collect();
        corpus.push(text.as_bytes());
        Dataset::from_corpus(corpus, 0.0, 4).unwrap()
    }

    pub(crate) fn config(settings: &[&str]) -> Config {
        let base = ["train.seq_len=4", "data.validation_fraction=0", "schedule.warmup_updates=0"];
        let layers = Layers::new().with_assignments(base).unwrap().with_assignments(settings).unwrap();
        layers.resolve().unwrap().config
    }

    fn rows(window: &Window) -> Vec<Vec<i32>> {
        let batches = window.micro_batches.iter();
        batches.flat_map(|batch| (0..batch.rows).map(|row| batch.row(row).0.to_vec())).collect()
    }

    fn shape(window: &Window) -> Vec<usize> {
        window.micro_batches.iter().map(|batch| batch.rows).collect()
    }

    #[test]
    fn epochs_end_with_a_short_window() {
        let dataset = dataset(13);
        assert_eq!(dataset.train_sequences(), 13);
        let config = config(&["train.epochs=2", "train.micro_batch=2", "train.accumulate=4"]);
        let windows: Vec<Window> =
            Windows::new(dataset.clone(), &config, Cursor::default()).unwrap().collect();
        let shapes: Vec<Vec<usize>> = windows.iter().map(shape).collect();
        assert_eq!(shapes, [vec![2; 4], vec![2, 2, 1], vec![2; 4], vec![2, 2, 1]]);
        assert_eq!(total_updates(&config, &dataset), 4);
        assert_eq!(windows[1].after, Cursor { epoch: 1, position: 0 });
        assert_eq!(windows[3].after, Cursor { epoch: 2, position: 0 });
        // 12 full sequences and one of a single target, in each epoch.
        assert_eq!(windows.iter().map(|window| window.target_count).sum::<u64>(), 2 * (12 * 4 + 1));
    }

    #[test]
    fn updates_are_full_windows_over_the_edge_of_an_epoch() {
        let config = config(&["train.max_updates=5", "train.micro_batch=2", "train.accumulate=4"]);
        let dataset = dataset(13);
        let windows: Vec<Window> =
            Windows::new(dataset.clone(), &config, Cursor::default()).unwrap().take(5).collect();
        assert!(windows.iter().all(|window| shape(window) == [2; 4]));
        assert_eq!(windows[1].after, Cursor { epoch: 1, position: 3 });
        assert_eq!(total_updates(&config, &dataset), 5);
        // Each of the first three epochs holds every sequence once.
        let drawn: Vec<Vec<i32>> = windows.iter().flat_map(rows).collect();
        let mut first: Vec<Vec<i32>> = drawn[..13].to_vec();
        let mut second: Vec<Vec<i32>> = drawn[13..26].to_vec();
        assert_ne!(first, second);
        first.sort();
        second.sort();
        assert_eq!(first, second);
        first.dedup();
        assert_eq!(first.len(), 13);
    }

    #[test]
    fn natural_order_without_shuffling() {
        let config = config(&["train.epochs=1", "train.micro_batch=5", "data.shuffle=false"]);
        let dataset = dataset(13);
        let windows = Windows::new(dataset.clone(), &config, Cursor::default()).unwrap();
        let drawn: Vec<Vec<i32>> = windows.flat_map(|window| rows(&window)).collect();
        let all: Vec<u64> = (0..13).collect();
        let expected = dataset.batch(&all);
        assert_eq!(drawn, (0..13).map(|row| expected.row(row).0.to_vec()).collect::<Vec<_>>());
    }

    #[test]
    fn a_cursor_beyond_the_text_is_refused() {
        let config = config(&["train.max_updates=5"]);
        let error = Windows::new(dataset(13), &config, Cursor { epoch: 0, position: 14 }).unwrap_err();
        assert!(error.to_string().contains("sequence 14") && error.to_string().contains("13 sequences"));
    }

    proptest! {
        #[test]
        fn micro_batches_do_not_change_which_rows_an_update_sees(
            sequences in 2usize..60, epochs: bool, seed in 0u32..100,
        ) {
            let dataset = dataset(sequences);
            let length = if epochs { "train.epochs=2" } else { "train.max_updates=9" };
            let drawn = |micro: usize, accumulate: usize| -> Vec<(Vec<Vec<i32>>, u64, Cursor)> {
                let config = config(&[
                    length,
                    &format!("train.seed={seed}"),
                    &format!("train.micro_batch={micro}"),
                    &format!("train.accumulate={accumulate}"),
                ]);
                let windows = Windows::new(dataset.clone(), &config, Cursor::default()).unwrap();
                let total = total_updates(&config, &dataset) as usize;
                let windows: Vec<Window> = windows.take(50).collect();
                if epochs {
                    assert_eq!(windows.len(), total.min(50));
                }
                windows.iter().map(|window| (rows(window), window.target_count, window.after)).collect()
            };
            let one = drawn(1, 8);
            prop_assert_eq!(&one, &drawn(4, 2));
            prop_assert_eq!(&one, &drawn(8, 1));
        }

        #[test]
        fn a_cursor_goes_on_where_it_stopped(
            sequences in 2usize..40, epochs: bool, stop in 0usize..12, micro in 1usize..4, accumulate in 1usize..4,
        ) {
            let length = if epochs { "train.epochs=3" } else { "train.max_updates=99" };
            let config = config(&[
                length,
                &format!("train.micro_batch={micro}"),
                &format!("train.accumulate={accumulate}"),
            ]);
            let dataset = dataset(sequences);
            let all: Vec<Window> =
                Windows::new(dataset.clone(), &config, Cursor::default()).unwrap().take(24).collect();
            if stop < all.len() {
                let cursor = all[stop].after;
                let rest: Vec<Window> =
                    Windows::new(dataset, &config, cursor).unwrap().take(23 - stop).collect();
                prop_assert_eq!(&rest[..], &all[stop + 1..]);
            }
        }
    }
}
