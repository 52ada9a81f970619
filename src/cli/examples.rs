//! The command line with examples below the help of every command. Each of them is parsed in a test.

use clap::CommandFactory as _;

use super::Cli;
use crate::config::own;

/// A command with what it does, and each line to type.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// Every command that people type.
const EXAMPLES: &[Examples] = &[
    (
        "",
        &[
            ("the Setup screen with the demo chosen", "tui-train"),
            ("train the demo with another optimizer", "tui-train run --set optimizer.name=adafactor"),
            ("what every optimizer would need", "tui-train plan --set model.preset=llama-160m"),
        ],
    ),
    (
        "run",
        &[
            ("a configuration of your own", "tui-train run config.toml --name first"),
            ("headless, one event a line", "tui-train run --json --set train.max_updates=100"),
            ("your text", "tui-train run --set data.path=corpus.txt"),
        ],
    ),
    (
        "plan",
        &[
            ("memory for every optimizer", "tui-train plan config.toml"),
            ("of a preset, for a program", "tui-train plan --set model.preset=tinyllama-1.1b --json"),
        ],
    ),
    ("list", &[("all runs", "tui-train list"), ("for a program", "tui-train list --json")]),
    (
        "show",
        &[("the newest run", "tui-train show latest"), ("for a program", "tui-train show first --json")],
    ),
    ("compare", &[("two runs by name", "tui-train compare first second")]),
    (
        "inspect",
        &[
            ("all state of the newest run", "tui-train inspect latest"),
            ("some tensors", "tui-train inspect latest --tensor '*.mlp.*'"),
        ],
    ),
    (
        "export",
        &[
            ("rows for pandas", "tui-train export latest --format csv -o run.csv"),
            ("a page for a browser", "tui-train export first --format html -o run.html"),
            ("a folder for TensorBoard", "tui-train export first --format tensorboard -o board"),
            ("the picture again", "tui-train export first --format svg -o run.svg --force"),
        ],
    ),
    (
        "attach",
        &[
            ("the screens on the newest run", "tui-train attach latest"),
            ("one frame, without a terminal", "tui-train attach latest --once"),
            ("a picture of a screen", "tui-train attach latest --screen state --size 120x40 -o state.svg"),
        ],
    ),
    ("stop", &[("the newest run", "tui-train stop latest")]),
    (
        "resume",
        &[
            ("where it stood", "tui-train resume first"),
            ("with more to do", "tui-train resume first --set train.max_updates=2000"),
        ],
    ),
    (
        "fork",
        &[("from a checkpoint, with another rate", "tui-train fork first --at 200 --set optimizer.lr=3e-4")],
    ),
    ("rename", &[("call a run something else", "tui-train rename latest baseline")]),
    (
        "note",
        &[
            ("write down what it was for", "tui-train note latest second-try"),
            ("read it", "tui-train note latest"),
        ],
    ),
    (
        "check accumulation",
        &[("4 x 2 against 2 x 4", "tui-train check accumulation --set train.accumulate=2")],
    ),
    ("devices", &[("what can train here", "tui-train devices")]),
    (
        "doctor",
        &[("each finding with its remedy", "tui-train doctor"), ("for a program", "tui-train doctor --json")],
    ),
    ("config init", &[("a file to start from", "tui-train config init > config.toml")]),
    ("config print", &[("with everything resolved", "tui-train config print --set model.preset=llama-tiny")]),
    ("config validate", &[("ok, or what is wrong", "tui-train config validate config.toml")]),
    ("config keys", &[("keys and look of your own", "tui-train config keys > ~/.config/tui-train/ui.toml")]),
    ("config schema", &[("for your editor", "tui-train config schema > tui-train.schema.json")]),
    ("bench", &[("50 updates of a preset", "tui-train bench --set model.preset=llama-tiny --updates 50")]),
    (
        "completions",
        &[
            ("bash", "tui-train completions bash > ~/.local/share/bash-completion/completions/tui-train"),
            ("zsh", "tui-train completions zsh > ~/.zfunc/_tui-train"),
            ("fish", "tui-train completions fish > ~/.config/fish/completions/tui-train.fish"),
        ],
    ),
    (
        "man",
        &[
            ("read it", "tui-train man | man -l -"),
            ("one command's", "tui-train man export | man -l -"),
            ("install all pages", "tui-train man -o ~/.local/share/man/man1"),
        ],
    ),
];

/// The command line that is parsed, printed as help, completed and described.
pub fn command() -> clap::Command {
    // A program with a task of its own has a name of its own.
    let program = own::program();
    let mut command = Cli::command().name(program).bin_name(program);
    for (path, examples) in EXAMPLES {
        let text = text(examples).replace("tui-train", program);
        let path: Vec<&str> = path.split(' ').filter(|name| !name.is_empty()).collect();
        command = with(command, &path, &text);
    }
    command
}

/// The command with that help below what `path` leads to; unchanged when it leads nowhere.
fn with(command: clap::Command, path: &[&str], text: &str) -> clap::Command {
    match path.split_first() {
        None => command.after_help(text.to_owned()),
        Some((name, rest)) if command.find_subcommand(name).is_some() => {
            command.mut_subcommand(name, |inner| with(inner, rest, text))
        }
        Some(_) => command,
    }
}

fn text(examples: &[(&str, &str)]) -> String {
    let lines = examples.iter().map(|(about, line)| format!("  # {about}\n  {line}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command without commands of its own that is not hidden, by its path.
    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name()).trim().to_owned();
            if inner.has_subcommands() {
                leaves(inner, &path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_is_understood() {
        let mut found = vec![String::new()];
        leaves(&Cli::command(), "", &mut found);
        let described: Vec<_> = EXAMPLES.iter().map(|(path, _)| (*path).to_owned()).collect();
        let without: Vec<_> = found.iter().filter(|path| !described.contains(path)).collect();
        assert!(without.is_empty(), "without examples: {without:?}");
        assert!(described.iter().all(|path| found.contains(path)), "{described:?} of {found:?}");
        for (path, examples) in EXAMPLES {
            for (_, line) in *examples {
                // What the shell would take for itself.
                let line = line.split(['>', '|']).next().unwrap();
                let words: Vec<String> = line.split_whitespace().map(|word| word.replace('\'', "")).collect();
                assert!(
                    words.join(" ").starts_with(format!("tui-train {path}").trim_end()) || path.is_empty()
                );
                if let Err(error) = command().try_get_matches_from(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    #[test]
    fn the_help_shows_them_and_the_definition_is_sound() {
        command().debug_assert();
        let mut command = command();
        command.build();
        let export = command.find_subcommand_mut("export").unwrap().render_help().to_string();
        assert!(export.contains("Examples:") && export.contains("--format tensorboard -o board"), "{export}");
    }
}
