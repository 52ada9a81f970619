//! `tui-train run`: starts a run at once, and shows it or prints it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::{
    INTERRUPTED, attach,
    look::{self, Look},
    output,
    progress::{Waiting, open_data},
    settings::Settings,
};
use crate::{
    config::{Arch, Config, Layers, Resolved, Task, layers, own, validate},
    data::total_updates,
    ledger::ledger,
    protocol::{Command, Event, Lineage, Reason, Resumed, RunEnded, Update, Validation},
    run::{
        Client, Home, RunDir, export, goes_on, last, launch,
        list::Lister,
        lock, pulse,
        reaper::{self, Exit},
        script, standing,
        tail::Tail,
        text,
    },
    worker::{
        fault::{self, Fault},
        telemetry,
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

/// Time between two looks at the record.
const POLL: Duration = Duration::from_millis(50);
/// Least time between two printed lines.
const LINE: Duration = Duration::from_secs(1);
/// What was left out of the data is named up to here; the end of the run names more.
const NAMED: usize = 5;
/// Lines of a dead worker's log that are searched for why.
const LOG_LINES: usize = 200;
/// How long it may take to learn how a worker ended.
const GONE: Duration = Duration::from_secs(2);

/// Starts the run in its own process and follows it.
///
/// # Errors
/// The configuration, its data or the state folder cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    if !args.grid.is_empty() {
        return super::grid::run(&args);
    }
    let (base, commands) = match &args.commands {
        None => (Layers::new(), Vec::new()),
        Some(path) => {
            let origin = path.display().to_string();
            let (config, commands) = script::split(&layers::read(path)?, &origin)?;
            (Layers::new().with_toml(&config, &origin)?, commands)
        }
    };
    let mut resolved = args.settings.layers_over(base)?.resolve()?;
    let total = check_data(&resolved.config)?;
    fit_warmup(&mut resolved, total)?;
    let home = Home::from_env()?;
    let name = args.name.clone().unwrap_or_else(|| resolved.config.run_name());
    let presses = args.prints().then(interrupts).transpose()?;
    super::queue::wake(&home);
    let run = launch::start_with(&home, &resolved, &name, &commands)?;
    match presses {
        None => attach::open(run, &args.look),
        Some(presses) => follow(&run, 0, args.json, &presses),
    }
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

/// Counts interrupts instead of dying of them.
pub(super) fn interrupts() -> std::io::Result<Arc<AtomicUsize>> {
    let presses = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        let presses = Arc::clone(&presses);
        let mut signals = signal_hook::iterator::Signals::new([signal])?;
        std::thread::spawn(move || signals.forever().for_each(|_| _ = presses.fetch_add(1, SeqCst)));
    }
    Ok(presses)
}

/// Prints the run until it ends, from that byte of its record. A closed standard output ends the printing, not the run.
/// A run that has not made all of its updates is told how to go on with.
pub(super) fn follow(run: &RunDir, from: u64, json: bool, presses: &AtomicUsize) -> anyhow::Result<i32> {
    let total = Lister::default().entry(run).total_updates.filter(|_| from > 0).unwrap_or(0);
    // The record's first line says so, too, and a run that goes on is not read from there.
    let arch = run.config().map_or(Arch::Llama, |config| config.model.arch);
    let printer = Printer { json, brief: false, last_line: None, total, arch };
    Ok(follow_with(run, from, printer, presses, &mut || Ok(()))?.unwrap_or(0))
}

