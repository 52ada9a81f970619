//! Corpora, tokenizer, and batches with a serialisable cursor.
//!
//! ```text
//! corpus      documents: the built-in stories, or the files of `data.path`
//! dataset     documents -> training and validation streams -> sequences of `seq_len` targets
//! cursor      the next sequence to be drawn, and the order of the sequences of an epoch
//! windows     all micro-batches of one update
//! prefetch    the same windows, made by a thread that runs ahead
//! ```
//!
//! Tokens are bytes: a token's id is the byte's value. Byte 0 ends every document and fills short rows, which
//! is why a text may not contain it.

pub mod batch;
pub mod corpus;
pub mod cursor;
pub mod dataset;
pub mod error;
pub mod prefetch;
pub mod random;
pub mod stories;
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
