//! What is said on the normal screen when the screens are left.

use std::io::{self, Write};

use super::Session;
use crate::{
    app::run::Status,
    config::own,
    run::{
        Queue,
        text::{plain_lines, shell_word},
    },
};

impl Session {
    /// Says on the normal screen where the run is and how to see it again.
    pub(super) fn farewell(&self) {
        let program = own::program();
        for run in &self.state.others.runs {
            say(&format!(
                "run {} goes on without the screens\n  stop it:     {program} stop {}\n",
                run.id, run.id
            ));
        }
        // Whoever stopped a run may take it that nothing trains any more.
        let waiting = Queue::of(&self.home).waiting().unwrap_or_default();
        if let (Some(_), Some(next)) = (self.state.leaving, waiting.first()) {
            let (count, verb) = (waiting.len(), if waiting.len() == 1 { "waits" } else { "wait" });
            say(&format!(
                "the queue goes on: {count} {verb} there, and the next one starts by itself\n  take it out: {program} stop {next}\n"
            ));
        }
        let (Some(run), Some(status)) = (&self.watched, self.state.status()) else { return };
        let (id, called) = (run.id(), shell_word(&run.called()));
        let mut text = if status == Status::Queued {
            format!(
                "run {id} waits in the queue and starts by itself\n  look again:  {program} attach {called}\n  take it out: {program} stop {called}\n"
            )
        } else if status.is_live() && crate::run::is_live(run) {
            format!(
                "run {id} goes on without the screens\n  look again:  {program} attach {called}\n  stop it:     {program} stop {called}\n"
            )
        } else {
            let go_on = match status {
                Status::Ended(reason) if reason.is_complete() => String::new(),
                _ if self.state.replay.is_some() => String::new(),
                _ => format!("  go on:       {program} resume {called}\n"),
            };
            let status = if self.state.replay.is_some() { "replayed" } else { status.as_str() };
            format!(
                "run {id}: {}\n{go_on}  look again:  {program} attach {called}\n  the figures: {program} show {called}\n",
                status.replace('_', " ")
            )
        };
        text.push_str(&format!("  its folder:  {}\n", run.path().display()));
        say(&text);
    }
}

/// Lines for the normal screen. The terminal may be gone.
pub(super) fn say(text: &str) {
    let _ = io::stderr().write_all(plain_lines(text).as_bytes());
}
