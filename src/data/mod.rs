//! Corpora, labelled rows, tokenizers, and batches with a serialisable cursor.
//!
//! ```text
//! corpus      documents in memory: the built-in stories
//! text        the files of `data.path`, as a stream of documents
//! labelled    sentences with a label: the built-in pairs, or .csv, .tsv and .jsonl files
//! parquet     columns of a Parquet table, where the feature is on
//! tokenizer   text becomes ids: its bytes, or a Hugging Face tokenizer.json
//! unborne     what the libraries behind these do not bear
//! bpe         a vocabulary learnt from the text
//! encode      a stream of documents becomes a stream of ids, on all cores
//! store       tokens and vocabularies that are kept on the disk
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
mod bpe;
pub mod corpus;
pub mod cursor;
pub mod dataset;
mod encode;
pub mod error;
mod foreign;
mod labelled;
pub mod own;
pub mod pairs;
#[cfg(feature = "parquet")]
mod parquet;
pub mod prefetch;
pub mod progress;
pub mod random;
mod rows;
mod split;
mod store;
pub mod stories;
mod text;
mod token_file;
mod tokenizer;
mod tokens;
mod unborne;
pub mod windows;

pub use batch::{Batch, IGNORE};
pub use corpus::Corpus;
pub use cursor::Cursor;
pub use dataset::Dataset;
pub use error::DataError;
pub use prefetch::Prefetch;
pub use progress::{Progress, Stage};
pub use tokens::{SEPARATOR, VOCABULARY};
pub use windows::{Pass, Window, Windows, total_updates};
