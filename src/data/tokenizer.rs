//! How text becomes ids: its bytes, or a Hugging Face `tokenizer.json`.

use std::{fs, io, path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use tokenizers::{PostProcessor, TruncationDirection};

use super::{
    DataError, foreign,
    tokens::{SEPARATOR, VOCABULARY},
    unborne,
};
use crate::config::{self, Task};

/// Stands before the first sentence of a row of bytes.
pub const CLS: u32 = VOCABULARY;
/// Stands behind each sentence of a row of bytes.
pub const SEP: u32 = VOCABULARY + 1;

/// What ends a document, where a tokenizer has one of them; the first that it has counts.
const ENDS: [&str; 8] = [
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
/// Turns text into ids.
#[derive(Debug, Clone)]
pub(super) enum Encoder {
    Bytes,
    File(Arc<FileEncoder>),
}

#[derive(Debug, Clone)]
pub(super) struct FileEncoder {
    path: String,
    tokenizer: tokenizers::Tokenizer,
    /// Ids are below this.
    vocabulary: usize,
    /// Ends a document, if it has such a token.
    end: Option<u32>,
}

/// What `data.tokenizer` asks for, before anything is made of it.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    Bytes,
    File(TokenizerText),
    /// Learnt from the text, with so many tokens at most.
    Bpe(usize),
}

/// What can be had of a choice before there is a text.
#[derive(Debug)]
pub(super) enum Ready {
    Now(Encoder),
    /// To be learnt from the text, with so many tokens at most.
    Learn(usize),
}

impl Choice {
    /// Reads what is named.
    ///
    /// # Errors
    /// A file that is missing, unreadable, or of another library.
    pub(super) fn of(choice: &config::Tokenizer) -> Result<Self, DataError> {
        match choice {
            config::Tokenizer::Bytes => Ok(Self::Bytes),
            config::Tokenizer::File(path) => TokenizerText::read(path).map(Self::File),
            config::Tokenizer::Bpe(size) => Ok(Self::Bpe(*size)),
        }
    }

    /// Loads what does not depend on a text.
    ///
    /// # Errors
    /// The file is no `tokenizer.json`.
    pub(super) fn ready(&self) -> Result<Ready, DataError> {
        match self {
            Self::Bytes => Ok(Ready::Now(Encoder::Bytes)),
            Self::File(text) => text.load().map(Ready::Now),
            Self::Bpe(size) => Ok(Ready::Learn(*size)),
        }
    }

    /// What is called by that name makes the same ids of a text.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::Bytes => "bytes".to_owned(),
            Self::File(text) => format!("file {}", text.digest()),
            Self::Bpe(size) => format!("bpe {size}"),
        }
    }
}

/// The text of a `tokenizer.json` that has not been looked at yet.
#[derive(Debug, Clone)]
pub(super) struct TokenizerText {
    path: String,
    text: Vec<u8>,
}

/// One row of a classification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedRow {
    pub(super) ids: Vec<u32>,
    /// Something did not fit.
    pub(super) truncated: bool,
}

impl Encoder {
    /// Checks that the model has a row for every id.
    ///
    /// # Errors
    /// `model.vocab_size` is too small.
    pub(super) fn fits(&self, task: Task, vocab_size: usize) -> Result<(), DataError> {
        let (tokenizer, needed) = match (self, task) {
            (Self::Bytes, Task::LanguageModel) => ("bytes", VOCABULARY as usize),
            (Self::Bytes, Task::Classification) => ("bytes", SEP as usize + 1),
            (_, Task::Own) => return Ok(()),
            (Self::File(file), _) => (&*file.path, file.vocabulary),
        };
        if needed <= vocab_size {
            return Ok(());
        }
        Err(DataError::Vocabulary { tokenizer: tokenizer.to_owned(), needed, vocab_size })
    }

