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
            (Source::Stories | Source::SentencePairs, _) => Corpus::stories()?,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::Layers;

    fn corpus(documents: &[String]) -> Corpus {
        let mut corpus = Corpus::new("test");
        documents.iter().for_each(|document| corpus.push(document.as_bytes()));
        corpus
    }

    fn numbered(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("document {number} {}", "x".repeat(number % 7))).collect()
    }

    /// The documents in a stream.
    fn documents(tokens: &Tokens) -> Vec<String> {
        let bytes: Vec<u8> = tokens.ids(0..tokens.len()).map(|id| id as u8).collect();
        let text = String::from_utf8(bytes).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn many_documents_are_split_whole_and_disjoint() {
        let all = numbered(200);
        let (train, validation) = split(corpus(&all), 0.1);
        let (train, validation) = (documents(&train), documents(&validation));
        assert!(validation.iter().all(|document| !train.contains(document)));
        assert_eq!(train.len() + validation.len(), 200);
        assert!(all.iter().all(|document| train.contains(document) || validation.contains(document)));
        assert!((15..=25).contains(&validation.len()), "{}", validation.len());
        assert!(train.is_sorted_by_key(|document| all.iter().position(|one| one == document)));
        // Not simply the end of the text.
        assert!(train.contains(&all[199]) || train.contains(&all[198]) || train.contains(&all[197]));
    }

    #[test]
    fn a_document_larger_than_the_fraction_stays_in_training() {
        let mut all = numbered(20);
        all[3] = "y".repeat(100_000);
        let (train, validation) = split(corpus(&all), 0.05);
        assert!(documents(&train).contains(&all[3]));
        assert!(!documents(&validation).is_empty());
    }

    #[test]
    fn one_document_is_held_out_even_when_the_fraction_is_tiny() {
        let (_, validation) = split(corpus(&numbered(20)), 1e-6);
        assert_eq!(documents(&validation).len(), 1);
    }

    #[test]
    fn few_documents_hold_out_the_end_between_characters() {
        let text = "é".repeat(50);
        let (train, validation) = split(corpus(std::slice::from_ref(&text)), 0.1);
        assert_eq!(train.len() % 2, 0);
        assert_eq!(train.len() + validation.len(), 101);
        assert_eq!([documents(&train).concat(), documents(&validation).concat()].concat(), text);
        assert!((10..=12).contains(&validation.len()));
    }

    #[test]
    fn no_fraction_holds_nothing_out() {
        let dataset = Dataset::from_corpus(corpus(&numbered(30)), 0.0, 8).unwrap();
        assert_eq!(dataset.validation_sequences(), 0);
        assert_eq!(dataset.validation_batches(4, usize::MAX).count(), 0);
    }

    #[test]
    fn too_little_text_says_how_much_there_is_and_how_much_is_needed() {
        let error = Dataset::from_corpus(corpus(&["0123456789".into()]), 0.0, 64).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("test has 11 tokens") && text.contains("= 65"), "{text}");
        assert!(Dataset::from_corpus(corpus(&["0123456789".into()]), 0.0, 10).is_ok());
        assert!(Dataset::from_corpus(corpus(&["0123456789".into()]), 0.0, 11).is_err());
    }

    #[test]
    fn the_report_counts_what_the_streams_hold() {
        let config = Layers::new().resolve().unwrap().config;
        let dataset = Dataset::open(&config).unwrap();
        let report = dataset.report();
        assert_eq!(report.source, "stories");
        assert_eq!(report.bytes + report.documents, report.train_tokens + report.validation_tokens);
        assert_eq!(report.train_sequences, (report.train_tokens - 1).div_ceil(64));
        let held = report.validation_tokens as f64 / (report.bytes + report.documents) as f64;
        assert!((0.045..=0.05).contains(&held), "{held}");
    }

    #[test]
    fn validation_is_the_same_every_time_and_spread_when_limited() {
        let dataset = Dataset::from_corpus(corpus(&numbered(900)), 0.2, 32).unwrap();
        let all: Vec<Batch> = dataset.validation_batches(4, usize::MAX).collect();
        assert_eq!(all, dataset.validation_batches(4, usize::MAX).collect::<Vec<_>>());
        let targets: u64 = all.iter().map(|batch| batch.target_count).sum();
        assert_eq!(targets, dataset.report().validation_tokens - 1);

        let some: Vec<Batch> = dataset.validation_batches(4, 10).collect();
        assert_eq!(some.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [4, 4, 2]);
        let everything: Vec<Batch> = dataset.validation_batches(1, usize::MAX).collect();
        // Rows are long enough to hold the whole number of a document, so that no two are the same.
        let place = |row: &[i32]| everything.iter().position(|batch| batch.row(0).0 == row).unwrap();
        let places: Vec<usize> =
            some.iter().flat_map(|batch| (0..batch.rows).map(|row| place(batch.row(row).0))).collect();
        assert!(places.is_sorted() && places[9] > everything.len() * 8 / 10, "{places:?}");
    }

    #[test]
    fn a_missing_path_is_named() {
        let config = Layers::new().with_assignment("data.path=no/such/file.txt").unwrap();
        let error = Dataset::open(&config.resolve().unwrap().config).unwrap_err();
        assert!(error.to_string().contains("no/such/file.txt does not exist"), "{error}");
    }

    proptest! {
        #[test]
        fn sequences_give_back_the_stream(length in 9usize..200, seq_len in 2usize..9) {
            let text: String = (0..length).map(|place| char::from(b'a' + (place % 23) as u8)).collect();
            let dataset = Dataset::from_corpus(corpus(std::slice::from_ref(&text)), 0.0, seq_len).unwrap();
            let all: Vec<u64> = (0..dataset.train_sequences()).collect();
            let batch = dataset.batch(&all);
            let targets: Vec<u8> =
                batch.targets.iter().filter(|id| **id != crate::data::IGNORE).map(|id| *id as u8).collect();
            let expected: Vec<u8> = text.bytes().skip(1).chain([0]).collect();
            prop_assert_eq!(targets, expected);
            prop_assert_eq!(batch.target_count, length as u64);
            prop_assert_eq!(batch.lengths.iter().sum::<usize>(), length);
            prop_assert_eq!(batch.inputs.len(), all.len() * seq_len);
        }
    }
}
