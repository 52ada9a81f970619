//! Tokenizer files of other libraries, told by their names and their first bytes.

use std::{collections::BTreeMap, path::Path};

use serde::de::IgnoredAny;

const TRANSFORMERS: &str = "convert it with Hugging Face's transformers, `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW)`, and give the tokenizer.json in NEW";

/// What a file is that is none of Hugging Face's `tokenizers`, and what to do; nothing when it may be one.
pub(super) fn library(path: &Path, text: &[u8]) -> Option<(&'static str, &'static str)> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let starts = |bytes: &[u8]| text.starts_with(bytes);
    let first = text.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    // The first piece of a model of SentencePiece is a message of its own: its tag, its length, the tag of its text.
    let sentencepiece = text.len() > 3 && starts(&[0x0A]) && text[2] == 0x0A;
    if name.ends_with(".tiktoken") {
        return Some(("a vocabulary of tiktoken", TRANSFORMERS));
    }
    if sentencepiece || name.ends_with(".spm") {
        return Some(("a model of SentencePiece", TRANSFORMERS));
    }
    if starts(b"PK\x03\x04") || starts(&[0x80, 0x02]) || starts(&[0x80, 0x04]) {
        return Some(("a pickled object of Python", TRANSFORMERS));
    }
    if name == "vocab.txt" || starts(b"[PAD]\n") {
        return Some(("the word list of a BERT tokenizer", TRANSFORMERS));
    }
    if name == "merges.txt" || starts(b"#version") {
        return Some(("the merges of a BPE without its vocabulary", TRANSFORMERS));
    }
    if first != Some(b'{') {
        return None;
    }
    // A vocabulary of a hundred thousand words lies below one key: only the keys are kept.
    let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(text).ok()?;
    if object.contains_key("model") && !object.contains_key("model_type") {
        return None;
    }
    if object.contains_key("tokenizer_class") || object.contains_key("model_max_length") {
        return Some((
            "the settings of a tokenizer (tokenizer_config.json)",
            "give the tokenizer.json beside it",
        ));
    }
    if object.contains_key("model_type") || object.contains_key("architectures") {
        return Some(("the configuration of a model (config.json)", "give the tokenizer.json beside it"));
    }
    let ids = serde_json::from_slice::<BTreeMap<String, u64>>(text).is_ok_and(|ids| !ids.is_empty());
    ids.then_some(("the vocabulary of a tokenizer (vocab.json) without its merges", TRANSFORMERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(name: &str, text: impl AsRef<[u8]>) -> Option<&'static str> {
        library(Path::new(name), text.as_ref()).map(|(what, _)| what)
    }

    #[test]
    fn files_of_other_libraries_are_told() {
        assert!(
            what("tokenizer.model", [0x0A, 0x0E, 0x0A, 5, b'<', b'u', b'n', b'k', b'>'])
                .unwrap()
                .contains("SentencePiece")
        );
        assert!(what("cl100k_base.tiktoken", "IQ== 0\n").unwrap().contains("tiktoken"));
        assert!(what("vocab.txt", "[PAD]\n[UNK]\n").unwrap().contains("BERT"));
        assert!(what("merges.txt", "#version: 0.2\n").unwrap().contains("merges"));
        assert!(what("vocab.json", "{\"a\": 0, \"b\": 1}").unwrap().contains("vocab.json"));
        assert!(what("config.json", "{\"model_type\": \"bert\"}").unwrap().contains("config.json"));
        assert!(what("tokenizer_config.json", "{\"tokenizer_class\": \"x\"}").unwrap().contains("settings"));
        assert!(what("tokenizer.pkl", [0x80, 0x04, 1]).unwrap().contains("Python"));
    }

    #[test]
    fn what_may_be_one_is_left_to_the_library_itself() {
        assert_eq!(what("tokenizer.json", crate::data::tokenizer::tests::WORDPIECE), None);
        assert_eq!(what("broken.json", "{\"version\": "), None);
        assert_eq!(what("t.csv", "text,label\n"), None);
        assert_eq!(what("empty", ""), None);
    }
}
