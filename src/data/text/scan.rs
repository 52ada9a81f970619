//! The first pass over a text, which checks, counts and weighs it, and the passes after it, which know what is held out.

use sha2::{Digest, Sha256};

use super::{
    super::{DataError, Progress, Stage, encode::each_document, split::Split, tokenizer::LOOKED_AT},
    documents::{self, Sink},
    listing::{LeftOut, Listing},
    unpack::Meter,
};

/// Bytes read between two words about progress.
const TOLD_EVERY: u64 = 1 << 20;

/// Bytes of a piece of what is in memory, at most.
const PIECE: usize = 1 << 16;

/// Told how far things are.
pub(in crate::data) type Watch<'a> = dyn FnMut(Progress) + 'a;

/// Takes pieces of documents by sides, and nothing where a document ends.
pub(in crate::data) type Hand<'a> = dyn FnMut(Side, Option<&str>) -> Result<(), DataError> + 'a;

/// What the first pass found.
#[derive(Debug)]
pub(in crate::data) struct Scan {
    pub(in crate::data) listing: Listing,
    /// The files that hold text.
    accepted: Vec<bool>,
    /// Where each document ends, behind its separator.
    pub(in crate::data) ends: Vec<usize>,
    /// All documents, each with its separator, when they are few.
    pub(in crate::data) text: Option<Vec<u8>>,
    /// The first of them, as much as a tokenizer is tried on.
    pub(in crate::data) beginning: Vec<u8>,
    /// SHA-256 of the same.
    pub(in crate::data) digest: [u8; 32],
    pub(in crate::data) left_out: LeftOut,
    field: String,
}

/// What is learnt from, or what is held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Side {
    Train,
    Validation,
}

impl Scan {
    /// Reads all files; their text stays in memory up to `keep` bytes.
    ///
    /// # Errors
    /// A file that is damaged, a row that is wrong, no text at all; a single file that is no text.
    pub(in crate::data) fn of(
        listing: Listing,
        field: &str,
        keep: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Self, DataError> {
        let mut left_out = listing.left_out.clone();
        let mut gather = Gather {
            hasher: Sha256::new(),
            ends: Vec::new(),
            length: 0,
            text: Some(Vec::new()),
            beginning: Vec::new(),
            keep,
            empty: 0,
        };
        let mut accepted = Vec::with_capacity(listing.len());
        let mut pass = Pass::new(&listing, field, Stage::Reading, watch);
        for file in 0..listing.len() {
            let mark = (gather.hasher.clone(), gather.ends.len(), gather.length, gather.empty);
            let outcome = pass.file(file, &mut gather);
            accepted.push(outcome.is_ok());
            let Err(error) = outcome else { continue };
            let Some((reason, place)) = passed_over(&error).filter(|_| listing.is_folder()) else {
                return Err(error);
            };
            left_out.add(&reason, Some(format!("{}{place}", listing.shown(file))));
            (gather.hasher, gather.length, gather.empty) = (mark.0, mark.2, mark.3);
            gather.ends.truncate(mark.1);
            gather.beginning.truncate(mark.2);
            if let Some(text) = &mut gather.text {
                text.truncate(mark.2);
            }
        }
        let Gather { hasher, ends, text, beginning, empty, .. } = gather;
        left_out.add_many("rows without text", empty);
        if ends.is_empty() {
            let path = listing.name();
            return Err(if listing.is_folder() {
                DataError::NoText { path, left_out: left_out.counts.into_iter().collect() }
            } else {
                DataError::NoRows { path, field: field.to_owned() }
            });
        }
        let (digest, field) = (hasher.finalize().into(), field.to_owned());
        Ok(Self { listing, accepted, ends, text, beginning, digest, left_out, field })
    }

    /// Bytes of all documents with their separators.
    pub(in crate::data) fn length(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Reads everything once more and hands it out by sides: pieces of documents, and nothing where a document ends.
    /// What is in memory is not read from the files again.
    ///
    /// # Errors
    /// What `out` says; the files are no longer what they were.
    pub(in crate::data) fn again(
        &self,
        split: &Split,
        stage: Stage,
        watch: &mut Watch<'_>,
        out: &mut Hand<'_>,
    ) -> Result<(), DataError> {
        let mut sides = Sides { split, hasher: Sha256::new(), document: 0, offset: 0, out };
        if let Some(text) = &self.text {
            let mut ticker = Ticker::new(watch, stage, text.len() as u64);
            let mut done = 0;
            return each_document(text, &mut |document| {
                let Some(mut rest) = document else { return sides.end() };
                while !rest.is_empty() {
                    let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
                    done += piece.len();
                    ticker.tick(done as u64);
                    sides.piece(piece)?;
                    rest = behind;
                }
                Ok(())
            });
        }
        let mut pass = Pass::new(&self.listing, &self.field, stage, watch);
        for file in (0..self.listing.len()).filter(|file| self.accepted[*file]) {
            pass.file(file, &mut sides)?;
        }
        if <[u8; 32]>::from(sides.hasher.finalize()) == self.digest {
            return Ok(());
        }
        Err(DataError::Changed { path: self.listing.name() })
    }
}

/// Why a file of a folder is passed over, and where; nothing when somebody must look at it.
pub(in crate::data) fn passed_over(error: &DataError) -> Option<(String, String)> {
    let at = |offset: &usize, line: &usize| format!(" at byte {offset} (line {line})");
    if let Some(signs) = error.other_separator() {
        return Some((
            format!("tables parted by {signs} (a .csv is read with commas and a .tsv with tabs)"),
            String::new(),
        ));
    }
    match error {
        DataError::Empty { .. } => Some(("empty".into(), String::new())),
        DataError::NotUtf8 { offset, line, .. } => Some(("not UTF-8".into(), at(offset, line))),
        DataError::Binary { offset, line, .. } => Some(("binary (NUL byte)".into(), at(offset, line))),
        DataError::NoField { field, .. } | DataError::NoTextColumn { field, .. } => {
            Some((format!("rows without `{field}` (data.field)"), String::new()))
        }
        DataError::NoPlainText { .. } => Some(("Parquet, and no data.field is set".into(), String::new())),
        DataError::NoColumn { .. } | DataError::NoUsualColumn { .. } => {
            Some(("without the columns of a classification (data.columns)".into(), String::new()))
        }
        DataError::Unreadable { .. } => Some(("unreadable".into(), String::new())),
        _ => None,
    }
}

/// Tells how far things are, now and then.
pub(in crate::data) struct Ticker<'a, 'w> {
    watch: &'a mut Watch<'w>,
    stage: Stage,
    told: u64,
    total: u64,
}

impl<'a, 'w> Ticker<'a, 'w> {
    /// Of nothing yet of so many bytes.
    pub(in crate::data) fn new(watch: &'a mut Watch<'w>, stage: Stage, total: u64) -> Self {
        Self { watch, stage, told: 0, total }
    }

    /// So many bytes are done.
    pub(in crate::data) fn tick(&mut self, done: u64) {
        if done >= self.told + TOLD_EVERY || self.told == 0 {
            self.told = done.max(1);
            (self.watch)(Progress { stage: self.stage, done, total: self.total });
        }
    }
}

/// One pass over files.
struct Pass<'a, 'w> {
    listing: &'a Listing,
    field: &'a str,
    ticker: Ticker<'a, 'w>,
    /// Bytes of the files before.
    before: u64,
}

impl<'a, 'w> Pass<'a, 'w> {
    fn new(listing: &'a Listing, field: &'a str, stage: Stage, watch: &'a mut Watch<'w>) -> Self {
        Self { listing, field, ticker: Ticker::new(watch, stage, listing.bytes), before: 0 }
    }

    /// Reads one of them.
    fn file(&mut self, file: usize, sink: &mut impl Sink) -> Result<(), DataError> {
        let meter = Meter::default();
        let mut sink = Ticking { inner: sink, ticker: &mut self.ticker, meter: &meter, before: self.before };
        let outcome = documents::read(&self.listing.path(file), self.field, &meter, &mut sink);
        self.before += meter.read();
        outcome
    }
}

/// Tells how far a file is.
struct Ticking<'a, 'p, 'w, S> {
    inner: &'a mut S,
    ticker: &'a mut Ticker<'p, 'w>,
    meter: &'a Meter,
    before: u64,
}

impl<S: Sink> Sink for Ticking<'_, '_, '_, S> {
    fn piece(&mut self, text: &str) -> Result<(), DataError> {
        self.ticker.tick(self.before + self.meter.read());
        self.inner.piece(text)
    }

