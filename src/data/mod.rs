//! Corpora, labelled rows, tokenizers, and batches with a serialisable cursor.
//!
//! ```text
//! corpus      documents: the built-in stories, or the files of `data.path`
//! labelled    sentences with a label: the built-in pairs, or a .csv, .tsv or .jsonl file
//! tokenizer   text becomes ids: its bytes, or a Hugging Face tokenizer.json
//! dataset     documents -> training and validation streams -> sequences of `seq_len` targets;
//!             labelled sentences -> training and validation rows: a sequence is a row
//! own         examples of a task that the program was given, by number
//! cursor      the next sequence to be drawn, and the order of the sequences of an epoch
//! windows     all micro-batches of one update
//! prefetch    the same windows, made by a thread that runs ahead
//! ```
//!
//! With the byte tokenizer a token's id is the byte's value, and rows of a classification carry two marks more: 256
//! before the first sentence, 257 behind each. Byte 0 ends every document, which is why a text may not contain it; a
//! tokenizer file ends documents with a mark of its own. Id 0 fills short rows. Every id is below `model.vocab_size`:
//! that is checked once, when the data is opened.

pub mod batch;
pub mod corpus;
pub mod cursor;
pub mod dataset;
pub mod error;
mod labelled;
pub mod own;
pub mod pairs;
pub mod prefetch;
pub mod random;
mod rows;
mod split;
pub mod stories;
pub mod tokenizer;
mod tokens;
pub mod windows;

pub use batch::{Batch, IGNORE};
pub use corpus::Corpus;
pub use cursor::Cursor;
pub use dataset::Dataset;
pub use error::DataError;
pub use prefetch::Prefetch;
pub use tokens::{SEPARATOR, VOCABULARY};
pub use windows::{Pass, Window, Windows, total_updates};
