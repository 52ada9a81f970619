//! Documents become a training and a validation stream, and streams become sequences.

use std::{path::Path, sync::Arc};

use super::{Batch, Corpus, DataError, corpus, random, tokens::Tokens};
use crate::{
    config::{Config, Source},
    protocol::DataReport,
};

/// From this many documents on, whole documents are held out; with fewer, the end of the text is.
pub const SPLIT_BY_DOCUMENT: usize = 20;

/// The text of a run, cut into sequences. Cloning it shares the text.
#[derive(Debug, Clone)]
pub struct Dataset(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    train: Tokens,
    validation: Tokens,
    seq_len: usize,
    report: DataReport,
}

impl Dataset {
    /// Reads or generates the text that the configuration names.
    ///
    /// # Errors
    /// Text that is missing, unreadable, no UTF-8, or shorter than one sequence.
    pub fn open(config: &Config) -> Result<Self, DataError> {
        let corpus = match (config.data.source, &config.data.path) {
            (Source::Path, Some(path)) => corpus::read(Path::new(path))?,
            (Source::Path, None) => return Err(DataError::Missing { path: "(not set)".to_owned() }),
            (Source::Stories, _) => Corpus::stories(),
        };
        Self::from_corpus(corpus, config.data.validation_fraction, config.train.seq_len)
    }

    /// Splits a corpus and cuts it into sequences of `seq_len` targets.
    ///
    /// # Errors
    /// Fewer than `seq_len + 1` tokens are left to train on.
    pub fn from_corpus(corpus: Corpus, validation_fraction: f64, seq_len: usize) -> Result<Self, DataError> {
        let seq_len = seq_len.max(1);
        let mut report = DataReport {
            source: corpus.source.clone(),
            documents: corpus.documents() as u64,
            bytes: corpus.bytes(),
            left_out: corpus.left_out.clone(),
            ..DataReport::default()
        };
        let (train, validation) = split(corpus, validation_fraction);
        report.train_tokens = train.len() as u64;
        report.train_sequences = train.sequences(seq_len);
        report.validation_tokens = validation.len() as u64;
        report.validation_sequences = validation.sequences(seq_len);
        if train.len() <= seq_len {
            return Err(DataError::TooShort {
                source_name: report.source,
                tokens: train.len() as u64,
                held_out: validation.len() as u64,
                needed: seq_len as u64 + 1,
            });
        }
        Ok(Self(Arc::new(Inner { train, validation, seq_len, report })))
    }

    /// What was read, how it was split, and what was left out.
    pub fn report(&self) -> &DataReport {
        &self.0.report
    }

    /// Target tokens in one sequence.
    pub fn seq_len(&self) -> usize {
        self.0.seq_len
    }

    /// Sequences of one epoch; at least 1.
    pub fn train_sequences(&self) -> u64 {
        self.0.report.train_sequences
    }

    /// Sequences held out; 0 when `data.validation_fraction` is 0.
    pub fn validation_sequences(&self) -> u64 {
        self.0.report.validation_sequences
    }

    /// The given training sequences, one a row, in the given order.
    pub fn batch(&self, sequences: &[u64]) -> Batch {
        Batch::cut(&self.0.train, self.0.seq_len, sequences.iter().copied())
    }

    /// Held-out sequences in batches of `micro_batch` rows (the last may have fewer): all of them, or
    /// `limit_sequences` spread evenly over the held-out text. The same ones in the same order every time.
    pub fn validation_batches(
        &self,
        micro_batch: usize,
        limit_sequences: usize,
    ) -> impl Iterator<Item = Batch> + use<> {
        let inner = Arc::clone(&self.0);
        let rows = micro_batch.max(1) as u64;
        let all = inner.report.validation_sequences;
        let wanted = all.min(limit_sequences as u64);
        (0..wanted.div_ceil(rows)).map(move |batch| {
            let places = batch * rows..((batch + 1) * rows).min(wanted);
            let sequences =
                places.map(|place| (u128::from(place) * u128::from(all) / u128::from(wanted)) as u64);
            Batch::cut(&inner.validation, inner.seq_len, sequences)
        })
    }
}

/// The training and the validation stream, which share no token.
fn split(corpus: Corpus, fraction: f64) -> (Tokens, Tokens) {
    let mut text = corpus.text;
    let held_out = if fraction <= 0.0 {
        Vec::new()
    } else if corpus.ends.len() >= SPLIT_BY_DOCUMENT {
        take_documents(&mut text, &corpus.ends, fraction)
    } else {
        let wanted = ((text.len() as f64 * fraction).round() as usize).max(2);
        let mut cut = text.len().saturating_sub(wanted);
        // Never inside a character.
        while cut > 0 && text.get(cut).is_some_and(|byte| byte & 0xC0 == 0x80) {
            cut -= 1;
        }
        text.split_off(cut)
    };
    (Tokens::from_bytes(text), Tokens::from_bytes(held_out))
}

/// Moves whole documents out of the text until their bytes make up the fraction: in the order of a hash of
/// their number, passing over those that would exceed it. At least one document is held out.
fn take_documents(text: &mut Vec<u8>, ends: &[usize], fraction: f64) -> Vec<u8> {
    let wanted = (text.len() as f64 * fraction).round() as usize;
    let size = |document: usize| ends[document] - if document == 0 { 0 } else { ends[document - 1] };
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(|document| random::mix(*document as u64));
    let mut chosen = vec![false; ends.len()];
    let mut held = 0;
    for document in &order {
        if held + size(*document) <= wanted {
            held += size(*document);
            chosen[*document] = true;
        }
    }
    if held == 0
        && let Some(smallest) = order.iter().copied().min_by_key(|document| size(*document))
    {
        held = size(smallest);
        chosen[smallest] = true;
    }

    let mut held_out = Vec::with_capacity(held);
    let (mut start, mut kept) = (0, 0);
    for (end, chosen) in ends.iter().zip(chosen) {
        if chosen {
            held_out.extend_from_slice(&text[start..*end]);
        } else {
            text.copy_within(start..*end, kept);
            kept += end - start;
        }
        start = *end;
    }
    text.truncate(kept);
    held_out
}
