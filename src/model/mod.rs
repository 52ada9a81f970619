//! Models under Hugging Face's parameter names.
