//! The command palette: every action by name, some with an argument.

use super::{
    action::{ACTIONS, About, Action},
    input::TextLine,
    look::ThemeName,
};
use crate::run::{
    export::NAMES,
    label::{note_text, run_name},
};

/// Commands that are no single action: name, argument, help.
const MORE: &[(&str, &str, &str)] = &[
    ("set", "KEY=VALUE", "set a field of the draft"),
    ("grid", "KEY=A,B KEY=C,D", "queue the draft with every combination"),
    ("save", "FILE", "write the draft as a configuration file"),
    ("name", "NAME", "name of the next run"),
    ("resume", "KEY=VALUE", "go on with the run, settings changed"),
    ("watch", "RUN", "watch another run: id, start of it, or name"),
    ("beside-run", "RUN", "the opened tensor beside that run's"),
    ("export", "FORMAT", "write the run as a file, or a folder"),
    ("picture", "FILE", "draw this screen into a .svg, .txt or .ans"),
];

/// What a line in the palette asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Do(Action),
    Set {
        key: String,
        value: String,
    },
    Name(String),
    /// One `key=a,b` each.
    Grid(Vec<String>),
    /// One `key=value` each.
    Resume(Vec<String>),
    /// Write the draft into that file.
    Save(String),
    Watch(String),
    Beside(String),
    Rename(String),
    /// Empty: the note is taken away.
    Note(String),
    Export(String),
    /// A file to draw the screen into.
    Picture(String),
}

/// One line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub name: &'static str,
    pub argument: &'static str,
    pub help: &'static str,
}

/// The palette while it is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Palette {
    pub line: TextLine,
    pub selected: usize,
    pub error: Option<String>,
}

/// The commands that no key can be given to, since words follow them.
pub fn more() -> impl Iterator<Item = Choice> {
    MORE.iter().map(|&(name, argument, help)| Choice { name, argument, help })
}

/// Every command the palette knows.
pub fn choices() -> impl Iterator<Item = Choice> {
    let actions = ACTIONS
        .iter()
        .filter(|about| about.action != Action::Palette)
        .map(|&About { name, argument, help, .. }| Choice { name, argument, help });
    actions.chain(more())
}

/// What may follow a command, where that is one of a few words, and what each stands for.
fn values(name: &str) -> Vec<(&'static str, &'static str)> {
    match name {
        "export" => NAMES.to_vec(),
        "theme" => ThemeName::ALL.map(|theme| (theme.as_str(), "this look")).to_vec(),
        _ => Vec::new(),
    }
}

