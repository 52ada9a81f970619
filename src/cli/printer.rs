//! What a run writes, as lines for a person or as JSON.

use std::time::{Duration, Instant};

use super::output;
use crate::{
    config::{Arch, Task},
    protocol::{DataReport, Event, Lineage, Resumed, RunEnded, Update, Validation},
    run::{RunDir, export, text},
};

/// Least time between two printed lines.
const LINE: Duration = Duration::from_secs(1);
/// What was left out of the data is named up to here; the end of the run names more.
const NAMED: usize = 5;

/// Prints events as they come.
pub(super) struct Printer {
    json: bool,
    /// Only how the run begins and how it ends.
    brief: bool,
    last_line: Option<Instant>,
    total: u64,
    /// What is counted depends on it.
    arch: Arch,
}

impl Printer {
    /// A run of so many updates: every event as JSON, or a line now and then.
    pub(super) const fn of_one(json: bool, total: u64, arch: Arch) -> Self {
        Self { json, brief: false, last_line: None, total, arch }
    }

    /// One run of several: every event as JSON, or one line for its beginning and one for its end.
    pub(super) const fn of_many(json: bool) -> Self {
        Self { json, brief: true, last_line: None, total: 0, arch: Arch::Llama }
    }

    /// False when nobody reads any more.
    pub(super) fn print(&mut self, run: &RunDir, event: &Event) -> anyhow::Result<bool> {
        if self.json {
            return output::json_line(event);
        }
        match event {
            Event::Header(header) => {
                (self.total, self.arch) = (header.total_updates, header.config.model.arch);
                let lineage = header.forked_from.as_ref().map(Lineage::told);
                lineage.iter().chain(&header.notes).for_each(|note| output::message(note));
                if let Some(left_out) = left_out(&header.data) {
                    output::message(&left_out);
                }
                let tokens = header.config.train.seq_len;
                let of = match header.config.model.arch.task() {
                    Task::LanguageModel => format!("sequences of {tokens} tokens"),
                    Task::Classification => format!("sequences of at most {tokens} tokens"),
                    Task::Own => "examples".to_owned(),
                };
                output::line(&format!(
                    "{}: {} parameters, {}, {} x {} {of}, {} updates on {} ({} threads)",
                    header.run,
                    text::count(header.ledger.parameters),
                    header.config.optimizer.name,
                    header.config.train.micro_batch,
                    header.config.train.accumulate,
                    header.total_updates,
                    header.device,
                    header.threads,
                ))
            }
            Event::Resumed(resumed) => {
                if let Some(header) = &resumed.header {
                    self.total = header.total_updates;
                }
                output::line(&resumed_line(run, resumed, self.total))
            }
            Event::Update(_) | Event::Validation(_) if self.brief => Ok(true),
            Event::Update(update) => self.update(update),
            Event::Validation(validation) => output::line(&validated(validation, self.arch)),
            Event::Alert(alert) => {
                output::message(&alert.message);
                Ok(true)
            }
            Event::RunEnded(ended) => {
                if let Some(message) = &ended.message {
                    output::message(&format!("error: {message}"));
                }
                if self.brief {
                    return output::line(&in_one_line(run, ended));
                }
                if self.total > 0 && ended.summary.updates > 0 {
                    output::line(&format!("\n{}", export::markdown::summary(&ended.summary)))?;
                }
                for (name, value) in export::markdown::evaluation(&ended.summary) {
                    output::line(&format!("{name} {}", text::loss(value)))?;
                }
                output::line(&format!("run {}: {}", run.id(), ended.reason.as_str()))
            }
            _ => Ok(true),
        }
    }

    fn update(&mut self, update: &Update) -> anyhow::Result<bool> {
        let due = self.last_line.is_none_or(|last| last.elapsed() >= LINE);
        if !due && update.update != self.total {
            return Ok(true);
        }
        self.last_line = Some(Instant::now());
        output::line(&format!(
            "update {:>6}/{}  loss {:.4}  lr {:.2e}  grad norm {:.3}  {:.0} {}/s",
            update.update,
            self.total,
            update.loss,
            update.learning_rate,
            update.grad_norm,
            update.tokens_per_second,
            self.arch.counted().as_str()
        ))
    }
}

fn resumed_line(run: &RunDir, resumed: &Resumed, total: u64) -> String {
    let by_hand = resumed
        .learning_rate
        .map_or_else(String::new, |rate| format!(", at the learning rate {rate:e} given by hand"));
    format!("{}: resumed from update {} of {total}{by_hand}", run.id(), resumed.from_update)
}

/// The end of one run of several.
fn in_one_line(run: &RunDir, ended: &RunEnded) -> String {
    let summary = &ended.summary;
    let loss = |what: &str, loss: Option<f64>| {
        loss.map_or_else(String::new, |loss| format!(", {what} loss {}", text::loss(loss)))
    };
    format!(
        "run {}: {} after {} updates{}{}",
        run.id(),
        ended.reason.as_str(),
        text::count(summary.updates),
        loss("train", summary.final_train_loss),
        loss("validation", summary.final_val_loss)
    )
}

/// What was left out of the data, with the first of it by name; nothing where it was all read.
fn left_out(data: &DataReport) -> Option<String> {
    let reasons: Vec<String> =
        data.left_out.iter().map(|(why, times)| format!("{why} ({})", text::count(*times))).collect();
    let named: Vec<String> = data.left_out_named.iter().take(NAMED).map(|name| text::plain(name)).collect();
    let first = if named.is_empty() { String::new() } else { format!("; such as {}", named.join(", ")) };
    (!reasons.is_empty()).then(|| format!("left out of the data: {}{first}", reasons.join(", ")))
}

/// The line of a validation. Of a classification it names accuracy and F1.
fn validated(validation: &Validation, arch: Arch) -> String {
    let Validation { update, loss, tokens, accuracy, f1, f1_macro, .. } = validation;
    let scores: String = [("accuracy", accuracy), ("F1", f1), ("macro F1", f1_macro)]
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!(", {name} {}", text::loss(value))))
        .collect();
    let targets = match arch {
        // An example of a task of its own may have several.
        Arch::Own => "targets",
        _ if accuracy.is_some() => "rows",
        _ => "tokens",
    };
    format!("validation at update {update}: loss {loss:.4} over {} {targets}{scores}", text::count(*tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validation_is_told_with_the_figures_it_has() {
        let mut validation = Validation { update: 20, loss: 2.25, tokens: 4096, ..Validation::default() };
        let told = |validation: &Validation| validated(validation, Arch::Llama);
        assert_eq!(told(&validation), "validation at update 20: loss 2.2500 over 4,096 tokens");
        (validation.accuracy, validation.f1, validation.f1_macro) = (Some(0.875), Some(0.8), Some(0.85));
        assert_eq!(
            told(&validation),
            "validation at update 20: loss 2.2500 over 4,096 rows, accuracy 0.8750, F1 0.8000, macro F1 0.8500"
        );
    }
}
