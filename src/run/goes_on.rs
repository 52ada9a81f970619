//! How a run goes on that did not make all of its updates: resumed, or by another command where it would only fail again.

use std::collections::BTreeMap;

use super::{RunDir, RunError, checkpoint, text::shell_word};
use crate::config::own;

/// How a run that has ended can go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GoesOn {
    /// As it is, from its newest checkpoint.
    #[default]
    Resumed,
    /// By this command.
    By(String),
    /// It has made its updates, or no command is known to help.
    Not,
}

/// The command that resumes a run as it is.
pub fn resumed(run: &RunDir) -> String {
    format!("{} resume {}", own::program(), shell_word(&run.called()))
}

/// How a run goes on that ran out of memory; with these settings it would have room.
///
/// # Errors
/// A file of its folder cannot be read.
pub fn after_out_of_memory(run: &RunDir, settings: &[(&str, String)]) -> Result<GoesOn, RunError> {
    Ok(if settings.is_empty() { GoesOn::Not } else { GoesOn::By(with(run, settings)?) })
}

/// The command that trains on with other settings, which a resumption would refuse: a fork of the newest checkpoint or,
/// where there is none, a new run with everything that was set by hand.
///
/// # Errors
/// A file of the run's folder cannot be read.
pub fn with(run: &RunDir, settings: &[(&str, String)]) -> Result<String, RunError> {
    let changes: BTreeMap<String, String> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    if checkpoint::latest_checkpoint(run)?.is_some() {
        return Ok(format!("{} fork {}{}", own::program(), shell_word(&run.called()), assignments(&changes)));
    }
    let mut set = run.explicit()?;
    set.extend(changes);
    let script = run.commands_toml();
    let commands = if script.is_file() {
        format!(" --commands {}", shell_word(&script.display().to_string()))
    } else {
        String::new()
    };
    Ok(format!("{} run{commands}{}{}", own::program(), assignments(&set), named(run)?))
}

/// The name that the run was given, where it is not the one that it would have had.
fn named(run: &RunDir) -> Result<String, RunError> {
    let name = run.meta()?.name;
    Ok(if name == run.config()?.run_name() {
        String::new()
    } else {
        format!(" --name {}", shell_word(&name))
    })
}

/// ` --set key=value` for each, values as TOML.
pub fn assignments(set: &BTreeMap<String, String>) -> String {
    set.iter()
        .map(|(key, value)| format!(" --set {}", shell_word(&format!("{key}={}", bare(value)))))
        .collect()
}

/// A TOML value without its quotes, where it says the same without them.
pub fn bare(value: &str) -> &str {
    let inside = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.filter(|inside| !inside.contains(['"', '\\'])).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    const SMALLER: [(&str, &str); 2] = [("train.micro_batch", "2"), ("train.accumulate", "4")];

    fn smaller() -> Vec<(&'static str, String)> {
        SMALLER.map(|(key, value)| (key, value.to_owned())).to_vec()
    }

    #[test]
    fn a_run_without_a_checkpoint_is_repeated_with_the_change_and_one_with_it_is_forked() {
        let (_folder, run) =
            sample::run_with("it's large", &["train.micro_batch=8", "data.tokenizer=my files/t.json"]);
        let anew = after_out_of_memory(&run, &smaller()).unwrap();
        let told = "tui-train run --set 'data.tokenizer=my files/t.json' --set train.accumulate=4 --set train.micro_batch=2 \
                    --name 'it'\\''s large'";
        assert_eq!(anew, GoesOn::By(told.to_owned()));
        sample::checkpoint(&run, 3);
        let fork =
            format!("tui-train fork {} --set train.accumulate=4 --set train.micro_batch=2", run.called());
        assert_eq!(after_out_of_memory(&run, &smaller()).unwrap(), GoesOn::By(fork));
        assert_eq!(after_out_of_memory(&run, &[]).unwrap(), GoesOn::Not, "nothing would help");
    }
}
