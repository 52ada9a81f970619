//! What a run learned from, in words.

use crate::{
    config::{Arch, Task},
    protocol::{DataReport, Summary},
    run::text::{bytes, count, plain},
};

/// The section on the data: what was learned from, and what was left out.
pub(super) fn data(summary: &Summary) -> String {
    let mut page = format!("\n## Data\n\n{}\n", learned_from(summary));
    page += &left_out(&summary.data).map(|line| format!("- {line}\n")).collect::<String>();
    page += &named(&summary.data).map(|name| format!("  - {name}\n")).collect::<String>();
    page
}

/// The same in lines, for a terminal.
pub fn data_lines(summary: &Summary) -> String {
    let mut lines = format!("data: {}\n", learned_from(summary));
    lines += &left_out(&summary.data).map(|line| format!("  {line}\n")).collect::<String>();
    lines += &named(&summary.data).map(|name| format!("    {name}\n")).collect::<String>();
    lines
}

/// Each reason for which something was left out, and how many times.
fn left_out(data: &DataReport) -> impl Iterator<Item = String> + '_ {
    data.left_out.iter().map(|(why, times)| format!("left out: {} ({})", plain(why), count(*times)))
}

/// The first of what was left out.
fn named(data: &DataReport) -> impl Iterator<Item = String> + '_ {
    data.left_out_named.iter().map(|name| plain(name))
}

/// The data in a sentence.
pub(in crate::run::export) fn learned_from(summary: &Summary) -> String {
    match summary.config.model.arch.task() {
        Task::LanguageModel => text(&summary.data),
        Task::Classification => rows(&summary.data),
        Task::Own if summary.config.model.arch == Arch::Loop => {
            format!(
                "{}: n/a, what a loop of its own learns from is not counted.",
                plain(&summary.data.source)
            )
        }
        Task::Own => examples(&summary.data),
    }
}

/// What a language model learns from.
fn text(data: &DataReport) -> String {
    format!(
        "{}: {}, {}; {} training tokens in {} sequences, {} validation tokens in {}.",
        plain(&data.source),
        match data.documents {
            1 => "one document".to_owned(),
            many => format!("{} documents", count(many)),
        },
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
