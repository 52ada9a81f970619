//! The tokenizers of Hugging Face's library, from a `tokenizer.json`.

use std::{fmt, fs, io, path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use tokenizers::{PostProcessor, TruncationDirection};

use super::{
    super::{DataError, foreign, unborne},
    EncodedRow, Encoder, hex, longest_first, unknown,
};

/// What ends a document, where a tokenizer has one of them; the first that it has counts.
pub(super) const ENDS: [&str; 8] = [
    "</s>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "[SEP]",
    "<eos>",
    "<|im_end|>",
    "<|eot_id|>",
    "<end_of_turn>",
];

/// Longest `tokenizer.json` that is read, in bytes.
const LONGEST_FILE: u64 = 512 << 20;

#[derive(Debug, Clone)]
pub(in crate::data) struct FileEncoder {
    pub(super) path: String,
    pub(super) tokenizer: tokenizers::Tokenizer,
    /// Ids are below this.
    pub(super) vocabulary: usize,
    /// Ends a document, if it has such a token.
    pub(super) end: Option<u32>,
    /// Stands for what it does not know, if it has such a token.
    pub(super) unknown: Option<(u32, String)>,
}

/// The text of a `tokenizer.json` that has not been looked at yet.
#[derive(Debug, Clone)]
pub(in crate::data) struct TokenizerText {
    path: String,
    text: Vec<u8>,
}

impl TokenizerText {
    /// Reads a file.
    ///
    /// # Errors
    /// It is missing, unreadable, too long, or of another library.
    pub(in crate::data) fn read(path: &str) -> Result<Self, DataError> {
        if Path::new(path).is_dir() {
            return Err(DataError::TokenizerFolder { path: path.to_owned() });
        }
        let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
        if length > LONGEST_FILE {
            let problem = format!("it has {length} bytes, and the largest tokenizers have a tenth of that");
            return Err(DataError::NotATokenizer { path: path.to_owned(), problem });
        }
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DataError::TokenizerMissing { path: path.to_owned() });
            }
            Err(error) => {
                return Err(DataError::Unreadable { path: path.to_owned(), problem: error.to_string() });
            }
        };
        match foreign::library(Path::new(path), &text) {
            Some((what, remedy)) => Err(DataError::OtherLibrary { path: path.to_owned(), what, remedy }),
            None => Ok(Self { path: path.to_owned(), text }),
        }
    }

    /// The text of one that was learnt with at most so many tokens, called in messages as it was asked for.
    pub(in crate::data) fn learnt(size: usize, text: String) -> Self {
        Self { path: format!("bpe:{size}"), text: text.into_bytes() }
    }

    /// SHA-256 of the text, in hexadecimal digits.
    pub(in crate::data) fn digest(&self) -> String {
        hex(&Sha256::digest(&self.text))
    }

    /// The tokenizer itself.
    ///
    /// # Errors
    /// The text is no `tokenizer.json`.
    pub(in crate::data) fn load(&self) -> Result<Encoder, DataError> {
        let path = &self.path;
        let not_one = |problem: String| DataError::NotATokenizer {
            path: path.to_owned(),
            problem: problem.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        unborne::check(&self.text).map_err(not_one)?;
        let mut tokenizer =
            unborne::held(|| tokenizers::Tokenizer::from_bytes(&self.text)).map_err(not_one)?;
        // Rows are cut and filled here, by train.seq_len and by the longest row of a batch.
        tokenizer.with_truncation(None).map_err(|error| not_one(error.to_string()))?;
        tokenizer.with_padding(None);
        let vocabulary = tokenizer.get_vocab(true).values().max().map_or(0, |id| *id as usize + 1);
        if vocabulary == 0 {
            return Err(not_one("its vocabulary is empty".to_owned()));
        }
        let end = ENDS.iter().find_map(|token| tokenizer.token_to_id(token));
        let unknown = unknown::token(&self.text, &tokenizer);
        Ok(Encoder::File(Arc::new(FileEncoder {
            path: path.to_owned(),
            tokenizer,
            vocabulary,
            end,
            unknown,
        })))
    }
}

impl FileEncoder {
    /// The ids of a text without marks.
    ///
    /// # Errors
    /// The tokenizer fails, or makes an id that its own vocabulary does not have.
    pub(in crate::data) fn ids(&self, text: &str) -> Result<Vec<u32>, DataError> {
        let encoding = self.encode(text)?;
        self.checked(encoding.get_ids().to_vec())
    }

    fn encode(&self, text: &str) -> Result<tokenizers::Encoding, DataError> {
        unborne::held(|| self.tokenizer.encode_fast(text, false)).map_err(|error| self.failed(error))
    }

    /// What ends a document.
    pub(in crate::data) const fn end(&self) -> Option<u32> {
        self.end
    }

    /// Ids are below this.
    pub(in crate::data) fn vocabulary(&self) -> u32 {
        u32::try_from(self.vocabulary).unwrap_or(u32::MAX)
    }

    /// Tokens that the tokenizer adds to one or two sentences.
    pub(super) fn marks(&self, pair: bool) -> usize {
        self.tokenizer.get_post_processor().map_or(0, |processor| processor.added_tokens(pair))
    }

    pub(in crate::data) fn failed(&self, error: impl fmt::Display) -> DataError {
        DataError::Tokenize { path: self.path.clone(), problem: error.to_string() }
    }

    /// Refuses ids that the tokenizer's own vocabulary does not have: marks come with a number of their own.
    fn checked(&self, ids: Vec<u32>) -> Result<Vec<u32>, DataError> {
        match ids.iter().find(|id| **id as usize >= self.vocabulary) {
            Some(id) => Err(self.foreign(*id)),
            None => Ok(ids),
        }
    }

    fn foreign(&self, id: u32) -> DataError {
        self.failed(format!("it makes the id {id}, and its vocabulary ends at {}", self.vocabulary - 1))
    }

    /// Marks are written out: they are what ends a document.
    pub(super) fn decode(&self, ids: &[i32]) -> String {
        let ids: Vec<u32> = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        self.tokenizer.decode(&ids, false).unwrap_or_default()
    }

    pub(super) fn row(
        &self,
        first: &str,
        second: Option<&str>,
        room: usize,
    ) -> Result<EncodedRow, DataError> {
        let mut first = self.encode(first)?;
        let mut second = second.map(|text| self.encode(text)).transpose()?;
        let lengths = (first.len(), second.as_ref().map_or(0, tokenizers::Encoding::len));
        let (keep, keep_second) = longest_first(lengths.0, lengths.1, room);
        let cut = |encoding: &mut tokenizers::Encoding, keep: usize| {
            if encoding.len() > keep {
                encoding.truncate(keep, 0, TruncationDirection::Right);
                // What was cut off would be given marks as well.
                drop(encoding.take_overflowing());
            }
        };
        cut(&mut first, keep);
        if let Some(second) = &mut second {
            cut(second, keep_second);
        }
        let whole = unborne::held(|| self.tokenizer.post_process(first, second, true))
            .map_err(|error| self.failed(error))?;
        let ids = self.checked(whole.get_ids().to_vec())?;
        Ok(EncodedRow { ids, truncated: lengths.0 + lengths.1 > room })
    }
}
