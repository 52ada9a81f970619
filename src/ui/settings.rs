//! A person's own settings of the screens: look, mouse, notices and keys, as TOML.

use std::{fmt::Write as _, ops::Range, str::FromStr};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    keymap::BINDINGS,
    keys::{Change, Key, Keymap, contexts, place},
};
use crate::{
    app::{
        action::{ACTIONS, About, Action},
        focus::Context,
        look::{Call, Signs, ThemeName},
        palette,
    },
    config::{ConfigError, layers::toml_problem},
    run::checkpoint_view::nearest,
};

/// What a file of settings says; nothing where it says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub theme: Option<ThemeName>,
    pub signs: Option<Signs>,
    /// Whether the mouse is listened to.
    pub mouse: Option<bool>,
    pub notice: Option<Call>,
    /// Whether the window is given a title.
    pub title: Option<bool>,
    pub keys: Keymap,
}

/// The keys at the top of the file.
const NAMES: [&str; 7] = ["theme", "signs", "mouse", "notice", "title", "keys", "on"];

/// Where something is wrong, as bytes of the text, and what.
type Wrong = (Range<usize>, String);

impl Settings {
    /// Reads the text of the file at `path`.
    ///
    /// # Errors
    /// One sentence with the file, the line, and the name that was meant most likely.
    pub fn read(text: &str, path: &str) -> Result<Self, ConfigError> {
        let told = |problem: String| ConfigError::File { path: path.to_owned(), problem };
        let line = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|error| told(toml_problem(text, &error)))?;
        let mut settings = Self::default();
        let changes = settings
            .take(table.get_ref(), &line)
            .map_err(|(span, problem)| told(format!("line {}: {problem}", line(span.start))))?;
        settings.keys = Keymap::default()
            .with(&changes)
            .map_err(|(line, problem)| told(format!("line {line}: {problem}")))?;
        Ok(settings)
    }

    fn take(&mut self, table: &DeTable<'_>, line: &dyn Fn(usize) -> usize) -> Result<Vec<Change>, Wrong> {
        let mut changes = Vec::new();
        for (key, value) in table {
            match &**key.get_ref() {
                "theme" => self.theme = Some(named(value)?),
                "signs" => self.signs = Some(named(value)?),
                "notice" => self.notice = Some(named(value)?),
                "mouse" => self.mouse = Some(switch(value)?),
                "title" => self.title = Some(switch(value)?),
                "keys" => actions(None, inner(value)?, line, &mut changes)?,
                "on" => {
                    for (key, value) in inner(value)? {
                        let context = context(key)?;
                        actions(Some(context), inner(value)?, line, &mut changes)?;
                    }
                }
                other => return Err(unknown(key, "setting", other, NAMES.into_iter())),
            }
        }
        Ok(changes)
    }
}

fn unknown<'a>(
    key: &Spanned<impl Sized>,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Wrong {
    let near = nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    (key.span(), format!("no {what} `{name}`{near}"))
}

fn inner<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Result<&'a DeTable<'i>, Wrong> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => Err((value.span(), "expected a table: a line such as `pause = \"p\"` for each action".into())),
    }
}

fn switch(value: &Spanned<DeValue<'_>>) -> Result<bool, Wrong> {
    match value.get_ref() {
        DeValue::Boolean(on) => Ok(*on),
        _ => Err((value.span(), "expected true or false".to_owned())),
    }
}

fn named<T: FromStr<Err = String>>(value: &Spanned<DeValue<'_>>) -> Result<T, Wrong> {
    match value.get_ref() {
        DeValue::String(name) => name.parse().map_err(|why| (value.span(), why)),
        _ => Err((value.span(), "expected a name in quotes".to_owned())),
    }
}

fn context(key: &Spanned<impl AsRef<str>>) -> Result<Context, Wrong> {
    let name = key.get_ref().as_ref();
    let all: Vec<(Context, String)> =
        contexts().into_iter().map(|context| (context, place(context))).collect();
    match all.iter().find(|(_, known)| known == name) {
        Some((context, _)) => Ok(*context),
        None => Err(unknown(key, "place", name, all.iter().map(|(_, known)| known.as_str()))),
    }
}

fn actions(
    place: Option<Context>,
    table: &DeTable<'_>,
    line: &dyn Fn(usize) -> usize,
    changes: &mut Vec<Change>,
) -> Result<(), Wrong> {
    for (key, value) in table {
        let name = &**key.get_ref();
        let Some(about) = ACTIONS.iter().find(|about| about.name == name) else {
            if palette::choices().any(|choice| choice.name == name) {
                let why = format!("`{name}` needs words after it, which no key can give: type it after `:`");
                return Err((key.span(), why));
            }
            return Err(unknown(key, "action", name, ACTIONS.iter().map(|about| about.name)));
        };
        let keys = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(pressed).collect::<Result<_, _>>()?,
            _ => vec![pressed(value)?],
        };
        changes.push(Change { place, action: about.action, keys, line: line(key.span().start) });
    }
    Ok(())
}

fn pressed(value: &Spanned<DeValue<'_>>) -> Result<Key, Wrong> {
    match value.get_ref() {
        DeValue::String(text) => text.parse().map_err(|why| (value.span(), why)),
        _ => {
            Err((value.span(), "expected a key in quotes, such as \"p\" or \"F5\", or a list of them".into()))
        }
    }
}

const HEAD: &str = "\
# The screens of tui-train as you want them. Save it as ~/.config/tui-train/ui.toml (or under $XDG_CONFIG_HOME, or
# anywhere that TUI_TRAIN_UI or --ui names), take a # away, and change what follows it. What is not there stays as it is.
# A flag beats a variable of the environment, which beats this file.

