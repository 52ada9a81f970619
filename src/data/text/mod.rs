//! Texts that people bring: files and folders, packed or not, longer than memory or not.
//!
//! ```text
//! listing     which files a path names, and a stamp of their names, sizes and times
//! kind        which files of a folder are read
//! unpack      a file as the bytes it holds: plain, gzip, zstd
//! chunks      the same as text that has been checked, piece by piece
//! documents   the documents of one file: the whole of it, or its rows
//! lines       rows that are one JSON object a line
//! delimited   rows of a .csv or .tsv file
//! scan        the first pass, which checks, counts and weighs; the passes after it, which know what is held out
//! ```
//!
//! A short text stays in memory. Of a longer one the tokens are written to the store once and read from there window by
//! window: neither the text nor its tokens are ever in memory as a whole.

pub(super) mod chunks;
mod delimited;
mod documents;
pub(super) mod kind;
mod lines;
pub(super) mod listing;
pub(super) mod scan;
pub(super) mod unpack;

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    DataError, Stage, bpe,
    encode::{Stream, in_memory, unwritable},
    split::{Split, split},
    store::{Store, key},
    tokenizer::{Choice, Encoder, Ready},
    tokens::Tokens,
};
use crate::{config::Task, protocol::DataReport};

use listing::Listing;
use scan::{Scan, Side};

/// Changes with what becomes of a text.
const VERSION: u32 = 1;
/// Changes with what is said of a text, which is kept beside its tokens.
const SAID: u32 = 2;

/// Bytes of text that teach a vocabulary at most: more would change little, and all its words are in memory meanwhile.
const TEACHES: usize = 32 << 20;

/// A text and what to make of it.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) path: &'a Path,
    /// What holds the text in rows.
    pub(super) field: &'a str,
    pub(super) tokenizer: &'a Choice,
    pub(super) fraction: f64,
    pub(super) vocab_size: usize,
}

/// From which size on things are done otherwise, in bytes of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Longer texts are not held in memory.
    pub(super) in_memory: usize,
    /// The tokens of longer texts are kept, where making them takes time.
    pub(super) kept_from: usize,
    /// Seconds in which a file may change twice under one time.
    pub(super) moment: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_memory: 32 << 20, kept_from: 1 << 20, moment: 2 }
    }
}

/// Both streams, and what is said about them; the counts of tokens are not in it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) train: Tokens,
    pub(super) validation: Tokens,
    pub(super) report: DataReport,
    pub(super) encoder: Encoder,
}

/// What is kept of a path whose files have not changed.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Key of the tokens.
    tokens: String,
    report: DataReport,
}

