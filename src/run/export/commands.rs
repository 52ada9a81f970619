//! A run as TOML that trains it again without a person: what was set by hand, and the commands that it obeyed.

use crate::run::{RunDir, RunError, script};

/// The whole file. Its settings are those that were set by hand; of a run that does not know them, all of them.
///
/// # Errors
/// The run or its record cannot be read.
pub(super) fn render(run: &RunDir) -> Result<Vec<u8>, RunError> {
    let explicit = run.meta()?.explicit;
    let settings = if explicit.is_empty() && !run.meta_json().exists() {
        run.config()?.to_toml()?
    } else {
        explicit.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
    };
    let commands = script::toml(&script::recorded(run)?)
        .map_err(|error| RunError::Damaged { path: run.events(), problem: error.to_string() })?;
    Ok(format!("{settings}\n{commands}").into_bytes())
}