    /// Ids are below this.
    pub(super) fn vocabulary(&self) -> u32 {
        match self {
            Self::Bytes => VOCABULARY,
            Self::File(file) => file.vocabulary(),
        }
    }

    /// Checks that documents can be told apart.
    ///
    /// # Errors
    /// There are several, and no token ends one.
    pub(super) fn ends_documents(&self, documents: u64) -> Result<(), DataError> {
        match self {
            Self::File(file) if file.end.is_none() && documents > 1 => {
                Err(DataError::NoEnd { path: file.path.clone(), documents, known: ENDS.join(", ") })
            }
            _ => Ok(()),
        }
    }

    /// Checks that rows are marked: a classification is read off the first mark.
    ///
    /// # Errors
    /// The tokenizer adds none.
    pub(super) fn marks_rows(&self) -> Result<(), DataError> {
        match self {
            Self::File(file) if file.marks(false) == 0 => Err(DataError::NoMarks { path: file.path.clone() }),
            _ => Ok(()),
        }
    }

    /// The text of ids, as far as they are one: see [`super::Dataset::decode`].
    pub(super) fn decode(&self, ids: &[i32]) -> String {
        match self {
            Self::Bytes => bytes_text(ids),
            Self::File(file) => file.decode(ids),
        }
    }

    /// One or two sentences with the marks of a classification, at most `longest` ids of them: the longer sentence
    /// loses its end first.
    ///
    /// # Errors
    /// No room for the marks and a token of each sentence; the tokenizer fails on a text.
    pub(super) fn row(
        &self,
        first: &str,
        second: Option<&str>,
        longest: usize,
    ) -> Result<EncodedRow, DataError> {
        let sentences = 1 + usize::from(second.is_some());
        let marks = match self {
            Self::Bytes => 1 + sentences,
            Self::File(file) => file.marks(second.is_some()),
        };
        if longest < marks + sentences {
            return Err(DataError::NoRoom { seq_len: longest, marks, needed: marks + sentences });
        }
        match self {
            Self::Bytes => Ok(bytes_row(first, second, longest - marks)),
            Self::File(file) => file.row(first, second, longest - marks),
        }
    }
}

/// How the end of a document is written where a byte stands for it.
const END: &str = "<end>";