# dark, light, high-contrast, colour-blind or monochrome; without it light on a light background, else dark
# theme = \"dark\"
# braille, blocks or ascii; without it what the locale and TERM can show
# signs = \"braille\"
# false leaves the mouse, and selecting text with it, to the terminal
# mouse = true
# how you are told that a run has ended, failed or warned: none, bell, or osc9 for a notice on the desktop
# notice = \"none\"
# whether the window's title tells the run and how it stands
# title = false

# Keys are written as they are shown in the help: a, A, Space, Enter, Tab, Shift+Tab, Esc, Up, PgDn, F5, Ctrl+X.
# One key or a list of them; an empty list leaves the action to the palette. Two actions cannot share a key in one place.
";

/// A file to start from: every setting and every key as it is without one, commented out.
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n# Wherever the action has a key.\n[keys]\n");
    let rows = |about: &'static About| {
        BINDINGS.iter().filter(move |binding| binding.action.about().name == about.name)
    };
    let alike = |about: &'static About| {
        let first = rows(about).next();
        first.is_some_and(|first| rows(about).all(|binding| binding.keys == first.keys))
    };
    for about in ACTIONS.iter().filter(|about| alike(about)) {
        if let Some(binding) = rows(about).next() {
            line(&mut text, about, binding.keys);
        }
    }
    for context in contexts() {
        let here = BINDINGS.iter().filter(|binding| binding.context == context);
        let here: Vec<_> = here.filter(|binding| !alike(binding.action.about())).collect();
        if here.is_empty() {
            continue;
        }
        let _ = write!(text, "\n[on.{}]\n", place(context));
        for binding in here {
            line(&mut text, binding.action.about(), binding.keys);
        }
    }
    let free: Vec<&str> =
        ACTIONS.iter().filter(|about| rows(about).next().is_none()).map(|about| about.name).collect();
    if !free.is_empty() {
        let _ = write!(text, "\n# Actions without a key, which may have one: {}.\n", free.join(", "));
    }
    text
}

fn line(text: &mut String, about: &About, keys: &[Key]) {
    let quoted = |key: &Key| toml::Value::String(key.to_string()).to_string();
    let keys: Vec<String> = keys.iter().map(quoted).collect();
    let value = match &keys[..] {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let what = if matches!(about.action, Action::Help) { "the help" } else { about.help };
    let _ = writeln!(text, "{:<44} # {what}", format!("# {} = {value}", about.name));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        Settings::read(text, "ui.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn everything_is_read() {
        let text = "theme = \"light\"\nsigns = \"ascii\"\nmouse = false\nnotice = \"bell\"\ntitle = true\n\
                    [keys]\npause = \"F5\"\nstop = []\n[on.runs]\nmark = [\"F6\", \"Z\"]\n";
        let settings = read(text).unwrap();
        assert_eq!((settings.theme, settings.signs), (Some(ThemeName::Light), Some(Signs::Ascii)));
        assert_eq!((settings.mouse, settings.title), (Some(false), Some(true)));
        assert_eq!(settings.notice, Some(Call::Bell));
        let key = |text: &str| text.parse::<Key>().unwrap();
        assert_eq!(settings.keys.find(Context::Train, key("F5")), Some(Action::PauseResume));
        assert_eq!(settings.keys.find(Context::Train, key("x")), None);
        assert_eq!(settings.keys.find(Context::Runs, key("Z")), Some(Action::Mark));
        assert_eq!(read("").unwrap(), Settings::default());
    }

    #[test]
    fn a_mistake_is_one_sentence_with_the_line_and_the_nearest_name() {
        for (text, parts) in [
            ("\ntheem = \"dark\"", ["line 2", "no setting `theem`", "`theme`"]),
            ("theme = \"blue\"", ["line 1", "no theme `blue`", "high-contrast"]),
            ("mouse = \"no\"", ["line 1", "true or false", ""]),
            ("notice = 1", ["line 1", "in quotes", ""]),
            ("[keys]\n\npuase = \"p\"", ["line 3", "no action `puase`", "`pause`"]),
            ("[keys]\npause = \"entr\"", ["line 2", "no key `entr`", "`Enter`"]),
            ("[keys]\npause = [\"p\", 5]", ["line 2", "a key in quotes", ""]),
            ("[keys]\nset = \"F5\"", ["line 2", "`set` needs words", "`:`"]),
            ("keys = 3", ["line 1", "expected a table", ""]),
            ("[on.trian]\npause = \"p\"", ["line 1", "no place `trian`", "`train`"]),
            ("[keys]\nlog = \"F5\"\nsmoothing = \"F5\"", ["line 3", "`log` and `smoothing`", "`F5`"]),
            ("[keys]\npause = \"p", ["line 2", "not valid TOML", ""]),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("ui.toml: ") && !error.contains('\n'), "{error}");
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }

    #[test]
    fn the_template_changes_nothing_as_it_is_and_says_what_holds_when_it_is_uncommented() {
        let text = template();
        assert_eq!(read(&text).unwrap(), Settings::default());
        let set: String = text
            .lines()
            .skip(4)
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.split_once(" = ").is_some_and(|(name, _)| !name.contains(' ')) => {
                    rest.to_owned() + "\n"
                }
                _ => line.to_owned() + "\n",
            })
            .collect();
        let settings = read(&set).unwrap_or_else(|error| panic!("{error}\n{set}"));
        assert_eq!(settings.keys, Keymap::default());
        assert_eq!((settings.theme, settings.mouse), (Some(ThemeName::Dark), Some(true)));
        for binding in BINDINGS {
            assert!(set.contains(&format!("{} = ", binding.action.about().name)), "{:?}", binding.action);
        }
    }
}
