//! A run as TOML that trains it again without a person: what was set by hand, and the commands that it obeyed.

use std::fmt::Write as _;

use crate::run::{
    RunDir, RunError, script,
    text::{count, plain},
};

/// The whole file. Its settings are those that were set by hand, when the run was made or when it was resumed; of a run
/// that does not know them, all of them.
///
/// # Errors
/// The run or its record cannot be read.
pub(super) fn render(run: &RunDir) -> Result<Vec<u8>, RunError> {
    let explicit = run.explicit()?;
    let (record, given) = script::recorded(run)?;
    let mut text = String::new();
    // A file has one value of a setting: that an earlier part of the run had another one is at least said.
    for change in record.changed {
        let (update, key, before) = (count(change.from_update), plain(&change.key), plain(&change.before));
        let _ = writeln!(
            text,
            "# {key} was {before} up to update {update}, where the run was resumed with another"
        );
    }
    if explicit.is_empty() && !run.meta_json().exists() {
        text += &run.config()?.to_toml()?;
    } else {
        explicit.iter().for_each(|(key, value)| _ = writeln!(text, "{key} = {value}"));
    }
    let commands = script::toml(&given)
        .map_err(|error| RunError::Damaged { path: run.events(), problem: error.to_string() })?;
    Ok(format!("{text}\n{commands}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Event, Resumed},
        run::{EventWriter, sample},
    };

    #[test]
    fn settings_that_a_resumption_changed_are_in_the_file_with_what_they_were() {
        let (_folder, run) = sample::run_with("longer", &["train.accumulate=2"]);
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let mut config = run.config().unwrap();
        config.train.max_updates = Some(1200);
        std::fs::write(run.resumed_toml(), config.to_toml().unwrap()).unwrap();
        let changed = vec![["train.max_updates", "600", "1200"].map(str::to_owned)];
        let resumed = Resumed { from_update: 30, changed, ..Resumed::default() };
        writer.append(&Event::Resumed(Box::new(resumed))).unwrap();
        let text = String::from_utf8(render(&run).unwrap()).unwrap();
        assert!(text.starts_with("# train.max_updates was 600 up to update 30"), "{text}");
        let (settings, commands) = script::split(&text, "file").unwrap();
        let expected = "train.accumulate = 2\ntrain.max_updates = 1200";
        assert_eq!(settings.parse::<toml::Table>().unwrap(), expected.parse().unwrap());
        assert_eq!(commands, []);
    }
}