impl Palette {
    /// The commands that fit what was typed, best first.
    pub fn matches(&self) -> Vec<Choice> {
        let typed = self.line.text().trim_start();
        let (word, rest) = typed.split_once(' ').map_or((typed, None), |(word, rest)| (word, Some(rest)));
        let word = word.to_lowercase();
        let known = choices().find(|choice| choice.name == word);
        if let (Some(rest), Some(known)) = (rest, known) {
            let fits = |(value, _): &(&str, &str)| value.starts_with(rest.trim_start());
            let values: Vec<Choice> = values(known.name)
                .into_iter()
                .filter(fits)
                .map(|(argument, help)| Choice { name: known.name, argument, help })
                .collect();
            if !values.is_empty() {
                return values;
            }
        }
        let mut found: Vec<(usize, Choice)> = choices()
            .filter_map(|choice| {
                let rank = if choice.name == word {
                    0
                } else if rest.is_some() {
                    return None;
                } else if choice.name.starts_with(&word) {
                    1
                } else if choice.name.contains(&word) {
                    2
                } else if choice.help.to_lowercase().contains(&word) {
                    3
                } else {
                    return None;
                };
                Some((rank, choice))
            })
            .collect();
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, choice)| choice).collect()
    }

    /// Puts the chosen command into the line where words must follow it. Returns whether they must.
    pub(super) fn complete(&mut self) -> bool {
        let matches = self.matches();
        let Some(choice) = matches.get(self.selected.min(matches.len().saturating_sub(1))) else {
            return false;
        };
        let typed = self.line.text().trim().contains(' ');
        let optional = ACTIONS.iter().any(|about| about.name == choice.name);
        if choice.argument.is_empty() || optional || typed || self.line.text().ends_with(' ') {
            return false;
        }
        self.line = TextLine::new(format!("{} ", choice.name));
        self.selected = 0;
        true
    }

    /// What Enter asks for, or why it cannot be done.
    pub fn submit(&self) -> Result<Request, String> {
        let typed = self.line.text().trim();
        let (word, argument) = typed.split_once(' ').map_or((typed, ""), |(word, rest)| (word, rest.trim()));
        let known = choices().any(|choice| choice.name == word);
        let matches = self.matches();
        let name = match matches.get(self.selected.min(matches.len().saturating_sub(1))) {
            _ if known => word,
            Some(choice) => choice.name,
            None => return Err(format!("no command `{word}`: clear the line to see all of them")),
        };
        // One of the words that may follow was chosen in the list.
        let chosen = matches.get(self.selected.min(matches.len().saturating_sub(1)));
        let chosen = chosen.filter(|choice| values(name).iter().any(|(value, _)| *value == choice.argument));
        let argument = chosen.map_or(argument, |choice| choice.argument);
        let needs =
            |what: &str| Err(format!("`{name}` needs {what}, for example `:{name} {}`", example(name)));
        match name {
            "lr" if argument.is_empty() => Ok(Request::Do(Action::LearningRate(None))),
            "lr" => match argument.parse::<f64>() {
                Ok(rate) if rate.is_finite() && rate >= 0.0 => {
                    Ok(Request::Do(Action::LearningRate(Some(rate))))
                }
                _ => Err(format!("`{argument}` is not a learning rate: write for example `:lr 1e-4`")),
            },
            "theme" if argument.is_empty() => Ok(Request::Do(Action::Theme(None))),
            "theme" => argument.parse().map(|name| Request::Do(Action::Theme(Some(name)))),
            "set" => match argument.split_once('=') {
                Some((key, value)) => {
                    Ok(Request::Set { key: key.trim().to_owned(), value: value.trim().to_owned() })
                }
                None => needs("KEY=VALUE"),
            },
            "grid" if argument.is_empty() => needs("KEY=A,B"),
            "grid" => Ok(Request::Grid(axes(argument))),
            "resume" if argument.is_empty() => Ok(Request::Do(Action::ResumeRun)),
            "resume" if !argument.contains('=') => needs("KEY=VALUE"),
            "resume" => Ok(Request::Resume(axes(argument))),
            "save" if argument.is_empty() => needs("a file"),
            "save" => Ok(Request::Save(argument.to_owned())),
            "name" if argument.is_empty() => needs("a name"),
            "name" => Ok(Request::Name(argument.to_owned())),
            "watch" if argument.is_empty() => needs("a run"),
            "watch" => Ok(Request::Watch(argument.to_owned())),
            "beside-run" if argument.is_empty() => needs("a run"),
            "beside-run" => Ok(Request::Beside(argument.to_owned())),
            "picture" if argument.is_empty() => needs("a file"),
            "picture" => Ok(Request::Picture(argument.to_owned())),
            "export" if argument.is_empty() => needs("a format"),
            "export" => Ok(Request::Export(argument.to_owned())),
            "rename" if !argument.is_empty() => run_name(argument).map(Request::Rename),
            "note" if argument == "-" => Ok(Request::Note(String::new())),
            "note" if !argument.is_empty() => note_text(argument).map(Request::Note),
            _ if !argument.is_empty() => Err(format!("`{name}` takes nothing after it")),
            _ => ACTIONS
                .iter()
                .find(|about| about.name == name)
                .map(|about| Request::Do(about.action))
                .ok_or_else(|| format!("no command `{name}`")),
        }
    }
}

/// What stands between spaces, for a grid or a resumption: a part that is no `key=` belongs to the one before, as after a
/// comma and a space.
fn axes(text: &str) -> Vec<String> {
    let mut axes: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match axes.last_mut() {
            Some(last) if !word.contains('=') => last.push_str(word),
            _ => axes.push(word.to_owned()),
        }
    }
    axes
}