/// Opens a text.
///
/// # Errors
/// What is wrong with the path, a file, a row, the tokenizer or the disk.
pub(super) fn open(
    wanted: &Wanted<'_>,
    store: Option<&Store>,
    limits: Limits,
    watch: &mut scan::Watch<'_>,
) -> Result<Opened, DataError> {
    let listing = Listing::of(wanted.path)?;
    let settings = format!("{VERSION} {} {:x}", wanted.tokenizer.identity(), wanted.fraction.to_bits());
    let place = std::path::absolute(wanted.path).unwrap_or_else(|_| wanted.path.to_owned());
    let text_key = key([
        &listing.stamp[..],
        place.as_os_str().as_encoded_bytes(),
        wanted.field.as_bytes(),
        settings.as_bytes(),
        &SAID.to_le_bytes(),
    ]);
    if let Some(opened) = store.and_then(|store| kept(store, wanted.tokenizer, &text_key)) {
        opened.encoder.fits(Task::LanguageModel, wanted.vocab_size)?;
        return Ok(Opened { report: DataReport { source: listing.name(), ..opened.report }, ..opened });
    }
    // Whatever is wrong with a tokenizer is told before a long text is read.
    let ready = wanted.tokenizer.ready()?;
    if let Ready::Now(encoder) = &ready {
        encoder.fits(Task::LanguageModel, wanted.vocab_size)?;
    }
    let trusted_after = listing.youngest.saturating_add(limits.moment);
    let scan = Scan::of(listing, wanted.field, limits.in_memory, watch)?;
    let mut report = DataReport {
        source: scan.listing.name(),
        documents: scan.ends.len() as u64,
        bytes: (scan.length() - scan.ends.len()) as u64,
        left_out: scan.left_out.counts.clone(),
        left_out_named: scan.left_out.named.clone(),
        ..DataReport::default()
    };
    let every = one_in(wanted.tokenizer, scan.length());
    if every > 1 {
        report.notes.push(format!(
            "the vocabulary was learnt from one document in {every} of {} MiB of text, which is all trained on",
            scan.length() >> 20
        ));
    }
    if let Ready::Now(encoder) = &ready {
        report.notes.extend(encoder.unknown_of(&scan.beginning));
    }
    let tokens_key = key([&scan.digest[..], settings.as_bytes()]);
    report.content.clone_from(&tokens_key);
    let takes_time = !matches!(wanted.tokenizer, Choice::Bytes) && scan.length() >= limits.kept_from;
    let store = store.filter(|_| takes_time || scan.text.is_none());
    let remember = |store: &Store| {
        // Younger files may change again under the same times.
        if jiff::Timestamp::now().as_second() > trusted_after {
            store.keep("texts", &text_key, &Kept { tokens: tokens_key.clone(), report: report.clone() });
        }
    };
    if let Some(store) = store
        && let Some((train, validation)) = store.tokens(&tokens_key)
        && let Some(encoder) = known(store, &ready, &tokens_key)
    {
        remember(store);
        encoder.fits(Task::LanguageModel, wanted.vocab_size)?;
        return Ok(Opened { train, validation, report, encoder });
    }
    let parts = Split::of(&scan.ends, wanted.fraction);
    let encoder = match ready {
        Ready::Now(encoder) => encoder,
        Ready::Learn(size) => {
            bpe::kept_or_learnt(size, store, &tokens_key, || learnt(size, every, &scan, &parts, watch))?
        }
    };
    encoder.fits(Task::LanguageModel, wanted.vocab_size)?;
    encoder.ends_documents(report.documents)?;
    if let Some(store) = store {
        match written(&encoder, &scan, &parts, store, &tokens_key, watch) {
            Ok((train, validation)) => {
                store.tidy(&tokens_key);
                remember(store);
                return Ok(Opened { train, validation, report, encoder });
            }
            // The store saves time; where there is none, a short text does without.
            Err(DataError::Unwritable { .. }) if scan.text.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    let Scan { text, ends, .. } = scan;
    let Some(text) = text else {
        return Err(DataError::NoStore { path: report.source });
    };
    let (train, validation) = split(text, &ends, wanted.fraction);
    let (train, validation) = (in_memory(&encoder, train)?, in_memory(&encoder, validation)?);
    Ok(Opened { train, validation, report, encoder })
}

/// The tokens of files that have not changed since, with what writes them as text.
fn kept(store: &Store, choice: &Choice, text_key: &str) -> Option<Opened> {
    let kept: Kept = store.get("texts", text_key)?;
    let (train, validation) = store.tokens(&kept.tokens)?;
    let encoder = known(store, &choice.ready().ok()?, &kept.tokens)?;
    let report = DataReport { content: kept.tokens, ..kept.report };
    Some(Opened { train, validation, report, encoder })
}

/// The tokenizer of tokens that are kept, without the text.
fn known(store: &Store, ready: &Ready, key: &str) -> Option<Encoder> {
    match ready {
        Ready::Now(encoder) => Some(encoder.clone()),
        Ready::Learn(size) => bpe::kept(*size, store, key),
    }
}

/// A long text teaches a vocabulary with one piece in so many, spread over all of it.
fn one_in(choice: &Choice, length: usize) -> usize {
    match choice {
        Choice::Bpe(_) => length.div_ceil(TEACHES).max(1),
        Choice::Bytes | Choice::File(_) => 1,
    }
}

/// The vocabulary that is learnt from every so manyth piece of what is trained on.
fn learnt(
    size: usize,
    every: usize,
    scan: &Scan,
    parts: &Split,
    watch: &mut scan::Watch<'_>,
) -> Result<String, DataError> {
    bpe::learn(size, Task::LanguageModel, |pupil| {
        let mut number = 0;
        scan.again(parts, Stage::Learning, watch, &mut |side, text| {
            number += usize::from(text.is_some());
            if side == Side::Train && (text.is_none() || number.is_multiple_of(every)) {
                pupil.read(text);
            }
            Ok(())
        })
    })
}

/// Writes the tokens to the store and opens them there.
fn written(
    encoder: &Encoder,
    scan: &Scan,
    parts: &Split,
    store: &Store,
    key: &str,
    watch: &mut scan::Watch<'_>,
) -> Result<(Tokens, Tokens), DataError> {
    let place = store.folder().display().to_string();
    let refused = |error: std::io::Error| unwritable(&place, &error);
    let mut pending = store.begin(key, encoder.vocabulary()).map_err(refused)?;
    let mut train = Stream::new(encoder, &mut pending.train, place.clone());
    let mut validation = Stream::new(encoder, &mut pending.validation, place.clone());
    scan.again(parts, Stage::Tokenizing, watch, &mut |side, text| {
        let stream = if side == Side::Train { &mut train } else { &mut validation };
        match text {
            Some(text) => stream.push(text),
            None => stream.end(),
        }
    })?;
    train.finish()?;
    validation.finish()?;
    pending.finish().map_err(refused)?;
    store.tokens(key).ok_or_else(|| DataError::Unwritable {
        path: place,
        problem: "what was written cannot be read".to_owned(),
    })
}

#[cfg(test)]
mod tests;
