//! The data of a run: text cut into sequences for a language model, labelled rows for a classification.

use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use super::{
    Batch, Corpus, DataError, Progress, bpe, encode,
    labelled::{Classes, Examples},
    own,
    rows::{self, Parts, Rows},
    split::split,
    store::{self, Store},
    text::{self, Limits, Opened, Wanted},
    tokenizer::{Choice, Encoder, Ready},
    tokens::Tokens,
};
use crate::{
    config::{Config, Source, Task},
    protocol::DataReport,
};

/// What a run learns from, cut into sequences: pieces of text, or the rows of a classification. Cloning it shares
/// the data.
#[derive(Debug, Clone)]
pub struct Dataset(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    train: Part,
    validation: Part,
    seq_len: usize,
    report: DataReport,
    /// Writes ids as text again; a task makes batches without one.
    encoder: Option<Encoder>,
    /// Why tokens on the disk could not be read, once that has happened.
    fault: OnceLock<DataError>,
}

/// What is trained on, or what is held out.
#[derive(Debug)]
enum Part {
    Stream(Tokens),
    Rows(Rows),
    Own(OwnPart),
}

/// The examples of a task that are trained on, or those that are held out.
struct OwnPart {
    examples: Arc<dyn own::Examples>,
    held_out: bool,
}

impl std::fmt::Debug for OwnPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnPart").field("held_out", &self.held_out).finish_non_exhaustive()
    }
}

impl Part {
    fn batch(&self, seq_len: usize, sequences: impl Iterator<Item = u64>) -> io::Result<Batch> {
        match self {
            Self::Stream(tokens) => Batch::cut(tokens, seq_len, sequences),
            Self::Rows(rows) => Ok(rows.batch(sequences)),
            Self::Own(part) => Ok(own::batch(&*part.examples, part.held_out, sequences)),
        }
    }
}

impl Inner {
    /// A batch of one part; one without rows, and a fault, when it cannot be read.
    fn batch(&self, part: &Part, sequences: impl Iterator<Item = u64>) -> Batch {
        part.batch(self.seq_len, sequences).unwrap_or_else(|error| {
            let (path, problem) = (self.report.source.clone(), error.to_string());
            self.fault.get_or_init(|| DataError::Tokens { path, problem });
            Batch::nothing(self.seq_len)
        })
    }
}

impl Dataset {
    /// Reads or generates what the configuration names.
    ///
    /// # Errors
    /// Text, labels or a tokenizer that are missing, unreadable or unsuitable: see [`DataError`].
    pub fn open(config: &Config) -> Result<Self, DataError> {
        Self::open_watched(config, &mut |_| ())
    }

