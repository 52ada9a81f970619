//! What a run learned from, in words.

use std::fmt::Write as _;

use crate::{
    config::Task,
    protocol::{DataReport, Summary},
    run::text::{bytes, count, plain},
};

/// The section on the data: what was learned from, and what was left out.
pub(super) fn data(summary: &Summary) -> String {
    let mut page = format!("\n## Data\n\n{}\n", learned_from(summary));
    let data = &summary.data;
    for (why, times) in &data.left_out {
        let _ = writeln!(page, "- left out: {} ({})", plain(why), count(*times));
    }
    page += &data.left_out_named.iter().map(|name| format!("  - {}\n", plain(name))).collect::<String>();
    page
}

/// The data in a sentence.
pub(in crate::run::export) fn learned_from(summary: &Summary) -> String {
    match summary.config.model.arch.task() {
        Task::LanguageModel => text(&summary.data),
        Task::Classification => rows(&summary.data),
        Task::Own => examples(&summary.data),
    }
}

/// What a language model learns from.
fn text(data: &DataReport) -> String {
    format!(
        "{}: {} documents, {}; {} training tokens in {} sequences, {} validation tokens in {}.",
        plain(&data.source),
        count(data.documents),
        bytes(data.bytes),
        count(data.train_tokens),
        count(data.train_sequences),
        count(data.validation_tokens),
        count(data.validation_sequences),
    )
}

/// What a classification learns from.
fn rows(data: &DataReport) -> String {
    let labels: Vec<String> = data.labels.iter().map(|label| plain(label)).collect();
    let labels = match labels.is_empty() {
        true => String::new(),
        false => format!("; labels: {}", labels.join(", ")),
    };
    format!(
        "{}: {} rows, {}; {} to train on ({} tokens), {} held out ({} tokens){labels}.",
        plain(&data.source),
        count(data.documents),
        bytes(data.bytes),
        count(data.train_sequences),
        count(data.train_tokens),
        count(data.validation_sequences),
        count(data.validation_tokens),
    )
}

/// What a task of its own learns from.
fn examples(data: &DataReport) -> String {
    format!(
        "{}: {} examples to train on, {} held out.",
        plain(&data.source),
        count(data.train_sequences),
        count(data.validation_sequences),
    )
}
