//! The command line: one file a subcommand. Standard output is data, standard error is messages.

pub mod attach;
pub mod bench;
pub mod check;
pub mod compare;
pub mod completions;
pub mod config;
pub mod config_schema;
pub mod devices;
pub mod doctor;
pub mod examples;
pub mod export;
mod follow;
pub mod fork;
pub mod grid;
pub mod inspect;
pub mod label;
pub mod list;
pub mod look;
pub mod output;
pub mod plan;
mod printer;
pub mod probe;
pub mod progress;
pub mod queue;
pub mod resume;
pub mod run;
pub mod settings;
pub mod show;
pub mod stop;
pub mod worker;

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context;
use clap::{
    FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

use crate::{
    config::{Config, ConfigError},
    run::{
        RunError,
        libtorch::{self, Chosen, LibtorchError},
        weights::WeightsError,
    },
};

/// Exit code of bad usage or configuration.
pub const BAD_USAGE: i32 = 2;
/// Exit code of everything else that failed.
pub const FAILED: i32 = 1;
/// Exit code after an interrupt.
pub const INTERRUPTED: i32 = 130;

/// Drive a live training run from the terminal, and look inside the optimizer.
///
/// Without a command: the Setup screen with the built-in demo chosen; Enter starts it. Without a terminal on standard
/// output the demo is trained headless.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Subcommands>,
    #[command(flatten)]
    look: look::Look,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Start a run at once
    Run(run::Args),
    /// Memory for every optimizer side by side, without training
    Plan(plan::Args),
    /// All runs, newest first
    List(list::Args),
    /// One run in full
    Show(show::Args),
    /// Two or more runs side by side, and the verdict
    Compare(compare::Args),
    /// The optimizer's state, tensor by tensor
    Inspect(inspect::Args),
    /// A run for other programs: JSON, Markdown, CSV, a picture, a page, TensorBoard, weights
    Export(export::Args),
    /// The screens on any run, live or ended
    Attach(attach::Args),
    /// Stop a live run: finish the update, write a checkpoint, end
    Stop(stop::Args),
    /// Go on with a run that stopped, crashed or is to train longer
    Resume(resume::Args),
    /// Start a new run from a checkpoint of another, with anything changed
    Fork(fork::Args),
    /// Give a run another name; its folder keeps its own
    Rename(label::Rename),
    /// Write down a note on a run, or print it
    Note(label::Note),
    /// Check the training itself
    Check(check::Args),
    /// What can train here
    Devices(devices::Args),
    /// Check this machine: each finding with the one command that mends it
    Doctor(doctor::Args),
    /// Write, print or check a configuration
    Config(config::Args),
    /// Measure updates without a run: tokens a second, milliseconds by phase, peak memory
    Bench(bench::Args),
    /// Completions for a shell
    Completions(completions::Args),
    /// The manual page
    Man(completions::ManArgs),
    /// The process of a run; started by the others
    #[command(hide = true)]
    Worker(worker::Args),
    /// Starts queued runs one after another; started by the others
    #[command(hide = true)]
    Queue,
    /// What libtorch can train with here; asked by the others
    #[command(hide = true)]
    Probe,
}

/// As the operating system takes it.
pub fn exit_code(code: i32) -> std::process::ExitCode {
    // Codes of the contract are all small.
    u8::try_from(code).map_or(std::process::ExitCode::FAILURE, std::process::ExitCode::from)
}

/// Says why there is no program to run, and returns the exit code.
pub fn refused(error: &ConfigError) -> i32 {
    output::message(&format!("error: {error}"));
    BAD_USAGE
}

/// Where a flag of the screens belongs that stood before a command that has it.
fn before_its_command(error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(name)), Some(ContextValue::String(flag))) =
        (error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::PriorArg))
    else {
        return None;
    };
    // Without the name of its value.
    let flag = flag.split(' ').next()?;
    let command = examples::command();
    let has = |argument: &clap::Arg| argument.get_long() == flag.strip_prefix("--");
    let known = command.find_subcommand(name)?.get_arguments().any(has);
    known.then(|| format!("{flag} stands behind its command: `tui-train {name} {flag}`"))
}

