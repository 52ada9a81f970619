//! One row an update as lines of JSON, each with the same keys, and with more where the model wrote a text.

use std::io::{self, Write};

use super::{
    ExportError,
    kept::Progress,
    rows::{self, COLUMNS, Cell},
};
use crate::{
    protocol::{TextSample, number},
    run::{RunDir, text::plain_json},
};

/// The keys behind the columns of an update after which a text was written.
pub const TEXTS: [&str; 4] = ["sample/prompt", "sample/greedy", "sample/drawn", "sample/temperature"];

/// Writes all updates as one JSON object a line. A value is null where there was no such event; what is not finite is
/// `"nan"`, `"inf"` or `"-inf"`.
///
/// # Errors
/// The record cannot be read, or `out` cannot be written.
pub fn write(run: &RunDir, out: &mut dyn Write, progress: Progress<'_>) -> Result<(), ExportError> {
    rows::each(run, progress, |cells, sample| {
        row(out, cells)?;
        Ok(texts(out, sample)?)
    })
}

fn row(out: &mut dyn Write, cells: &[Cell]) -> io::Result<()> {
    for (at, (name, cell)) in COLUMNS.iter().zip(cells).enumerate() {
        write!(out, "{}\"{name}\":", if at == 0 { '{' } else { ',' })?;
        match *cell {
            Cell::Empty => out.write_all(b"null")?,
            Cell::Whole(value) => write!(out, "{value}")?,
            Cell::Flag(value) => write!(out, "{value}")?,
            Cell::Float(value) => match number::word(value) {
                Some(word) => write!(out, "\"{word}\"")?,
                None => write!(out, "{value:?}")?,
            },
        }
    }
    Ok(())
}

/// The text that the model wrote after that update: with the likeliest tokens, and with drawn ones.
fn texts(out: &mut dyn Write, sample: Option<&TextSample>) -> io::Result<()> {
    let Some(sample) = sample else { return out.write_all(b"}\n") };
    let of = |drawn: bool| sample.texts.iter().find(|text| (text.temperature > 0.0) == drawn);
    let (greedy, drawn) = (of(false), of(true));
    let values = [
        plain_json(&serde_json::to_string(&sample.prompt)?),
        plain_json(&serde_json::to_string(&greedy.map(|text| &text.text))?),
        plain_json(&serde_json::to_string(&drawn.map(|text| &text.text))?),
        serde_json::to_string(&drawn.map(|text| text.temperature))?,
    ];
    for (name, value) in TEXTS.iter().zip(values) {
        write!(out, ",\"{name}\":{value}")?;
    }
    out.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::run::{EventWriter, sample};

    #[test]
    fn every_line_is_json_with_every_key() {
        let (_folder, run) = sample::run("jsonl");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for (update, loss) in [(1, 0.1 + 0.2), (2, f64::INFINITY), (3, 1e-30)] {
            writer.append(&sample::update(update, loss)).unwrap();
            if update == 2 {
                writer.append(&sample::validation(2, f64::NAN)).unwrap();
                writer.append(&sample::text(2)).unwrap();
            }
        }
        let mut bytes = Vec::new();
        write(&run, &mut bytes, &mut |_, _| {}).unwrap();
        let rows: Vec<Value> = bytes
            .split(|&b| b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(rows.len(), 3);
        for row in &rows {
            let keys: Vec<_> = row.as_object().unwrap().keys().collect();
            let texts = if row["update"] == 2 { &TEXTS[..] } else { &[] };
            assert!(keys.iter().copied().eq(COLUMNS.iter().chain(texts)), "{keys:?}");
        }
        assert_eq!(rows[0]["train/loss"].as_f64(), Some(0.1 + 0.2));
        assert_eq!(rows[2]["train/loss"].as_f64(), Some(1e-30));
        assert_eq!((&rows[1]["train/loss"], &rows[1]["val/loss"]), (&"inf".into(), &"nan".into()));
        assert_eq!(rows[1]["sample/greedy"], "the sun rises\n");
        assert_eq!(rows[1]["sample/temperature"], 0.8);
        assert!(rows[0]["val/loss"].is_null() && rows[1]["skipped"] == false);
    }
}
