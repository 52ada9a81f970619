//! `tui-train config`: a configuration to start from, resolved, checked, or described.

use std::fmt::Write as _;

use super::{BAD_USAGE, output, settings::Settings};
use crate::{
    config::{ConfigError, Layers, fields, own},
    ui::settings,
};

/// What to do with a configuration.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print a file with every key, its value in the demo and its help, all commented out
    Init,
    /// Print the resolved configuration as TOML
    Print(Settings),
    /// Say ok, or what is wrong and where
    Validate(Settings),
    /// Print the JSON Schema of the file
    Schema,
    /// Print a file of settings for the screens: every key and the look, commented out, to start from
    ///
    /// The screens read it from $XDG_CONFIG_HOME/tui-train/ui.toml, else ~/.config/tui-train/ui.toml, or from where --ui
    /// or TUI_TRAIN_UI says.
    Keys,
}

/// Prints what was asked for. The exit code of a configuration that cannot be used is 2.
///
/// # Errors
/// The configuration to print cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    match args.action {
        Action::Init => output::text(&init()?),
        Action::Print(settings) => {
            let resolved = settings.resolve()?;
            resolved.notes.iter().for_each(|note| output::message(note));
            output::text(&resolved.config.to_settings()?)
        }
        Action::Validate(settings) => match settings.resolve() {
            Ok(resolved) => {
                resolved.notes.iter().for_each(|note| output::message(note));
                output::text("ok\n")
            }
            Err(error) => {
                output::message(&format!("error: {error}"));
                Ok(BAD_USAGE)
            }
        },
        Action::Keys => output::text(&settings::template()),
        Action::Schema => output::json(&super::config_schema::schema()),
    }
}

/// Every key with the value it has in the demo. Nothing is set until a `#` is taken away, and taking all of them
/// away changes nothing.
fn init() -> Result<String, ConfigError> {
    let config = Layers::new().resolve()?.config;
    let values: toml::Table = config
        .to_toml()?
        .parse()
        .map_err(|error: toml::de::Error| ConfigError::Conflict(error.message().to_owned()))?;
    let mut text =
        "# A configuration of tui-train. Every key is optional: take the # away to set it.\n".to_owned();
    let first = own::registered().map_or("the demo", |task| task.preset.name);
    text += &format!(
        "# The values are those of {first}. Another preset has others: set only what should differ from it.\n"
    );
    let mut section = "";
    for field in fields::all() {
        let (table, key) = field.key.rsplit_once('.').unwrap_or(("", field.key));
        if table != section {
            section = table;
            let _ = write!(text, "\n[{table}]\n");
        }
        let here = fields::applies(field.key, config.model.arch);
        let value = find(&values, field.key).filter(|_| here).map(|value| format!("# {key} = {value}"));
        let only = if here { String::new() } else { format!(", no key of {}", config.model.arch.as_str()) };
        let unit = match field.unit_of(config.model.arch) {
            "" => String::new(),
            unit => format!(" ({unit})"),
        };
        let about = format!("{}{unit}; {}", field.help, field.kind.expected());
        let _ = match value {
            Some(line) => writeln!(text, "{line:<40} # {about}"),
            None => writeln!(text, "{:<40} # {about}", format!("# {key}: not set{only}")),
        };
    }
    Ok(text)
}

fn find<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        Some((head, rest)) => find(table.get(head)?.as_table()?, rest),
        None => table.get(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fields::FIELDS;

    #[test]
    fn the_file_sets_nothing_and_uncommented_it_is_the_demo() {
        let demo = Layers::new().resolve().unwrap().config;
        let text = init().unwrap();
        let as_it_is = Layers::new().with_toml(&text, "init").unwrap().resolve().unwrap();
        assert!(as_it_is.explicit.is_empty());
        assert_eq!(as_it_is.config, demo);
        let set: String = text
            .lines()
            .skip(2)
            .filter(|line| !line.contains(": not set"))
            .map(|line| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let all = Layers::new().with_toml(&set, "init").unwrap().resolve().unwrap();
        assert_eq!(all.config, demo);
        assert!(all.explicit.len() > 40, "{}", all.explicit.len());
        for field in FIELDS {
            assert!(text.contains(field.help), "{}", field.key);
        }
    }

    #[test]
    fn a_bad_configuration_is_exit_code_2() {
        let check = |set: &str| {
            let settings = Settings { set: vec![set.into()], ..Settings::default() };
            run(Args { action: Action::Validate(settings) }).unwrap()
        };
        assert_eq!((check("train.accumulate=4"), check("train.acumulate=4")), (0, BAD_USAGE));
    }
}
