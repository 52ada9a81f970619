//! A stream of documents becomes a stream of ids, in pieces and on all cores.

use std::{
    io, mem,
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
};

use rayon::prelude::*;

use super::{
    DataError,
    store::Store,
    token_file::TokenWriter,
    tokenizer::{Encoder, FileEncoder},
    tokens::{SEPARATOR, Tokens},
};

/// Longer documents are encoded in pieces of at most so many bytes: encoding takes a hundred bytes of memory for each.
pub(super) const PIECE: usize = 1 << 17;
/// Bytes of text that are encoded at once, on all cores.
const AT_ONCE: usize = 4 << 20;

/// Cuts a document that comes bit by bit into pieces that can be encoded one by one. Where it is cut depends on the
/// document alone.
#[derive(Debug, Default)]
pub(super) struct Pieces(String);

impl Pieces {
    /// More of the document; `each` takes the pieces that are complete.
    pub(super) fn push<E>(
        &mut self,
        text: &str,
        each: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.0.push_str(text);
        if self.0.len() <= PIECE {
            return Ok(());
        }
        let whole = mem::take(&mut self.0);
        let mut rest = &*whole;
        while rest.len() > PIECE {
            let (piece, behind) = rest.split_at(piece(rest, PIECE));
            each(piece)?;
            rest = behind;
        }
        self.0.push_str(rest);
        Ok(())
    }

    /// What is left of the document.
    pub(super) fn end(&mut self) -> String {
        mem::take(&mut self.0)
    }
}

/// Where the first piece of a document ends that is longer: behind the last line break between two letters, where no
/// tokenizer joins the sides to one token; else before the last space behind a letter; else where a character ends.
fn piece(document: &str, longest: usize) -> usize {
    let bytes = document.as_bytes();
    let letter = |at: usize| !bytes[at].is_ascii_whitespace();
    let line = |at: &usize| bytes[*at - 1] == b'\n' && letter(*at - 2) && letter(*at);
    let word = |at: &usize| bytes[*at] == b' ' && letter(*at - 1);
    let found = (2..=longest).rev().find(line).or_else(|| (2..=longest).rev().find(word));
    found.unwrap_or_else(|| {
        (1..=longest).rev().find(|at| document.is_char_boundary(*at)).unwrap_or(bytes.len())
    })
}

/// Where ids go: into memory, or into a file.
pub(super) trait Keeps {
    /// Takes ids, all of which are below the vocabulary.
    fn ids(&mut self, ids: &[u32]) -> io::Result<()>;
    /// Takes ids of one byte each.
    fn bytes(&mut self, ids: &[u8]) -> io::Result<()>;
}

impl Keeps for Vec<u32> {
    fn ids(&mut self, ids: &[u32]) -> io::Result<()> {
        self.extend_from_slice(ids);
        Ok(())
    }
    fn bytes(&mut self, ids: &[u8]) -> io::Result<()> {
        self.extend(ids.iter().map(|id| u32::from(*id)));
        Ok(())
    }
}

impl Keeps for &mut TokenWriter {
    fn ids(&mut self, ids: &[u32]) -> io::Result<()> {
        self.push(ids)
    }
    fn bytes(&mut self, ids: &[u8]) -> io::Result<()> {
        self.push_bytes(ids)
    }
}

/// Pieces of documents, and which of them end one.
type Batch = Vec<(String, bool)>;
type Encoded = Vec<(Result<Vec<u32>, DataError>, bool)>;

/// Takes documents bit by bit and writes their ids in order, while the next ones are read.
#[derive(Debug)]
pub(super) struct Stream<'a, K> {
    encoder: &'a Encoder,
    pieces: Pieces,
    batch: Batch,
    /// Bytes in the batch.
    bytes: usize,
    /// The batch before, which is being encoded.
    pending: Option<Receiver<Encoded>>,
    out: K,
    /// Where the ids cannot be written, for messages.
    place: String,
}

impl<'a, K: Keeps> Stream<'a, K> {
    /// A stream of nothing yet. `place` names where it is written.
    pub(super) fn new(encoder: &'a Encoder, out: K, place: String) -> Self {
        Self { encoder, pieces: Pieces::default(), batch: Vec::new(), bytes: 0, pending: None, out, place }
    }

