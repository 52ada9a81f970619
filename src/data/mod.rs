//! Corpora, tokenizer, and batches with a serialisable cursor.
