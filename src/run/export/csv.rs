//! One row an update, with the metrics' names as columns.

use std::collections::BTreeMap;

use crate::{
    protocol::{Event, Update, number},
    run::{Record, RunDir, RunError},
};

/// The columns, in order.
pub const COLUMNS: [&str; 10] = [
    "update",
    "time",
    "tokens",
    "micro_batches",
    "train/loss",
    "train/learning_rate",
    "train/grad_norm",
    "perf/tokens_per_second",
    "skipped",
    "val/loss",
];

/// What is known of one update.
#[derive(Debug, Clone, Default)]
struct Row {
    update: Option<Update>,
    /// Time and loss.
    validation: Option<(f64, f64)>,
}

/// All updates as CSV. A cell is empty where there was no such event; numbers read back as they were.
///
/// # Errors
/// The record cannot be read.
pub fn render(run: &RunDir) -> Result<Vec<u8>, RunError> {
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    Record::read_with(run, |event| match event {
        Event::Update(update) => {
            rows.entry(update.update).or_default().update = Some(update.clone());
        }
        Event::Validation(validation) => {
            rows.entry(validation.update).or_default().validation = Some((validation.time, validation.loss));
        }
        Event::Resumed(resumed) => {
            rows.retain(|update, _| *update <= resumed.from_update);
        }
        _ => {}
    })?;
    write(&rows).map_err(|error| RunError::Damaged { path: run.events(), problem: error.to_string() })
}

fn write(rows: &BTreeMap<u64, Row>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for (number, row) in rows {
        let update = row.update.as_ref();
        let whole = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let float = |value: Option<f64>| value.map(text).unwrap_or_default();
        writer.write_record([
            number.to_string(),
            float(update.map(|u| u.time).or(row.validation.map(|(time, _)| time))),
            whole(update.map(|u| u.tokens)),
            whole(update.map(|u| u.micro_batches)),
            float(update.map(|u| u.loss)),
            float(update.map(|u| u.learning_rate)),
            float(update.map(|u| u.grad_norm)),
            float(update.map(|u| u.tokens_per_second)),
            update.map(|u| u.skipped.to_string()).unwrap_or_default(),
            float(row.validation.map(|(_, loss)| loss)),
        ])?;
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

/// The shortest text that reads back as the same number.
fn text(value: f64) -> String {
    number::word(value).map_or_else(|| format!("{value:?}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{EventWriter, sample};

    fn rows(run: &RunDir) -> Vec<BTreeMap<String, String>> {
        let bytes = render(run).unwrap();
        csv::Reader::from_reader(&bytes[..]).deserialize().map(Result::unwrap).collect()
    }

    #[test]
    fn every_update_comes_back_with_its_numbers() {
        let (_folder, run) = sample::run("csv");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let losses = [2.5e-7, 0.1 + 0.2, f64::NAN, 12_345.678];
        for (index, &loss) in losses.iter().enumerate() {
            writer.append(&sample::update(index as u64 + 1, loss)).unwrap();
        }
        writer.append(&sample::validation(2, 2.5)).unwrap();
        writer.append(&sample::validation(9, 2.25)).unwrap();
        let rows = rows(&run);
        assert_eq!(rows.len(), 5);
        for (row, loss) in rows.iter().zip(losses) {
            let read: f64 = row["train/loss"].parse().unwrap();
            assert!(read == loss || (read.is_nan() && loss.is_nan()), "{row:?}");
        }
        assert_eq!((rows[1]["val/loss"].as_str(), rows[0]["val/loss"].as_str()), ("2.5", ""));
        assert_eq!((rows[3]["tokens"].as_str(), rows[3]["skipped"].as_str()), ("2048", "false"));
        assert_eq!((rows[4]["update"].as_str(), rows[4]["train/loss"].as_str()), ("9", ""));
    }

    #[test]
    fn updates_that_a_resumed_run_dropped_are_gone() {
        let (_folder, run) = sample::run("csv");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for (update, loss) in [(1, 5.0), (2, 4.0), (3, 3.0)] {
            writer.append(&sample::update(update, loss)).unwrap();
        }
        writer.append(&Event::resumed(1)).unwrap();
        writer.append(&sample::update(2, 4.5)).unwrap();
        let losses: Vec<_> = rows(&run).iter().map(|row| row["train/loss"].clone()).collect();
        assert_eq!(losses, ["5.0", "4.5"]);
    }
}
