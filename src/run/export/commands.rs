//! A run as TOML that trains it again without a person: what was set by hand, and the commands that it obeyed.

use std::fmt::Write as _;

use crate::run::{
    RunDir, RunError,
    script::{self, Recorded},
    text::count,
};

/// The whole file. Its settings are those that were set by hand when the run was made; of a run that does not know them,
/// all of them. A fork begins with the run that it comes from.
///
/// # Errors
/// The run or a record cannot be read.
pub(super) fn render(run: &RunDir) -> Result<Vec<u8>, RunError> {
    let Recorded { explicit, made_with, given, trained_on, devices } = script::recorded(run)?;
    let mut text = String::new();
    // It would train the same anywhere; that this run changed over is at least said.
    for (update, device) in devices {
        let _ = writeln!(
            text,
            "# after update {} the run went on on {device}; this file does not",
            count(update)
        );
    }
    if let Some(data) = trained_on {
        let _ = writeln!(text, "{} = \"{data}\"", script::TRAINED_ON);
    }
    match explicit {
        Some(explicit) => explicit.iter().for_each(|(key, value)| _ = writeln!(text, "{key} = {value}")),
        None => text += &made_with.to_toml()?,
    }
    let commands = script::toml(&given)
        .map_err(|error| RunError::Damaged { path: run.events(), problem: error.to_string() })?;
    Ok(format!("{text}\n{commands}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Event, Header, Resumed},
        run::{
            EventWriter, sample,
            script::{Deed, Script},
        },
    };

    #[test]
    fn settings_that_a_resumption_changed_are_a_command_and_those_above_are_the_first_ones() {
        let (_folder, run) = sample::run_with("longer", &["train.accumulate=2"]);
        let mut before = sample::header(&run);
        before.data.content = "c0ffee".to_owned();
        let mut writer = EventWriter::create(&run, &before).unwrap();
        let mut config = run.config().unwrap();
        config.train.max_updates = Some(1200);
        config.train.device = "libtorch-cpu".parse().unwrap();
        std::fs::write(run.resumed_toml(), config.to_toml().unwrap()).unwrap();
        let header = Some(Box::new(Header { config, ..before }));
        let resumed = Resumed { from_update: 30, header, ..Resumed::default() };
        writer.append(&Event::Resumed(Box::new(resumed))).unwrap();
        let text = String::from_utf8(render(&run).unwrap()).unwrap();
        assert!(text.starts_with("# after update 30 the run went on on libtorch-cpu"), "{text}");
        let Script { config, commands, trained_on } = script::split(&text, "file").unwrap();
        assert_eq!(trained_on.as_deref(), Some("c0ffee"));
        assert_eq!(config.parse::<toml::Table>().unwrap(), "train.accumulate = 2".parse().unwrap());
        let [given] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!(given.at_update, 30);
        assert_eq!(given.deed, Deed::Settings(vec!["train.max_updates=1200".into()]));
    }
}
