//! The summary as JSON, the shape of `summary.json`.

use crate::run::{RunDir, RunError, Standing};

/// The summary, indented, with a line break at its end.
///
/// # Errors
/// The run has no record yet, or it cannot be read.
pub fn render(run: &RunDir) -> Result<Vec<u8>, RunError> {
    let standing = Standing::read(run)?;
    let json = standing.json().and_then(|value| serde_json::to_vec_pretty(&value));
    let mut bytes =
        json.map_err(|error| RunError::Damaged { path: run.path().to_owned(), problem: error.to_string() })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use crate::{
        protocol::Summary,
        run::{EventWriter, sample},
    };

    #[test]
    fn the_export_is_a_summary() {
        let (_folder, run) = sample::run("json");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, f64::INFINITY)).unwrap();
        writer.append(&sample::validation(1, f64::NAN)).unwrap();
        writer.append(&sample::run_ended(&run)).unwrap();
        let summary: Summary = serde_json::from_slice(&super::render(&run).unwrap()).unwrap();
        assert_eq!((summary.updates, summary.run.as_str()), (1, run.id()));
        assert!(summary.final_val_loss.unwrap().is_nan());
    }
}
