//! The micro-batches of one update at a time.

use super::{Batch, Cursor, DataError, Dataset, cursor::Order};
use crate::config::Config;

/// All micro-batches of one update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub micro_batches: Vec<Batch>,
    /// Targets that count, over all micro-batches: what the summed gradient is divided by.
    pub target_tokens: u64,
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

    /// The next window; `None` after the last epoch.
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
        let target_tokens = micro_batches.iter().map(|batch| batch.target_tokens).sum();
        Some(Window { micro_batches, target_tokens, after: self.cursor })
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