/// The same; nothing when nobody reads any more. `before_stop` is done on an interrupt, before the run is told to stop, and
/// again until it listens.
pub(super) fn follow_with(
    run: &RunDir,
    from: u64,
    mut printer: Printer,
    presses: &AtomicUsize,
    before_stop: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Option<i32>> {
    let mut tail = Tail::open_at(run, from);
    // Presses when the run was told to stop.
    let mut told: Option<usize> = None;
    // When the record grew last, and whether its silence has been told.
    let mut heard: Option<(Instant, bool)> = None;
    let mut waiting = Some(Waiting::on("the worker is starting"));
    loop {
        let live = lock::is_live(run);
        let events = tail.poll()?;
        let pressed = presses.load(SeqCst);
        if !events.is_empty() || !live || pressed > 0 {
            drop(waiting.take());
        }
        if !events.is_empty() {
            heard = Some((Instant::now(), false));
        }
        for event in events {
            if !printer.print(run, &event)? {
                return Ok(None);
            }
            if let Event::RunEnded(ended) = &event {
                if let Some(command) = &ended.summary.resume_command {
                    output::message(&format!("go on with it: {command}"));
                }
                // By this process, or by a signal that somebody sent to the worker.
                let interrupted = settle(run) == Some(INTERRUPTED) || told.is_some();
                let stopped = ended.reason == Reason::Stopped;
                return Ok(Some(if interrupted && stopped { INTERRUPTED } else { ended.reason.exit_code() }));
            }
        }
        if !live {
            reaper::wait(run, GONE);
            let why = standing::crash_line(run).unwrap_or_else(|| "it said nothing".to_owned());
            if !run.events().exists() {
                anyhow::bail!("the worker of run {} died: {why}", run.id());
            }
            anyhow::bail!(
                "the worker of run {} died: {why} (see {}); {}",
                run.id(),
                run.worker_log().display(),
                after_death(run, &why)
            );
        }
        if let Some((last, silent @ false)) = &mut heard
            && last.elapsed().as_secs_f64() >= pulse::QUIET
        {
            *silent = true;
            output::message(&format!(
                "no sign of life of the worker of run {} for {} s; it is not dead, and the run goes on when it does",
                run.id(),
                pulse::QUIET
            ));
        }
        if pressed > 0 && told.is_none() {
            before_stop()?;
            // The worker may not listen yet, or not any more: then the next look tries again, or sees the end.
            if let Ok(mut client) = Client::connect(run)
                && client.send(Command::Stop).is_ok()
            {
                told = Some(pressed);
                output::message(
                    "stopping: the update is finished and a checkpoint written; Ctrl+C again to leave now",
                );
            }
        }
        if told.is_some_and(|told| pressed > told) {
            output::message(&format!(
                "the run ends by itself; go on with it: {} resume {}",
                own::program(),
                run.id()
            ));
            return Ok(Some(INTERRUPTED));
        }
        std::thread::sleep(POLL);
    }
}

/// What to do about a worker that died so: one that ran out of memory would die again of the same settings.
fn after_death(run: &RunDir, why: &str) -> String {
    let smaller = || {
        // A backtrace may stand behind the line that says so.
        let said = || last::log_tail(&run.worker_log(), LOG_LINES).iter().find_map(|line| Fault::of(line));
        let (config, fault) = (run.config().ok()?, Fault::of(why).or_else(said)?);
        // The kernel may have killed another process for memory than this one.
        let asked = matches!(fault, Fault::OutOfMemory { asked: Some(_), .. });
        let reach = telemetry::memory_within_reach().unwrap_or(u64::MAX);
        if !asked && ledger(&config).total_bytes_estimated < reach {
            return None;
        }
        let advice = fault.advice(&config)?;
        let command = goes_on::with(run, &advice.settings).ok()?;
        Some(format!("{}: {command}", fault::advised(&config, Some(&advice))))
    };
    smaller().unwrap_or_else(|| format!("go on with it: {} resume {}", own::program(), run.id()))
}

/// Waits until the worker of a run that has ended has left, too. Returns its exit code, if this process started it.
fn settle(run: &RunDir) -> Option<i32> {
    match reaper::wait(run, reaper::PATIENCE + GONE)? {
        Exit::Gone { code } => code,
        Exit::Killed => {
            output::message(&format!(
                "the worker of run {} did not leave within {} s after the run had ended: it was killed",
                run.id(),
                reaper::PATIENCE.as_secs()
            ));
            None
        }
    }
}

/// Prints events as they come.
pub(super) struct Printer {
    json: bool,
    /// Only how the run begins and how it ends.
    brief: bool,
    last_line: Option<Instant>,
    total: u64,
    /// What is counted depends on it.
    arch: Arch,
}

impl Printer {
    /// One run of several: every event as JSON, or one line for its beginning and one for its end.
    pub(super) const fn of_many(json: bool) -> Self {
        Self { json, brief: true, last_line: None, total: 0, arch: Arch::Llama }
    }

    /// False when nobody reads any more.
    fn print(&mut self, run: &RunDir, event: &Event) -> anyhow::Result<bool> {
        if self.json {
            return output::json_line(event);
        }
        match event {
            Event::Header(header) => {
                (self.total, self.arch) = (header.total_updates, header.config.model.arch);
                let lineage = header.forked_from.as_ref().map(Lineage::told);
                lineage.iter().chain(&header.notes).for_each(|note| output::message(note));
                if let Some(left_out) = left_out(&header.data) {
                    output::message(&left_out);
                }
                let tokens = header.config.train.seq_len;
                let of = match header.config.model.arch.task() {
                    Task::LanguageModel => format!("sequences of {tokens} tokens"),
                    Task::Classification => format!("sequences of at most {tokens} tokens"),
                    Task::Own => "examples".to_owned(),
                };
                output::line(&format!(
                    "{}: {} parameters, {}, {} x {} {of}, {} updates on {} ({} threads)",
                    header.run,
                    text::count(header.ledger.parameters),
                    header.config.optimizer.name,
                    header.config.train.micro_batch,
                    header.config.train.accumulate,
                    header.total_updates,
                    header.device,
                    header.threads,
                ))
            }
            Event::Resumed(resumed) => {
                if let Some(header) = &resumed.header {
                    self.total = header.total_updates;
                }
                output::line(&resumed_line(run, resumed, self.total))
            }
            Event::Update(_) | Event::Validation(_) if self.brief => Ok(true),
            Event::Update(update) => self.update(update),
            Event::Validation(validation) => output::line(&validated(validation, self.arch)),
            Event::Alert(alert) => {
                output::message(&alert.message);
                Ok(true)
            }
            Event::RunEnded(ended) => {
                if let Some(message) = &ended.message {
                    output::message(&format!("error: {message}"));
                }
                if self.brief {
                    return output::line(&in_one_line(run, ended));
                }
                if self.total > 0 && ended.summary.updates > 0 {
                    output::line(&format!("\n{}", export::markdown::summary(&ended.summary)))?;
                }
                for (name, value) in export::markdown::evaluation(&ended.summary) {
                    output::line(&format!("{name} {}", text::loss(value)))?;
                }
                output::line(&format!("run {}: {}", run.id(), ended.reason.as_str()))
            }
            _ => Ok(true),
        }
    }

    fn update(&mut self, update: &Update) -> anyhow::Result<bool> {
        let due = self.last_line.is_none_or(|last| last.elapsed() >= LINE);
        if !due && update.update != self.total {
            return Ok(true);
        }
        self.last_line = Some(Instant::now());
        output::line(&format!(
            "update {:>6}/{}  loss {:.4}  lr {:.2e}  grad norm {:.3}  {:.0} {}/s",
            update.update,
            self.total,
            update.loss,
            update.learning_rate,
            update.grad_norm,
            update.tokens_per_second,
            self.arch.counted().0
        ))
    }
}

fn resumed_line(run: &RunDir, resumed: &Resumed, total: u64) -> String {
    let by_hand = resumed
        .learning_rate
        .map_or_else(String::new, |rate| format!(", at the learning rate {rate:e} given by hand"));
    format!("{}: resumed from update {} of {total}{by_hand}", run.id(), resumed.from_update)
}

/// The end of one run of several.
fn in_one_line(run: &RunDir, ended: &RunEnded) -> String {
    let summary = &ended.summary;
    let loss = |what: &str, loss: Option<f64>| {
        loss.map_or_else(String::new, |loss| format!(", {what} loss {}", text::loss(loss)))
    };
    format!(
        "run {}: {} after {} updates{}{}",
        run.id(),
        ended.reason.as_str(),
        text::count(summary.updates),
        loss("train", summary.final_train_loss),
        loss("validation", summary.final_val_loss)
    )
}

/// What was left out of the data, with the first of it by name; nothing where it was all read.
fn left_out(data: &crate::protocol::DataReport) -> Option<String> {
    let reasons: Vec<String> =
        data.left_out.iter().map(|(why, times)| format!("{why} ({})", text::count(*times))).collect();
    let named: Vec<String> = data.left_out_named.iter().take(NAMED).map(|name| text::plain(name)).collect();
    let first = if named.is_empty() { String::new() } else { format!("; such as {}", named.join(", ")) };
    (!reasons.is_empty()).then(|| format!("left out of the data: {}{first}", reasons.join(", ")))
}

/// The line of a validation. Of a classification it names accuracy and F1.
fn validated(validation: &Validation, arch: Arch) -> String {
    let Validation { update, loss, tokens, accuracy, f1, f1_macro, .. } = validation;
    let scores: String = [("accuracy", accuracy), ("F1", f1), ("macro F1", f1_macro)]
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!(", {name} {}", text::loss(value))))
        .collect();
    let targets = match arch {
        // An example of a task of its own may have several.
        Arch::Own => "targets",
        _ if accuracy.is_some() => "rows",
        _ => "tokens",
    };
    format!("validation at update {update}: loss {loss:.4} over {} {targets}{scores}", text::count(*tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validation_is_told_with_the_figures_it_has() {
        let mut validation = Validation { update: 20, loss: 2.25, tokens: 4096, ..Validation::default() };
        let told = |validation: &Validation| validated(validation, Arch::Llama);
        assert_eq!(told(&validation), "validation at update 20: loss 2.2500 over 4,096 tokens");
        (validation.accuracy, validation.f1, validation.f1_macro) = (Some(0.875), Some(0.8), Some(0.85));
        assert_eq!(
            told(&validation),
            "validation at update 20: loss 2.2500 over 4,096 rows, accuracy 0.8750, F1 0.8000, macro F1 0.8500"
        );
    }
}