    fn end(&mut self) -> Result<(), DataError> {
        self.inner.end()
    }

    fn without_text(&mut self) {
        self.inner.without_text();
    }
}

/// The first pass.
struct Gather {
    hasher: Sha256,
    ends: Vec<usize>,
    length: usize,
    text: Option<Vec<u8>>,
    beginning: Vec<u8>,
    keep: usize,
    empty: u64,
}

impl Gather {
    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.length += bytes.len();
        let room = LOOKED_AT.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.length > self.keep {
            self.text = None;
        }
        if let Some(text) = &mut self.text {
            text.extend_from_slice(bytes);
        }
    }
}

impl Sink for Gather {
    fn piece(&mut self, text: &str) -> Result<(), DataError> {
        self.add(text.as_bytes());
        Ok(())
    }

    fn end(&mut self) -> Result<(), DataError> {
        self.add(&[super::super::tokens::SEPARATOR]);
        self.ends.push(self.length);
        Ok(())
    }

    fn without_text(&mut self) {
        self.empty += 1;
    }
}

/// A pass that knows what is held out.
struct Sides<'a> {
    split: &'a Split,
    hasher: Sha256,
    document: usize,
    offset: usize,
    out: &'a mut Hand<'a>,
}

impl Sides<'_> {
    fn side(&self) -> Side {
        let held_out = match self.split {
            Split::None => false,
            Split::Tail(cut) => self.offset >= *cut,
            Split::Documents(held_out) => held_out.get(self.document).copied().unwrap_or(false),
        };
        if held_out { Side::Validation } else { Side::Train }
    }
}

impl Sink for Sides<'_> {
    fn piece(&mut self, text: &str) -> Result<(), DataError> {
        self.hasher.update(text.as_bytes());
        let side = self.side();
        let end = self.offset + text.len();
        let outcome = match self.split {
            Split::Tail(cut) if self.offset < *cut && *cut < end => {
                let mut at = cut - self.offset;
                // Never inside a character.
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                let (first, second) = text.split_at(at);
                (self.out)(Side::Train, Some(first)).and_then(|()| (self.out)(Side::Validation, Some(second)))
            }
            _ => (self.out)(side, Some(text)),
        };
        self.offset = end;
        outcome
    }

    fn end(&mut self) -> Result<(), DataError> {
        self.hasher.update([super::super::tokens::SEPARATOR]);
        let side = self.side();
        self.offset += 1;
        self.document += 1;
        (self.out)(side, None)
    }

    fn without_text(&mut self) {}
}