    /// More of the present document.
    ///
    /// # Errors
    /// The tokenizer fails on the text, or the ids cannot be written.
    pub(super) fn push(&mut self, text: &str) -> Result<(), DataError> {
        if matches!(self.encoder, Encoder::Bytes) {
            return self.write_bytes(text.as_bytes());
        }
        let (batch, bytes) = (&mut self.batch, &mut self.bytes);
        self.pieces.push(text, &mut |piece: &str| {
            *bytes += piece.len();
            batch.push((piece.to_owned(), false));
            Ok::<(), DataError>(())
        })?;
        self.encode_when_full()
    }

    /// The document is complete.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(super) fn end(&mut self) -> Result<(), DataError> {
        if matches!(self.encoder, Encoder::Bytes) {
            return self.write_bytes(&[SEPARATOR]);
        }
        self.take_rest(true);
        self.encode_when_full()
    }

    /// Everything has been pushed; the last document may go on elsewhere.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(super) fn finish(mut self) -> Result<K, DataError> {
        self.take_rest(false);
        self.encode()?;
        self.receive()?;
        Ok(self.out)
    }

    fn take_rest(&mut self, ended: bool) {
        let rest = self.pieces.end();
        if ended || !rest.is_empty() {
            self.bytes += rest.len();
            self.batch.push((rest, ended));
        }
    }

    fn encode_when_full(&mut self) -> Result<(), DataError> {
        // A million documents of a few bytes take their room, too.
        if self.bytes + 64 * self.batch.len() >= AT_ONCE { self.encode() } else { Ok(()) }
    }

    /// Hands the batch to all cores.
    fn encode(&mut self) -> Result<(), DataError> {
        let Encoder::File(encoder) = self.encoder else { return Ok(()) };
        let (batch, encoder) = (mem::take(&mut self.batch), Arc::clone(encoder));
        self.bytes = 0;
        self.receive()?;
        let (sender, receiver) = sync_channel(1);
        let work = move || {
            // Nobody listens any more after a failure.
            let _ = sender.send(encoded(&encoder, batch));
        };
        // A thread of the pool must not wait for the pool.
        if rayon::current_thread_index().is_some() {
            work();
        } else {
            rayon::spawn(work);
        }
        self.pending = Some(receiver);
        Ok(())
    }

    /// Writes the batch before.
    fn receive(&mut self) -> Result<(), DataError> {
        let (Some(pending), Encoder::File(encoder)) = (self.pending.take(), self.encoder) else {
            return Ok(());
        };
        let batch = pending.recv().map_err(|_| encoder.failed("it panicked"))?;
        for (ids, ended) in batch {
            let mut ids = ids?;
            if ended && let Some(end) = encoder.end() {
                ids.push(end);
            }
            self.out.ids(&ids).map_err(|error| unwritable(&self.place, &error))?;
        }
        Ok(())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.out.bytes(bytes).map_err(|error| unwritable(&self.place, &error))
    }
}

/// The disk does not take the tokens.
pub(super) fn unwritable(place: &str, error: &std::io::Error) -> DataError {
    DataError::Unwritable { path: place.to_owned(), problem: error.to_string() }
}

fn encoded(encoder: &FileEncoder, batch: Batch) -> Encoded {
    batch.into_par_iter().map(|(piece, ended)| (encoder.ids(&piece), ended)).collect()
}

/// The ids of a text whose documents each end with [`SEPARATOR`] (the last may go on in another stream).
///
/// # Errors
/// The tokenizer fails on a text, or makes an id that its own vocabulary does not have.
pub(super) fn in_memory(encoder: &Encoder, text: Vec<u8>) -> Result<Tokens, DataError> {
    let Encoder::File(file) = encoder else { return Ok(Tokens::from_bytes(text)) };
    let ids = through(encoder, &text, Vec::with_capacity(text.len() / 4))?;
    Ok(Tokens::from_ids(ids, file.vocabulary()))
}

/// The same of what is trained on and what is held out, kept in the store under that key: made once, where that takes
/// time and the store can be written.
///
/// # Errors
/// As [`in_memory`].
pub(super) fn kept_or_made(
    store: Option<&Store>,
    key: &str,
    encoder: &Encoder,
    [train, validation]: [Vec<u8>; 2],
) -> Result<(Tokens, Tokens), DataError> {
    let made = |store: &Store| {
        let mut pending = store.begin(key, encoder.vocabulary()).ok()?;
        through(encoder, &train, &mut pending.train).ok()?;
        through(encoder, &validation, &mut pending.validation).ok()?;
        pending.finish().ok()?;
        store.tidy(key);
        store.tokens(key)
    };
    match store.and_then(|store| store.tokens(key).or_else(|| made(store))) {
        Some(tokens) => Ok(tokens),
        None => Ok((in_memory(encoder, train)?, in_memory(encoder, validation)?)),
    }
}

