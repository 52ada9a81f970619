//! One row an update as CSV.

use std::io::{self, Write};

use super::{
    ExportError,
    kept::Progress,
    rows::{self, COLUMNS, Cell},
};
use crate::{protocol::number, run::RunDir};

/// Writes all updates as CSV, row after row. A cell is empty where there was no such event; numbers read back as they
/// were, and what is not finite is `nan`, `inf` or `-inf`.
///
/// # Errors
/// The record cannot be read, or `out` cannot be written.
pub fn write(run: &RunDir, out: &mut dyn Write, progress: Progress<'_>) -> Result<(), ExportError> {
    // Neither a name of a column nor a number needs quotes.
    writeln!(out, "{}", COLUMNS.join(","))?;
    rows::each(run, progress, |cells, _| Ok(row(out, cells)?))
}

fn row(out: &mut dyn Write, cells: &[Cell]) -> io::Result<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        match *cell {
            Cell::Empty => {}
            Cell::Whole(value) => write!(out, "{value}")?,
            Cell::Flag(value) => write!(out, "{value}")?,
            Cell::Float(value) => match number::word(value) {
                Some(word) => out.write_all(word.as_bytes())?,
                // The shortest text that reads back as the same number.
                None => write!(out, "{value:?}")?,
            },
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        protocol::{Event, Host},
        run::{EventWriter, sample},
    };

    fn rows(run: &RunDir) -> Vec<BTreeMap<String, String>> {
        let mut bytes = Vec::new();
        write(run, &mut bytes, &mut |_, _| {}).unwrap();
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
        let host = Host { update: 4, host_rss: Some(9), ..Host::default() };
        writer.append(&Event::Host(host)).unwrap();
        for (update, loss) in [(2, 2.5), (6, 2.375), (9, 2.25)] {
            writer.append(&sample::validation(update, loss)).unwrap();
        }
        writer.append(&sample::update(7, 1.0)).unwrap();
        let rows = rows(&run);
        let updates: Vec<_> = rows.iter().map(|row| row["update"].as_str()).collect();
        assert_eq!(updates, ["1", "2", "3", "4", "6", "7", "9"]);
        for (row, loss) in rows.iter().zip(losses) {
            let read: f64 = row["train/loss"].parse().unwrap();
            assert!(read == loss || (read.is_nan() && loss.is_nan()), "{row:?}");
        }
        assert_eq!((rows[1]["val/loss"].as_str(), rows[0]["val/loss"].as_str()), ("2.5", ""));
        assert_eq!((rows[3]["tokens"].as_str(), rows[3]["skipped"].as_str()), ("2048", "false"));
        assert_eq!((rows[3]["mem/host_rss"].as_str(), rows[2]["mem/host_rss"].as_str()), ("9", ""));
        assert_eq!((rows[6]["val/loss"].as_str(), rows[6]["train/loss"].as_str()), ("2.25", ""));
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