fn example(name: &str) -> &'static str {
    match name {
        "grid" => "optimizer.name=adamw,adafactor train.accumulate=1,4",
        "set" => "train.accumulate=4",
        "resume" => "optimizer.lr=1e-4",
        "name" => "wide-model",
        "save" => "wide.toml",
        "watch" | "beside-run" => "latest",
        "picture" => "screen.svg",
        _ => "csv",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Palette {
        Palette { line: TextLine::new(text), ..Palette::default() }
    }

    #[test]
    fn every_name_is_there_once_and_does_its_action() {
        let mut names: Vec<_> = choices().map(|choice| choice.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for about in ACTIONS.iter().filter(|about| about.action != Action::Palette) {
            assert_eq!(typed(about.name).submit(), Ok(Request::Do(about.action)), "{}", about.name);
        }
    }

    #[test]
    fn a_rate_is_read_and_a_wrong_one_is_explained() {
        assert_eq!(typed("lr 1e-4").submit(), Ok(Request::Do(Action::LearningRate(Some(1e-4)))));
        assert_eq!(typed("lr").submit(), Ok(Request::Do(Action::LearningRate(None))));
        for wrong in ["lr fast", "lr nan", "lr -1"] {
            assert!(typed(wrong).submit().unwrap_err().contains(":lr 1e-4"), "{wrong}");
        }
    }

    #[test]
    fn what_may_follow_a_command_is_listed_and_chosen() {
        let formats = typed("export ").matches();
        assert_eq!(formats.len(), NAMES.len());
        assert_eq!(typed("export csv").submit(), Ok(Request::Export("csv".into())));
        assert_eq!(typed("export c").submit(), Ok(Request::Export("csv".into())), "the start is enough");
        let second = Palette { selected: 1, ..typed("export c") };
        assert_eq!(second.submit(), Ok(Request::Export("commands".into())));
        assert_eq!(
            typed("export xml").submit(),
            Ok(Request::Export("xml".into())),
            "told where it is written"
        );
        assert_eq!(typed("theme li").submit(), Ok(Request::Do(Action::Theme(Some(ThemeName::Light)))));
        assert!(typed("theme blue").submit().unwrap_err().contains("no theme"));
        assert_eq!(typed("picture a.svg").submit(), Ok(Request::Picture("a.svg".into())));
        assert!(typed("picture").submit().unwrap_err().contains("screen.svg"));
        let mut palette = typed("expor");
        assert!(palette.complete() && palette.line.text() == "export ");
        assert!(!palette.complete(), "the words that follow are chosen now");
        assert!(!typed("pause").complete());
    }

    #[test]
    fn the_start_of_a_name_is_enough() {
        assert_eq!(typed("check").submit(), Ok(Request::Do(Action::Checkpoint)));
        let axes = vec!["optimizer.name=adamw,sgd".to_owned(), "train.accumulate=1,4".to_owned()];
        let grid = typed("grid optimizer.name=adamw, sgd train.accumulate=1,4").submit();
        assert_eq!(grid, Ok(Request::Grid(axes)));
        let resume = ["optimizer.lr=1e-4", "train.max_updates=900"].map(str::to_owned).to_vec();
        assert_eq!(
            typed("resume optimizer.lr=1e-4 train.max_updates=900").submit(),
            Ok(Request::Resume(resume))
        );
        assert_eq!(typed("resume").submit(), Ok(Request::Do(Action::ResumeRun)));
        assert!(typed("resume faster").submit().unwrap_err().contains(":resume optimizer.lr=1e-4"));
        assert!(typed("grid").submit().unwrap_err().contains("KEY=A,B"));
        assert!(typed("zzz").submit().unwrap_err().contains("zzz"));
        assert_eq!(typed("rename a b").submit(), Ok(Request::Rename("a b".into())));
        assert!(typed("rename latest").submit().unwrap_err().contains("newest run"));
        assert_eq!(typed("note - ").submit(), Ok(Request::Note(String::new())));
        let set = Request::Set { key: "train.seed".into(), value: "3".into() };
        assert_eq!(typed("set train.seed = 3").submit(), Ok(set));
    }
}
