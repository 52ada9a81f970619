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
    tokenizer::{Choice, Encoder, LOOKED_AT, Ready},
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
                let content = examples.content(&choice.identity(), fraction);
                Self::rows(&examples, model.num_labels, &encoder, fraction, config.train.seq_len, content)
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
        let mut report = DataReport {
            source: corpus.source.clone(),
            documents: corpus.documents() as u64,
            bytes: corpus.bytes(),
            ..DataReport::default()
        };
        let (train, validation) = split(corpus.text, &corpus.ends, validation_fraction);
        let store = store.filter(|_| !matches!(choice, Choice::Bytes));
        let key = store::key([choice.identity().as_bytes(), &train, &validation]);
        report.content.clone_from(&key);
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
        report.notes.extend(encoder.unknown_of(&train[..train.len().min(LOOKED_AT)]));
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
        content: String,
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
            notes: encoder.unknown_of(examples.beginning(LOOKED_AT).as_bytes()).into_iter().collect(),
            content,
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
mod tests;
