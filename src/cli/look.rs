//! How the screens look and what they listen to: flags over variables over a person's own file of settings.

use std::{
    ffi::OsString,
    io::IsTerminal,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    app::look::{Call, Signs, ThemeName},
    config::{ConfigError, layers},
    shell::Launch,
    ui::{
        keys::Keys,
        settings::Settings,
        theme::{SIGNS, THEME, is_light},
    },
};

/// The variable that names the file of settings.
const UI: &str = "TUI_TRAIN_UI";

/// `[--theme NAME] [--signs NAME | --ascii] [--no-mouse] [--notice HOW] [--title] [--ui PATH]`
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
    /// Tell that the run has ended, failed or warned: none, bell, or osc9 for a notice on the desktop
    #[arg(long, value_name = "HOW", value_parser = Call::from_str)]
    notice: Option<Call>,
    /// Let the window's title tell the run and how it stands
    #[arg(long)]
    title: bool,
    /// Keys and look from this file instead of ~/.config/tui-train/ui.toml; also TUI_TRAIN_UI; see `config keys`
    #[arg(long, value_name = "PATH")]
    ui: Option<PathBuf>,
}

impl Look {
    /// Flags over environment over file.
    ///
    /// # Errors
    /// A file that cannot be read, or a name in it or in a variable that is not known.
    pub fn apply(&self, launch: &mut Launch) -> Result<(), ConfigError> {
        let settings = self.settings(|name| std::env::var_os(name))?;
        let light = is_light(|name| std::env::var(name).ok());
        let default = if light { ThemeName::Light } else { ThemeName::default() };
        let theme = self.theme.map_or_else(|| named(THEME), |name| Ok(Some(name)))?;
        launch.theme = theme.or(settings.theme).unwrap_or(default);
        let flag = self.signs.or(self.ascii.then_some(Signs::Ascii));
        let signs = flag.map_or_else(|| named(SIGNS), |signs| Ok(Some(signs)))?;
        launch.signs = signs.or(settings.signs);
        launch.mouse = !self.no_mouse && settings.mouse.unwrap_or(true);
        launch.call = self.notice.or(settings.notice).unwrap_or_default();
        launch.title = self.title || settings.title.unwrap_or(false);
        launch.keys = Keys::of(settings.keys);
        Ok(())
    }

    /// What the file says; one that nobody named need not be there.
    fn settings(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Settings, ConfigError> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let path = match self.ui.clone().or_else(|| set(UI)) {
            Some(path) => path,
            None => {
                let folder = set("XDG_CONFIG_HOME")
                    .filter(|path| path.is_absolute())
                    .or_else(|| set("HOME").map(|home| home.join(".config")));
                match folder.map(|folder| folder.join("tui-train/ui.toml")).filter(|path| path.exists()) {
                    Some(path) => path,
                    None => return Ok(Settings::default()),
                }
            }
        };
        read(&path)
    }
}

fn read(path: &Path) -> Result<Settings, ConfigError> {
    Settings::read(&layers::read(path)?, &path.display().to_string())
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

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_that_opens_the_screens_takes_the_look() {
        for command in ["run", "resume", "fork", "attach"] {
            let look = ["--theme", "light", "--signs", "blocks", "--no-mouse", "--title", "--notice", "bell"];
            let line = ["tui-train", command].into_iter().chain(look);
            assert!(Cli::try_parse_from(line).is_ok(), "{command}");
            let both = ["tui-train", command, "--ascii", "--signs", "blocks"];
            assert!(Cli::try_parse_from(both).is_err(), "{command}");
        }
        Cli::command().debug_assert();
    }

    #[test]
    fn the_file_is_where_it_is_named_or_where_one_expects_it_or_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, theme: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, format!("theme = \"{theme}\"\n")).unwrap();
            path
        };
        let named = at("named.toml", "light");
        at("xdg/tui-train/ui.toml", "high-contrast");
        at("home/.config/tui-train/ui.toml", "colour-blind");
        let path = |name: &str| folder.path().join(name).into_os_string();
        let all =
            [("TUI_TRAIN_UI", path("named.toml")), ("XDG_CONFIG_HOME", path("xdg")), ("HOME", path("home"))];
        let theme = |look: &Look, from: usize| {
            let variable = |name: &str| {
                all[from..].iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
            };
            look.settings(variable).map(|settings| settings.theme)
        };
        let look = Look::default();
        assert_eq!(theme(&look, 0).unwrap(), Some(ThemeName::Light));
        assert_eq!(theme(&look, 1).unwrap(), Some(ThemeName::HighContrast));
        assert_eq!(theme(&look, 2).unwrap(), Some(ThemeName::ColourBlind));
        assert_eq!(theme(&look, 3).unwrap(), None, "no HOME is fine");
        assert_eq!(theme(&Look { ui: Some(named), ..Look::default() }, 1).unwrap(), Some(ThemeName::Light));
        let missing = Look { ui: Some(folder.path().join("missing.toml")), ..Look::default() };
        assert!(
            theme(&missing, 3).unwrap_err().to_string().contains("missing.toml"),
            "a named file must be there"
        );
    }
}