/// Hands the ids of such a text on.
fn through<K: Keeps>(encoder: &Encoder, text: &[u8], out: K) -> Result<K, DataError> {
    let mut stream = Stream::new(encoder, out, String::new());
    each_document(text, &mut |piece| match piece {
        Some(piece) => stream.push(piece),
        None => stream.end(),
    })?;
    stream.finish()
}

/// The documents of a text one after another: each as a whole, and nothing where it ends.
///
/// # Errors
/// What `each` says.
pub(super) fn each_document(
    text: &[u8],
    each: &mut dyn FnMut(Option<&str>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    for document in text.split_inclusive(|byte| *byte == SEPARATOR) {
        let (document, ended) = match document.strip_suffix(&[SEPARATOR]) {
            Some(document) => (document, true),
            None => (document, false),
        };
        let document = std::str::from_utf8(document).map_err(|error| DataError::Unreadable {
            path: "the text".to_owned(),
            problem: error.to_string(),
        })?;
        each(Some(document))?;
        if ended {
            each(None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_end_between_lines_or_else_between_words() {
        assert_eq!(piece("ab\ncd\nef", 7), 6);
        assert_eq!(piece("ab\ncd\nef", 5), 3);
        // Not beside white space.
        assert_eq!(piece("ab\n cd \nef gh", 11), 10);
        assert_eq!(piece("abcdefgh", 3), 3);
        assert_eq!(piece("aébcdefgh", 2), 1);
        assert_eq!(piece("abcd\nx", 5), 5);
    }

    fn pieces(parts: &[&str]) -> Vec<String> {
        let (mut pieces, mut all) = (Pieces::default(), Vec::new());
        for part in parts {
            pieces
                .push(part, &mut |piece: &str| {
                    all.push(piece.to_owned());
                    Ok::<(), ()>(())
                })
                .unwrap();
        }
        all.push(pieces.end());
        all
    }

    #[test]
    fn ids_do_not_depend_on_how_the_text_came() {
        let (_folder, encoder) = crate::data::tokenizer::tests::wordpiece();
        let line = "the sun rise . the moons set\n";
        let long = line.repeat((AT_ONCE + PIECE) / line.len());
        let text = format!("{long}\0the sun\0{line}");
        let whole = in_memory(&encoder, text.clone().into_bytes()).unwrap();
        let mut stream = Stream::new(&encoder, Vec::new(), String::new());
        for (at, part) in text.split('\0').enumerate() {
            if at > 0 {
                stream.end().unwrap();
            }
            let mut rest = part;
            while !rest.is_empty() {
                let (some, behind) = rest.split_at(rest.len().min(7777));
                stream.push(some).unwrap();
                rest = behind;
            }
        }
        let ids: Vec<i32> = stream.finish().unwrap().into_iter().map(|id| id as i32).collect();
        assert_eq!(ids, whole.ids(0..usize::MAX).unwrap());
        let each = whole.ids(0..9).unwrap();
        assert_eq!(each, [4, 5, 8, 10, 4, 7, 6, 9, 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn pieces_depend_on_the_document_alone(seed: u64, cuts in prop::collection::vec(1usize..90_000, 0..6)) {
            let mut rng = crate::data::random::generator(seed, "test", 0);
            let text: String = (0..60_000).map(|_| ["ab\ncd", " é", "longer", "\n\n x", "😀"][crate::data::random::below(&mut rng, 5) as usize]).collect();
            let (mut parts, mut rest) = (Vec::new(), &*text);
            for cut in cuts {
                let cut = (cut.min(rest.len())..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap();
                let (part, behind) = rest.split_at(cut);
                parts.push(part);
                rest = behind;
            }
            parts.push(rest);
            let whole = pieces(&[&text]);
            prop_assert_eq!(&whole, &pieces(&parts));
            prop_assert_eq!(whole.concat(), text);
            prop_assert!(whole.iter().all(|piece| piece.len() <= PIECE));
        }
    }
}