    /// The same; `watch` is told how far it is, a few times a second at least while text is read and tokenized.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_watched(config: &Config, watch: &mut dyn FnMut(Progress)) -> Result<Self, DataError> {
        Self::open_with(config, Store::from_env().as_ref(), Limits::default(), watch)
    }

    /// The same; tokens of long texts are kept in that folder instead of the one that the environment names.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_kept_in(
        config: &Config,
        folder: &Path,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Self, DataError> {
        Self::open_with(config, Some(&Store::at(folder.to_owned(), store::LIMIT)), Limits::default(), watch)
    }

    /// The same with this store.
    pub(super) fn open_with(
        config: &Config,
        store: Option<&Store>,
        limits: Limits,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Self, DataError> {
        let (data, model) = (&config.data, &config.model);
        let path = || data.path.as_ref().map(Path::new);
        let choice = Choice::of(&data.tokenizer)?;
        let fraction = data.validation_fraction;
        match model.arch.task() {
            Task::LanguageModel => match (data.source, path()) {
                (Source::Path, Some(path)) => {
                    let wanted = Wanted {
                        path,
                        field: &data.field,
                        tokenizer: &choice,
                        fraction,
                        vocab_size: model.vocab_size,
                    };
                    Self::opened(text::open(&wanted, store, limits, watch)?, config.train.seq_len)
                }
                (Source::Path, None) => Err(DataError::Missing { path: "(not set)".to_owned() }),
                (Source::Stories, _) => Self::streams(
                    Corpus::stories()?,
                    &choice,
                    store,
                    model.vocab_size,
                    fraction,
                    config.train.seq_len,
                ),
                (Source::SentencePairs, _) => {
                    Err(DataError::WrongSource { given: "sentence-pairs", instead: "\"stories\"" })
                }
            },
            Task::Own => Ok(Self::examples(config.model.name(), &own::open(config)?)),
            Task::Classification => {
                // Whatever is wrong with a tokenizer is told before a long table is read.
                let ready = choice.ready()?;
                if let Ready::Now(encoder) = &ready {
                    encoder.fits(Task::Classification, model.vocab_size)?;
                    encoder.marks_rows()?;
                }
                let examples = match (data.source, path()) {
                    (Source::Path, Some(path)) => Examples::read(path, &data.columns, watch)?,
                    (Source::Path, None) => {
                        return Err(DataError::MissingTable { path: "(not set)".to_owned() });
                    }
                    (Source::SentencePairs, _) => Examples::pairs(),
                    (Source::Stories, _) => {
                        return Err(DataError::WrongSource {
                            given: "stories",
                            instead: "\"sentence-pairs\"",
                        });
                    }
                };
                let encoder = match ready {
                    Ready::Now(encoder) => encoder,
                    Ready::Learn(size) => {
                        let long = examples.bytes() >= limits.kept_from as u64;
                        rows::learnt(size, &examples, fraction, store.filter(|_| long))?
                    }
                };
                Self::rows(&examples, model.num_labels, &encoder, fraction, config.train.seq_len)
            }
        }
    }

    /// Splits a corpus and cuts its bytes into sequences of `seq_len` targets.
    ///
    /// # Errors
    /// Fewer than `seq_len + 1` tokens are left to train on.
    pub fn from_corpus(corpus: Corpus, validation_fraction: f64, seq_len: usize) -> Result<Self, DataError> {
        Self::streams(corpus, &Choice::Bytes, None, usize::MAX, validation_fraction, seq_len)
    }

    /// A text in memory.
    fn streams(
        corpus: Corpus,
        choice: &Choice,
        store: Option<&Store>,
        vocab_size: usize,
        validation_fraction: f64,
        seq_len: usize,
    ) -> Result<Self, DataError> {
        let report = DataReport {
            source: corpus.source.clone(),
            documents: corpus.documents() as u64,
            bytes: corpus.bytes(),
            ..DataReport::default()
        };
        let (train, validation) = split(corpus.text, &corpus.ends, validation_fraction);
        let store = store.filter(|_| !matches!(choice, Choice::Bytes));
        let key = store
            .map_or_else(String::new, |_| store::key(&[choice.identity().as_bytes(), &train, &validation]));
        let encoder = match choice.ready()? {
            Ready::Now(encoder) => encoder,
            Ready::Learn(size) => bpe::kept_or_learnt(size, store, &key, || {
                bpe::learn(size, Task::LanguageModel, |pupil| {
                    encode::each_document(&train, &mut |text| {
                        pupil.read(text);
                        Ok(())
                    })
                })
            })?,
        };
        encoder.fits(Task::LanguageModel, vocab_size)?;
        encoder.ends_documents(report.documents)?;
        let (train, validation) = encode::kept_or_made(store, &key, &encoder, [train, validation])?;
        Self::opened(Opened { train, validation, report, encoder }, seq_len)
    }

    /// Cuts both streams into sequences.
    fn opened(opened: Opened, seq_len: usize) -> Result<Self, DataError> {
        let seq_len = seq_len.max(1);
        let Opened { train, validation, mut report, encoder } = opened;
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
        Ok(Self::of(Part::Stream(train), Part::Stream(validation), seq_len, report, encoder))
    }

    fn of(
        train: Part,
        validation: Part,
        seq_len: usize,
        report: DataReport,
        encoder: impl Into<Option<Encoder>>,
    ) -> Self {
        let (encoder, fault) = (encoder.into(), OnceLock::new());
        Self(Arc::new(Inner { train, validation, seq_len, report, encoder, fault }))
    }

    fn rows(
        examples: &Examples,
        num_labels: usize,
        encoder: &Encoder,
        validation_fraction: f64,
        seq_len: usize,
    ) -> Result<Self, DataError> {
        let classes = Classes::of(examples, num_labels)?;
        let parts = Parts::of(examples, &classes, encoder, validation_fraction, seq_len)?;
        let mut report = DataReport {
            source: examples.source.clone(),
            documents: examples.rows.len() as u64,
            bytes: examples.bytes(),
            train_tokens: parts.train.tokens(),
            train_sequences: parts.train.len(),
            validation_tokens: parts.validation.tokens(),
            validation_sequences: parts.validation.len(),
            left_out: examples.left_out.counts.clone(),
            left_out_named: examples.left_out.named.clone(),
            labels: classes.names,
        };
        if parts.truncated > 0 {
            report
                .left_out
                .insert(format!("ends of rows truncated to train.seq_len = {seq_len}"), parts.truncated);
        }
        Ok(Self::of(Part::Rows(parts.train), Part::Rows(parts.validation), seq_len, report, encoder.clone()))
    }

    fn examples(source: &str, examples: &Arc<dyn own::Examples>) -> Self {
        let part = |held_out| Part::Own(OwnPart { examples: Arc::clone(examples), held_out });
        let (train, validation) = (examples.count(false), examples.count(true));
        let report = DataReport {
            source: source.to_owned(),
            documents: train + validation,
            train_tokens: train,
            train_sequences: train,
            validation_tokens: validation,
            validation_sequences: validation,
            ..DataReport::default()
        };
        Self::of(part(false), part(true), 1, report, None)
    }

    /// What was read, how it was split, and what was left out.
    pub fn report(&self) -> &DataReport {
        &self.0.report
    }

    /// Target tokens in one sequence; of a classification the most tokens of a row.
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

    /// The text of ids as far as they are one: what is no UTF-8, and an id that the tokenizer does not know, is U+FFFD
    /// or missing. The end of a document is written as `<end>`, or as the tokenizer's own mark.
    pub fn decode(&self, ids: &[i32]) -> String {
        self.0.encoder.as_ref().map_or_else(String::new, |encoder| encoder.decode(ids))
    }

    /// The given training sequences, one a row, in the given order. A batch without rows when they cannot be read: then
    /// [`Self::fault`] says why.
    pub fn batch(&self, sequences: &[u64]) -> Batch {
        self.0.batch(&self.0.train, sequences.iter().copied())
    }

    /// Why a batch could not be read: tokens on the disk can be lost while they are in use. It stays once it has come.
    ///
    /// # Errors
    /// A batch could not be read.
    pub fn fault(&self) -> Result<(), DataError> {
        self.0.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Held-out sequences in batches of `micro_batch` rows (the last may have fewer): all rows of a classification;
    /// of a text all sequences, or `limit_sequences` spread evenly over it. The same ones in the same order every time;
    /// fewer when they cannot be read: then [`Self::fault`] says why.
    pub fn validation_batches(
        &self,
        micro_batch: usize,
        limit_sequences: usize,
    ) -> impl Iterator<Item = Batch> + use<> {
        let inner = Arc::clone(&self.0);
        let rows = micro_batch.max(1) as u64;
        let all = inner.report.validation_sequences;
        let wanted = match &inner.validation {
            Part::Stream(_) => all.min(limit_sequences as u64),
            Part::Rows(_) | Part::Own(_) => all,
        };
        (0..wanted.div_ceil(rows)).map_while(move |batch| {
            let places = batch * rows..((batch + 1) * rows).min(wanted);
            let sequences =
                places.map(|place| (u128::from(place) * u128::from(all) / u128::from(wanted)) as u64);
            let batch = inner.batch(&inner.validation, sequences);
            inner.fault.get().is_none().then_some(batch)
        })
    }
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
    fn what_is_made_of_the_stories_is_made_once() {
        use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

        let settings = ["data.tokenizer=bpe:300", "model.vocab_size=300"];
        let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let dataset = Dataset::open_kept_in(&config, folder.path(), &mut |_| ()).unwrap();
            (dataset.batch(&[0, 7, 700]), dataset.report().clone())
        };
        let kept = |kind: &str| -> PathBuf {
            let all: Vec<PathBuf> =
                fs::read_dir(folder.path().join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(all.len(), 1, "{all:?}");
            all[0].clone()
        };
        let first = open();
        let numbers = || [kept("vocabularies"), kept("tokens")].map(|path| path.metadata().unwrap().ino());
        let before = numbers();
        assert_eq!((open(), numbers()), (first.clone(), before));
        // Torn: made again, and the same.
        fs::write(kept("vocabularies"), "\"{").unwrap();
        fs::write(kept("tokens").join("train"), "torn").unwrap();
        assert_eq!(open(), first);
        assert_ne!(numbers()[0], before[0]);
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
