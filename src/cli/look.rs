//! The flags and variables that say how the screens look.

use std::{io::IsTerminal, str::FromStr};

use crate::{
    app::look::{Signs, ThemeName},
    config::ConfigError,
    shell::Launch,
    ui::theme::{SIGNS, THEME},
};

/// `[--theme NAME] [--signs NAME | --ascii] [--no-mouse]`
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Look {
    /// Colours: dark, light, high-contrast, colour-blind or monochrome; also TUI_TRAIN_THEME, and T on the screens
    #[arg(long, value_name = "NAME", value_parser = ThemeName::from_str)]
    theme: Option<ThemeName>,
    /// Signs to draw with: braille, blocks or ascii; also TUI_TRAIN_SIGNS; by locale and TERM without
    #[arg(long, value_name = "NAME", value_parser = Signs::from_str, conflicts_with = "ascii")]
    signs: Option<Signs>,
    /// Draw with ASCII characters only
    #[arg(long)]
    ascii: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    no_mouse: bool,
}

impl Look {
    /// Flags over environment.
    ///
    /// # Errors
    /// A variable that holds a name that is not known.
    pub fn apply(&self, launch: &mut Launch) -> Result<(), ConfigError> {
        launch.theme = self.theme.map_or_else(|| named(THEME), |name| Ok(Some(name)))?.unwrap_or_default();
        let flag = self.signs.or(self.ascii.then_some(Signs::Ascii));
        launch.signs = flag.map_or_else(|| named(SIGNS), |signs| Ok(Some(signs)))?;
        launch.mouse = !self.no_mouse;
        Ok(())
    }
}

/// Whether the screens can be drawn on standard output: it is a terminal that can move its cursor.
pub fn can_draw() -> bool {
    std::io::stdout().is_terminal() && !is_dumb()
}

/// Whether the terminal is one that only prints line after line.
pub fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb")
}

/// The name in a variable; an empty one does not count.
fn named<T: FromStr<Err = String>>(variable: &str) -> Result<Option<T>, ConfigError> {
    let Some(value) = std::env::var(variable).ok().filter(|value| !value.is_empty()) else { return Ok(None) };
    let wrong = |why: String| ConfigError::Conflict(format!("environment variable {variable}: {why}"));
    value.parse().map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::cli::Cli;

    #[test]
    fn every_command_that_opens_the_screens_takes_the_look() {
        for command in ["run", "resume", "fork", "attach"] {
            let look = ["--theme", "light", "--signs", "blocks", "--no-mouse"];
            let line = ["tui-train", command].into_iter().chain(look);
            assert!(Cli::try_parse_from(line).is_ok(), "{command}");
            let both = ["tui-train", command, "--ascii", "--signs", "blocks"];
            assert!(Cli::try_parse_from(both).is_err(), "{command}");
        }
        Cli::command().debug_assert();
    }
}
