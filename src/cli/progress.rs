//! A bar on standard error where somebody waits: after a second, and only on a terminal.

use std::{
    io::IsTerminal,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    config::Config,
    data::{DataError, Dataset, Progress, Stage},
    run::text,
};

/// How long nobody minds.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far something is. The bar is gone when this is.
#[derive(Debug)]
pub struct Bar {
    what: &'static str,
    template: &'static str,
    begun: Instant,
    is_terminal: bool,
    shown: Option<ProgressBar>,
}

impl Bar {
    /// A bar of bytes. `what` reads like `reading`.
    pub fn bytes(what: &'static str) -> Self {
        Self::new(what, "{msg} [{wide_bar}] {bytes} of {total_bytes}{prefix}")
    }

    /// A bar of things that are counted.
    pub fn count(what: &'static str) -> Self {
        Self::new(what, "{msg} [{wide_bar}] {pos} of {len}{prefix}")
    }

    fn new(what: &'static str, template: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { what, template, begun: Instant::now(), is_terminal, shown: None }
    }

    /// So much is done, of that.
    pub fn at(&mut self, done: u64, total: u64) {
        if self.shown.is_none() && is_due(self.begun.elapsed(), self.is_terminal) {
            let style = ProgressStyle::with_template(self.template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
            self.shown = Some(ProgressBar::new(total).with_style(style).with_message(self.what));
        }
        if let Some(bar) = &self.shown {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_prefix(left(self.begun.elapsed(), done, total));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// Opens the data of a configuration behind a bar for each thing that takes its time.
///
/// # Errors
/// As [`Dataset::open`].
pub fn open_data(config: &Config) -> Result<Dataset, DataError> {
    let mut shown: Option<(Stage, Bar)> = None;
    Dataset::open_watched(config, &mut |Progress { stage, done, total }| {
        let same = shown.take().filter(|(before, _)| *before == stage);
        let (_, bar) = shown.insert(same.unwrap_or_else(|| (stage, Bar::bytes(stage.as_str()))));
        bar.at(done, total);
    })
}

/// A sign of life for what cannot tell how far it is: the time that it has taken so far. Gone when this is.
#[derive(Debug)]
pub struct Waiting {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// From now on. `what` reads like `reading the record`.
    pub fn on(what: &'static str) -> Self {
        Self::with(what, std::io::stderr().is_terminal())
    }

    fn with(what: &'static str, is_terminal: bool) -> Self {
        if !is_terminal {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = channel::<()>();
        // Without the thread nothing is shown, and nothing else is missing.
        let thread = std::thread::Builder::new().name("waiting".into()).spawn(move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed} so far");
            let spinner = ProgressBar::new_spinner().with_elapsed(PATIENCE).with_message(what);
            spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                spinner.tick();
            }
            spinner.finish_and_clear();
        });
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its last act is to take away what it drew.
            let _ = thread.join();
        }
    }
}

/// The time that is left when the rest takes as long as what is done did, piece by piece; nothing where that is not known,
/// or less than a second.
fn left(elapsed: Duration, done: u64, total: u64) -> String {
    let seconds = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
    match seconds {
        1.0..60.0 => format!(", {} s left", seconds.round()),
        60.0.. if seconds.is_finite() => format!(", {} left", text::duration(seconds)),
        _ => String::new(),
    }
}

fn is_due(elapsed: Duration, is_terminal: bool) -> bool {
    is_terminal && elapsed >= PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_comes_after_a_second_and_on_a_terminal_alone() {
        let moment = Duration::from_millis(10);
        assert!(!is_due(PATIENCE - moment, true) && is_due(PATIENCE, true) && !is_due(PATIENCE * 9, false));
        for bar in [Bar::bytes("reading"), Bar::count("measuring")] {
            assert!(ProgressStyle::with_template(bar.template).is_ok());
        }
        let moment = Duration::from_secs(3);
        assert_eq!(left(moment, 0, 9), "", "nothing is known yet");
        assert_eq!((left(moment, 9, 9), left(moment, 90, 100)), (String::new(), String::new()));
        assert!(left(moment, 10, 30).starts_with(", ") && left(moment, 10, 30).contains("6 s"));
        let mut bar = Bar::count("measuring");
        bar.is_terminal = false;
        bar.at(1, 2);
        assert!(bar.shown.is_none());
        assert!(ProgressStyle::with_template("{spinner} {msg}, {elapsed} so far").is_ok());
        assert!(Waiting::with("reading", false).thread.is_none());
        // Given up before it showed anything, and at once.
        let begun = Instant::now();
        drop(Waiting::with("reading", true));
        assert!(begun.elapsed() < PATIENCE);
    }
}
