//! `tui-train completions SHELL` and `tui-train man`: for the shell and for `man`, from the definition that parses.

use std::path::PathBuf;

use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::{examples, output};
use crate::config::{ConfigError, own};

/// For which shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell that is to complete
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Which page, or all of them.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The page of this command instead of the program's
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Option<String>,
    /// Write the pages of all commands into this folder, which must exist
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the completions.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut examples::command(), own::program(), &mut script);
    output::text(&String::from_utf8_lossy(&script))
}

/// Prints a manual page, or writes all of them.
///
/// # Errors
/// There is no such command, or the pages cannot be written.
pub fn man(args: ManArgs) -> anyhow::Result<i32> {
    let mut command = examples::command();
    command.build();
    if let Some(folder) = args.output {
        clap_mangen::generate_to(command, &folder)
            .with_context(|| format!("cannot write manual pages into {}", folder.display()))?;
        output::message(&format!("wrote the manual pages into {}", folder.display()));
        return Ok(0);
    }
    let page = match args.command {
        None => command,
        Some(name) => match command.find_subcommand(&name).filter(|found| !found.is_hide_set()) {
            Some(found) => found.clone(),
            None => {
                let known: Vec<_> = command
                    .get_subcommands()
                    .filter(|command| !command.is_hide_set())
                    .map(|command| command.get_name().to_owned())
                    .collect();
                let known = known.join(", ");
                return Err(ConfigError::Conflict(format!(
                    "there is no command `{name}`: use one of {known}"
                ))
                .into());
            }
        },
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    output::text(&String::from_utf8_lossy(&text))
}
