//! What can be wrong with a checkpoint to start from, each in one sentence: what, where, what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::run::text;

/// Weights that cannot be loaded. The exit code is 2.
#[derive(Debug, Error)]
pub enum WeightsError {
    #[error("model.weights = {}: there is no such file or folder", .0.display())]
    NotThere(PathBuf),
    #[error(
        "model.weights = {} holds none of {}: give a folder with one of them, or a file of weights",
        .path.display(),
        .expected.join(", ")
    )]
    EmptyFolder { path: PathBuf, expected: Vec<&'static str> },
    #[error(
        "model.weights = {} is no file of weights by its name: give a .safetensors, .bin, .pt or .pth file, or a folder",
        .0.display()
    )]
    UnknownKind(PathBuf),
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("model.weights = {}: {problem}", .path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "model.weights = {} wants to run {global}, which no weights need: not loaded; ask for the weights as safetensors",
        .path.display()
    )]
    Program { path: PathBuf, global: String },
    #[error(
        "{} is in the format that PyTorch wrote before version 1.6, which is not read; {}",
        .path.display(),
        convert(.path)
    )]
    Legacy { path: PathBuf },
    #[error(
        "model.weights = {} has no tensor of a {arch} model: it holds {names}; choose the model.preset or model.arch it \
         was made with",
        .path.display()
    )]
    Foreign { path: PathBuf, arch: &'static str, names: String },
    #[error("model.weights = {} lacks {names}{}", .path.display(), advice(.hint))]
    Missing { path: PathBuf, names: String, hint: String },
    #[error(
        "model.weights = {} holds {names}, which the model does not have: set the keys of [model] as the weights were made",
        .path.display()
    )]
    Surplus { path: PathBuf, names: String },
    #[error(
        "model.weights = {}: `{name}` is {found} in the file and {expected} in the model{}",
        .path.display(),
        advice(.hint)
    )]
    Shape { path: PathBuf, name: String, found: String, expected: String, hint: String },
    #[error(
        "model.weights = {}: `{name}` is of type {element}, and weights are read from F32, F64, F16 and BF16",
        .path.display()
    )]
    Element { path: PathBuf, name: String, element: String },
    #[error(
        "model.tie_word_embeddings is true, but model.weights = {} has a head of its own: its lm_head.weight differs from \
         {embedding}; set model.tie_word_embeddings = false",
        .path.display()
    )]
    OwnHead { path: PathBuf, embedding: String },
    #[error("model.weights = {}: two tensors are called {name} once wrappers are taken off their names", .path.display())]
    Twice { path: PathBuf, name: String },
}

impl WeightsError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(super) fn damaged(path: &Path, problem: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), problem: problem.into() }
    }
}

/// How PyTorch itself makes a file that is safe to read.
fn convert(path: &Path) -> String {
    let name = path.display().to_string();
    format!(
        "convert it: `python -c \"import torch; from safetensors.torch import save_file; save_file({{k: \
         v.contiguous().clone() for k, v in torch.load('{}', weights_only=True).items()}}, 'model.safetensors')\"`",
        text::plain(&name)
    )
}

fn advice(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

/// A name out of a file that nobody vouches for: short, on one line, in quotation marks.
pub(super) fn quoted(name: &str) -> String {
    const LONGEST: usize = 120;
    let mut short: String = name.chars().take(LONGEST).collect();
    if short.len() < name.len() {
        short.push_str("...");
    }
    format!("`{}`", text::plain(&short))
}

/// The first three names, and how many more there are.
pub(super) fn first_few<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.take(SHOWN).map(quoted).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
