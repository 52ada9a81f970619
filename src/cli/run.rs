//! `tui-train run`: starts a run at once, and shows it or prints it.

use std::path::PathBuf;

use super::{
    attach, follow,
    look::{self, Look},
    progress::open_data,
    settings::Settings,
};
use crate::{
    config::{Config, Layers, Resolved, layers, validate},
    data::total_updates,
    protocol::DataReport,
    run::{
        Home, launch,
        script::{self, Script},
    },
};

/// What to train, and how to watch it.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Queue one run for each value, such as optimizer.name=adamw,adafactor; several make their product
    #[arg(long, value_name = "KEY=A,B")]
    pub(super) grid: Vec<String>,
    /// Name of the run
    #[arg(long, value_parser = crate::run::label::run_name)]
    pub(super) name: Option<String>,
    /// Give the commands of this file, as `export --format commands` writes it, at their updates; the configuration in
    /// it is taken, too, and CONFIG.toml and --set go before it
    #[arg(long, value_name = "FILE", conflicts_with = "grid")]
    commands: Option<PathBuf>,
    #[command(flatten)]
    pub(super) look: Look,
    /// Print lines instead of opening the screens
    #[arg(long)]
    pub(super) headless: bool,
    /// Print every event as one JSON line; implies --headless
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    /// Whether lines are printed instead of the screens.
    pub(super) fn prints(&self) -> bool {
        self.headless || self.json || !look::can_draw()
    }
}

/// Starts the run in its own process and follows it.
///
/// # Errors
/// The configuration, its data or the state folder cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    if !args.grid.is_empty() {
        return super::grid::run(&args);
    }
    let (base, commands, trained_on) = match &args.commands {
        None => (Layers::new(), Vec::new(), None),
        Some(path) => {
            let origin = path.display().to_string();
            let Script { config, commands, trained_on } = script::split(&layers::read(path)?, &origin)?;
            let trained_on = trained_on.map(|data| (data, origin.clone()));
            (Layers::new().with_toml(&config, &origin)?, commands, trained_on)
        }
    };
    let mut resolved = args.settings.layers_over(base)?.resolve()?;
    let dataset = open_data(&resolved.config)?;
    let total = total_updates(&resolved.config, &dataset);
    let other_data = trained_on.and_then(|(data, origin)| other_data(&data, dataset.report(), &origin));
    resolved.notes.extend(other_data);
    drop(dataset);
    fit_warmup(&mut resolved, total)?;
    let home = Home::from_env()?;
    let name = args.name.clone().unwrap_or_else(|| resolved.config.run_name());
    let presses = args.prints().then(follow::interrupts).transpose()?;
    super::queue::wake(&home);
    let run = launch::start_with(&home, &resolved, &name, &commands)?;
    match presses {
        None => attach::open(run, &args.look),
        Some(presses) => follow::follow(&run, 0, args.json, &presses),
    }
}

/// That commands are given on other data than they were given on first, if it is so.
fn other_data(before: &str, now: &DataReport, origin: &str) -> Option<String> {
    let other = !now.content.is_empty() && now.content != before;
    other.then(|| {
        format!(
            "{origin} was written for a run on other data, or with another tokenizer or split, than {}: its settings and \
             commands are repeated, its losses are not",
            now.source
        )
    })
}

/// Whatever is wrong with the data is told before there is a run to show it in. Returns how many updates there will be,
/// which in epochs depends on it.
pub(super) fn check_data(config: &Config) -> anyhow::Result<u64> {
    Ok(total_updates(config, &open_data(config)?))
}

/// The warm-up must end before so many updates do; one that nobody set gives way.
pub(super) fn fit_warmup(resolved: &mut Resolved, total: u64) -> anyhow::Result<()> {
    let shortened = validate::shorten_warmup(&mut resolved.config, &resolved.explicit, total);
    resolved.notes.extend(shortened);
    Ok(validate::warmup(&resolved.config, total)?)
}