fn bytes_text(ids: &[i32]) -> String {
    let mut bytes = Vec::with_capacity(ids.len());
    for &id in ids {
        match u8::try_from(id) {
            Ok(SEPARATOR) => bytes.extend_from_slice(END.as_bytes()),
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice("\u{fffd}".as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn bytes_row(first: &str, second: Option<&str>, room: usize) -> EncodedRow {
    let ids = |bytes: &[u8]| -> Vec<u32> { bytes.iter().map(|byte| u32::from(*byte)).collect() };
    let (keep, keep_second) = longest_first(first.len(), second.map_or(0, str::len), room);
    let mut row = vec![CLS];
    row.extend(ids(&first.as_bytes()[..keep]));
    row.push(SEP);
    if let Some(second) = second {
        row.extend(ids(&second.as_bytes()[..keep_second]));
        row.push(SEP);
    }
    EncodedRow { ids: row, truncated: first.len() + second.map_or(0, str::len) > room }
}

/// What is left of two lengths that have this room together, as Hugging Face's `longest_first`: the longer one gives
/// until both are the same, then both give, and an odd place goes to the longer (of equals to the second).
fn longest_first(first: usize, second: usize, room: usize) -> (usize, usize) {
    if first + second <= room {
        return (first, second);
    }
    let short = first.min(second).min(room / 2);
    if first <= second { (short, room - short) } else { (room - short, short) }
}

impl TokenizerText {
    /// Reads a file.
    ///
    /// # Errors
    /// It is missing, unreadable, too long, or of another library.
    pub(super) fn read(path: &str) -> Result<Self, DataError> {
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
    pub(super) fn learnt(size: usize, text: String) -> Self {
        Self { path: format!("bpe:{size}"), text: text.into_bytes() }
    }

    /// SHA-256 of the text, in hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        hex(&Sha256::digest(&self.text))
    }

    /// The tokenizer itself.
    ///
    /// # Errors
    /// The text is no `tokenizer.json`.
    pub(super) fn load(&self) -> Result<Encoder, DataError> {
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
        Ok(Encoder::File(Arc::new(FileEncoder { path: path.to_owned(), tokenizer, vocabulary, end })))
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl FileEncoder {
    /// The ids of a text without marks.
    ///
    /// # Errors
    /// The tokenizer fails, or makes an id that its own vocabulary does not have.
    pub(super) fn ids(&self, text: &str) -> Result<Vec<u32>, DataError> {
        let encoding = self.encode(text)?;
        self.checked(encoding.get_ids().to_vec())
    }

    fn encode(&self, text: &str) -> Result<tokenizers::Encoding, DataError> {
        unborne::held(|| self.tokenizer.encode_fast(text, false)).map_err(|error| self.failed(error))
    }

    /// What ends a document.
    pub(super) const fn end(&self) -> Option<u32> {
        self.end
    }

    /// Ids are below this.
    pub(super) fn vocabulary(&self) -> u32 {
        u32::try_from(self.vocabulary).unwrap_or(u32::MAX)
    }

    /// Tokens that the tokenizer adds to one or two sentences.
    fn marks(&self, pair: bool) -> usize {
        self.tokenizer.get_post_processor().map_or(0, |processor| processor.added_tokens(pair))
    }

    pub(super) fn failed(&self, error: impl std::fmt::Display) -> DataError {
        DataError::Tokenize { path: self.path.clone(), problem: error.to_string() }
    }

    /// Refuses ids that the tokenizer's own vocabulary does not have: marks come with a number of their own.
    fn checked(&self, ids: Vec<u32>) -> Result<Vec<u32>, DataError> {
        match ids.iter().find(|id| **id as usize >= self.vocabulary) {
            Some(id) => Err(self.foreign(*id)),
            None => Ok(ids),
        }
    }

    pub(super) fn foreign(&self, id: u32) -> DataError {
        self.failed(format!("it makes the id {id}, and its vocabulary ends at {}", self.vocabulary - 1))
    }

    /// Marks are written out: they are what ends a document.
    fn decode(&self, ids: &[i32]) -> String {
        let ids: Vec<u32> = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        self.tokenizer.decode(&ids, false).unwrap_or_default()
    }

    fn row(&self, first: &str, second: Option<&str>, room: usize) -> Result<EncodedRow, DataError> {
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

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use tempfile::{TempDir, tempdir};

    use super::*;

    /// A WordPiece tokenizer of a few words, with Bert's marks and with a truncation and a padding of its own.
    pub(crate) const WORDPIECE: &str = r###"{
      "version": "1.0",
      "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
      "padding": {"strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": null,
                  "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
      "added_tokens": [
        {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
        {"id": 12, "content": "[NEW]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
      ],
      "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
      "pre_tokenizer": {"type": "BertPreTokenizer"},
      "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
      "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
      "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "the": 4, "sun": 5, "##s": 6, "moon": 7, "rise": 8, "set": 9, ".": 10, "a": 11}}
    }"###;

    pub(crate) fn wordpiece() -> (TempDir, Encoder) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        fs::write(&path, WORDPIECE).unwrap();
        let encoder = open(&path).unwrap();
        (folder, encoder)
    }

    fn open(path: &Path) -> Result<Encoder, DataError> {
        TokenizerText::read(path.to_str().unwrap())?.load()
    }

    fn ids(encoder: &Encoder, first: &str, second: Option<&str>, longest: usize) -> (Vec<u32>, bool) {
        let row = encoder.row(first, second, longest).unwrap();
        (row.ids, row.truncated)
    }

    #[test]
    fn bytes_stand_between_marks() {
        let row = |second, longest| ids(&Encoder::Bytes, "ab", second, longest);
        assert_eq!(row(None, 9), (vec![256, 97, 98, 257], false));
        assert_eq!(row(Some("c"), 9), (vec![256, 97, 98, 257, 99, 257], false));
        assert_eq!(row(Some("c"), 6), (vec![256, 97, 98, 257, 99, 257], false));
        assert_eq!(row(Some("cdef"), 7), (vec![256, 97, 98, 257, 99, 100, 257], true));
        assert_eq!(row(None, 3), (vec![256, 97, 257], true));
    }

    #[test]
    fn the_marks_and_a_token_of_each_sentence_need_room() {
        let message = |second| Encoder::Bytes.row("ab", second, 2).unwrap_err().to_string();
        assert!(message(None).contains("train.seq_len = 2") && message(None).contains("at least 3"));
        assert!(message(Some("c")).contains("at least 5"), "{}", message(Some("c")));
    }

    #[test]
    fn a_tokenizer_file_brings_its_marks_and_not_its_own_truncation_and_padding() {
        let (_folder, encoder) = wordpiece();
        let all = ids(&encoder, "The suns rise.", Some("the moon set, Sir"), 64);
        assert_eq!(all, (vec![2, 4, 5, 6, 8, 10, 3, 4, 7, 9, 1, 1, 3], false));
        assert_eq!(ids(&encoder, "A sun", None, 64), (vec![2, 11, 5, 3], false));
        // 5 and 5 tokens have 6 places.
        let cut = ids(&encoder, "The suns rise.", Some("the moon set, Sir"), 9);
        assert_eq!(cut, (vec![2, 4, 5, 6, 3, 4, 7, 9, 3], true));
        assert_eq!(ids(&encoder, "The suns rise.", None, 5), (vec![2, 4, 5, 6, 3], true));
    }

    #[test]
    fn rows_are_those_of_hugging_faces_library() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parity/tokenizer");
        let encoder = open(&folder.join("tokenizer.json")).unwrap();
        let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
        let expected: Vec<serde_json::Value> = serde_json::from_str(&expected).unwrap();
        assert!(expected.len() > 10);
        for row in expected {
            let ids: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
            // The library truncated them to 16 places, the longest sentence first.
            let got = encoder.row(row["first"].as_str().unwrap(), row["second"].as_str(), 16).unwrap();
            assert_eq!(got.ids, ids, "{row}");
        }
    }

    #[test]
    fn a_vocabulary_that_does_not_fit_says_both_numbers() {
        let (_folder, encoder) = wordpiece();
        assert!(encoder.fits(Task::Classification, 13).is_ok());
        let message = encoder.fits(Task::Classification, 12).unwrap_err().to_string();
        assert!(message.contains("13 tokens") && message.contains("model.vocab_size = 12"), "{message}");
        assert!(message.contains("set model.vocab_size = 13"), "{message}");
        assert!(Encoder::Bytes.fits(Task::LanguageModel, 256).is_ok());
        assert!(Encoder::Bytes.fits(Task::Classification, 256).is_err());
        assert!(Encoder::Bytes.fits(Task::Classification, 258).is_ok());
    }

    #[test]
    fn files_that_are_no_tokenizer_say_what_to_give() {
        let folder = tempdir().unwrap();
        let message = |name: &str, text: Option<&str>| {
            let path = folder.path().join(name);
            if let Some(text) = text {
                fs::write(&path, text).unwrap();
            }
            let message = open(&path).unwrap_err();
            assert_eq!(message.to_string().lines().count(), 1, "{message}");
            message.to_string()
        };
        let missing = message("none.json", None);
        assert!(missing.contains("none.json does not exist") && missing.contains("\"bytes\""), "{missing}");
        let other = message("config.json", Some("{\"model_type\": \"bert\"}"));
        assert!(other.contains("config.json is the configuration of a model"), "{other}");
        let broken = message("broken.json", Some("{\"version\": "));
        assert!(broken.contains("broken.json is not a tokenizer.json"), "{broken}");
        let here = message("", None);
        assert!(here.contains("is a folder") && here.contains("tokenizer.json"), "{here}");
    }

    #[test]
    fn a_mark_beyond_the_vocabulary_is_refused() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        fs::write(&path, WORDPIECE.replace("\"cls\": [\"[CLS]\", 2]", "\"cls\": [\"[CLS]\", 99]")).unwrap();
        let message = open(&path).unwrap().row("the sun", None, 9).unwrap_err().to_string();
        assert!(message.contains("id 99") && message.contains("ends at 12"), "{message}");
    }

    #[test]
    fn ids_are_written_as_text_whatever_they_are() {
        let ids = [104, 105, 0, 195, 169, 195, 300, -1, 33];
        assert_eq!(Encoder::Bytes.decode(&ids), "hi<end>é\u{fffd}\u{fffd}\u{fffd}!");
        let (_folder, encoder) = wordpiece();
        assert_eq!(encoder.decode(&[4, 5, 6, 8, 3, 99, -7]), "the suns rise [SEP]");
        assert_eq!(encoder.decode(&[]), "");
    }

    #[test]
    fn documents_end_with_the_tokenizers_own_mark() {
        let (_folder, encoder) = wordpiece();
        let text = b"the sun\0the moon rise\0a su".to_vec();
        let tokens = crate::data::encode::in_memory(&encoder, text).unwrap();
        assert_eq!(tokens.ids(0..99).unwrap(), [4, 5, 3, 4, 7, 8, 3, 11, 1]);
        assert_eq!(tokens.vocabulary(), 13);
    }

    #[test]
    fn a_tokenizer_without_the_tokens_that_are_needed_says_which() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let without = WORDPIECE.replace("[SEP]", "[MID]").replace("BertProcessing", "None");
        let start = without.find("\"post_processor\"").unwrap();
        let end = start + without[start..].find("\n").unwrap();
        let without = format!("{}\"post_processor\": null,{}", &without[..start], &without[end..]);
        fs::write(&path, without).unwrap();
        let encoder = open(&path).unwrap();
        assert!(encoder.ends_documents(1).is_ok());
        let message = encoder.ends_documents(2).unwrap_err().to_string();
        assert!(message.contains("2 documents") && message.contains("<|endoftext|>"), "{message}");
        let message = encoder.marks_rows().unwrap_err().to_string();
        assert!(message.contains("tokenizer.json") && message.contains("post_processor"), "{message}");
        let (_folder, whole) = wordpiece();
        assert!(whole.ends_documents(2).is_ok() && whole.marks_rows().is_ok());
    }

    proptest! {
        #[test]
        fn the_longer_sentence_gives_first(first in 0usize..40, second in 0usize..40, room in 2usize..60) {
            let (a, b) = longest_first(first, second, room);
            prop_assert!(a <= first && b <= second);
            prop_assert_eq!(a + b, room.min(first + second));
            // Nobody is cut while the other keeps more.
            prop_assert!(a == first || a + 1 >= b);
            prop_assert!(b == second || b + 1 >= a);
        }

        #[test]
        fn rows_never_exceed_their_length_and_keep_their_marks(
            first in "[a-zé ]{1,30}", second in proptest::option::of("[a-z ]{1,30}"), longest in 5usize..70,
        ) {
            let row = Encoder::Bytes.row(&first, second.as_deref(), longest).unwrap();
            prop_assert!(row.ids.len() <= longest && row.ids.iter().all(|id| *id <= SEP));
            prop_assert_eq!(row.ids.len() == longest || !row.truncated, true);
            prop_assert_eq!((row.ids[0], row.ids[row.ids.len() - 1]), (CLS, SEP));
            let marks = row.ids.iter().filter(|id| **id >= CLS).count();
            prop_assert_eq!(marks, 2 + usize::from(second.is_some()));
        }
    }
}
