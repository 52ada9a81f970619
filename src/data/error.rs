//! What can be wrong with the text, each told in one sentence: what, where, what to do.

use thiserror::Error;

/// Text that cannot be trained on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataError {
    #[error("data.path = {path} does not exist: give a UTF-8 text file or a folder of them")]
    Missing { path: String },
    #[error("{path} cannot be read: {problem}")]
    Unreadable { path: String, problem: String },
    #[error("{path} is neither a file nor a folder: give a UTF-8 text file or a folder of them")]
    NotAFile { path: String },
    #[error("{path} is empty: give a file with text in it")]
    Empty { path: String },
    #[error(
        "{path} is not UTF-8 at byte {offset} (line {line}): convert it, for example with `iconv -f LATIN1 -t UTF-8`"
    )]
    NotUtf8 { path: String, offset: usize, line: usize },
    #[error(
        "{path} contains a NUL byte at byte {offset} (line {line}), so it is no plain text (UTF-16 or binary): convert it to UTF-8 text"
    )]
    Binary { path: String, offset: usize, line: usize },
    #[error("{path} holds {bytes} bytes, and at most {limit} are read: give a part of it")]
    TooLarge { path: String, bytes: u64, limit: u64 },
    #[error(
        "no text to train on in {path}: {}; text is recognised by extension, such as .txt or .md, and a single file is read whatever its name",
        left_out_in_words(.left_out)
    )]
    NoText { path: String, left_out: Vec<(String, u64)> },
    #[error(
        "{source_name} has {tokens} tokens to train on ({held_out} more are held out), and one sequence needs train.seq_len + 1 = {needed}: give more text, lower train.seq_len, or lower data.validation_fraction"
    )]
    TooShort { source_name: String, tokens: u64, held_out: u64, needed: u64 },
    #[error(
        "the run stopped at sequence {position} of an epoch, but the training text now has {sequences} sequences: put the text back as it was, or start a new run"
    )]
    Cursor { position: u64, sequences: u64 },
    #[error("the built-in stories are damaged ({0}): give a text of your own with data.path")]
    Stories(String),
    #[error("preparing the batches failed: {0}")]
    Prefetch(String),
}

fn left_out_in_words(left_out: &[(String, u64)]) -> String {
    if left_out.is_empty() {
        return "the folder is empty".to_owned();
    }
    let parts: Vec<String> = left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    format!("left out {}", parts.join(", "))
}
