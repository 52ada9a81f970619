use std::{fs, path::Path};

use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use super::{bytes::CLS, *};

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
fn what_a_tokenizer_does_not_know_of_a_text_is_counted_and_named() {
    let (folder, encoder) = wordpiece();
    assert_eq!(encoder.unknown_of(b"the suns set.\0The moon"), None);
    assert_eq!(Encoder::Bytes.unknown_of("Привет".as_bytes()), None);
    let long = "the sun ".repeat(20_000);
    assert_eq!(encoder.unknown_of(&long.as_bytes()[..unknown::LOOKED_AT + 1]), None, "cut within a word");
    assert_eq!(encoder.unknown_of("the\u{301} sun\u{ad}s".as_bytes()), None, "what a normalizer removes");
    // A word with a part that is not known is lost whole.
    let told = encoder.unknown_of("the день sunny\0a moon".as_bytes()).unwrap();
    assert!(told.ends_with(
        "does not know 9 of the 17 characters at the beginning of the text, such as `д`, `е`, `н`: they become `[UNK]`"
    ), "{told}");
    let path = folder.path().join("bpe.json");
    let bpe = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                  "vocab": {"s": 0, "u": 1, "n": 2, "su": 3}, "merges": ["s u"]}}"#;
    fs::write(&path, bpe).unwrap();
    let told = open(&path).unwrap().unknown_of("sun сон".as_bytes()).unwrap();
    assert!(
        told.ends_with(
            "3 of the 6 characters at the beginning of the text, such as `с`, `о`, `н`: they are lost"
        ),
        "{told}"
    );
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