/// Runs the command line and returns the exit code.
pub fn main() -> i32 {
    let parsed = examples::command().try_get_matches().and_then(|matches| {
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut examples::command()))
    });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { BAD_USAGE } else { 0 };
            // A reader that has gone wants no help text.
            let _ = error.print();
            if let Some(hint) = before_its_command(&error) {
                output::message(&hint);
            }
            return code;
        }
    };
    let outcome = match cli.command {
        None if look::can_draw() => attach::setup(&cli.look),
        None => run::run(run::Args::default()),
        Some(Subcommands::Run(args)) => run::run(args),
        Some(Subcommands::Plan(args)) => plan::run(args),
        Some(Subcommands::List(args)) => list::run(args),
        Some(Subcommands::Show(args)) => show::run(args),
        Some(Subcommands::Compare(args)) => compare::run(args),
        Some(Subcommands::Inspect(args)) => inspect::run(args),
        Some(Subcommands::Export(args)) => export::run(args),
        Some(Subcommands::Attach(args)) => attach::run(args),
        Some(Subcommands::Stop(args)) => stop::run(args),
        Some(Subcommands::Resume(args)) => resume::run(args),
        Some(Subcommands::Fork(args)) => fork::run(args),
        Some(Subcommands::Rename(args)) => label::rename(args),
        Some(Subcommands::Note(args)) => label::note(args),
        Some(Subcommands::Check(args)) => check::run(args),
        Some(Subcommands::Devices(args)) => devices::run(args),
        Some(Subcommands::Doctor(args)) => doctor::run(args),
        Some(Subcommands::Config(args)) => config::run(args),
        Some(Subcommands::Bench(args)) => bench::run(args),
        Some(Subcommands::Completions(args)) => completions::run(args),
        Some(Subcommands::Man(args)) => completions::man(args),
        Some(Subcommands::Worker(args)) => worker::run(args),
        Some(Subcommands::Queue) => queue::run(),
        Some(Subcommands::Probe) => probe::run(),
    };
    outcome.unwrap_or_else(|error| {
        output::message(&format!("error: {}", told(&error)));
        code_of(&error)
    })
}

/// Settles the device of a command that trains in this process. Where another program serves it, runs this very command
/// there and returns its exit code.
fn elsewhere(config: &mut Config) -> anyhow::Result<Option<i32>> {
    let Chosen { program, device, notes } = libtorch::choose_for(config, libtorch::choose)?;
    notes.iter().for_each(|note| output::message(note));
    config.train.device = device;
    if cfg!(feature = "libtorch") || !device.needs_libtorch() {
        return Ok(None);
    }
    let piped = settings::piped();
    let arguments = std::env::args_os().skip(1).map(|argument| {
        if piped.is_some() && settings::is_pipe(Path::new(&argument)) {
            "/dev/stdin".into()
        } else {
            argument
        }
    });
    let mut command = Command::new(&program);
    command.args(arguments);
    if piped.is_some() {
        command.stdin(Stdio::piped());
    }
    let cannot = || format!("cannot start {}", program.display());
    let mut child = command.spawn().with_context(cannot)?;
    if let (Some(text), Some(mut pipe)) = (piped, child.stdin.take()) {
        // A program that ends before it has read says why itself.
        let _ = pipe.write_all(text.as_bytes());
    }
    Ok(Some(child.wait().with_context(cannot)?.code().unwrap_or(FAILED)))
}

/// The error and its causes, each said once: many name their cause themselves.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|cause| !cause.is_empty()) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}

/// Mistakes in the configuration, the data or the run it names are the user's to mend: exit code 2.
fn code_of(error: &anyhow::Error) -> i32 {
    let is_usage = error.chain().any(|cause| {
        cause.is::<ConfigError>()
            || cause.is::<crate::data::DataError>()
            || cause.is::<WeightsError>()
            || cause.is::<LibtorchError>()
            || cause.downcast_ref::<RunError>().is_some_and(|error| error.exit_code() == BAD_USAGE)
    });
    if is_usage { BAD_USAGE } else { FAILED }
}
