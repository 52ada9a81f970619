//! The check of accumulation as the UI asks for it: one at a time, in a process of its own.

use super::{Effect, State, action::Screen, draft::lines, focus::Overlay};
use crate::protocol::AccumulationCheck;

/// A check that runs or has ended, as its overlay shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Tells apart the answer to this check from that to one before.
    pub number: u64,
    /// Whose configuration it is.
    pub of: String,
    /// `None` while it runs.
    pub answer: Option<Result<Box<AccumulationCheck>, String>>,
}

impl State {
    /// Starts a check of the draft on the Setup screen or while no run is open, else of the run that is shown.
    pub(super) fn check(&mut self) -> Vec<Effect> {
        let header = self.watching.as_ref().filter(|_| self.screen != Screen::Setup);
        let (of, settings) = match (header, &self.run.header) {
            (Some(run), Some(header)) => (format!("run {}", run.name), lines(&header.explicit)),
            (Some(_), None) => {
                self.say("the run has not told its configuration yet: try again in a moment", true);
                return Vec::new();
            }
            (None, _) => match self.form.start() {
                Ok((resolved, name)) => (format!("draft {name}"), lines(&resolved.explicit)),
                Err(why) => {
                    self.say(format!("the draft cannot be checked: {why}"), true);
                    return Vec::new();
                }
            },
        };
        self.checks += 1;
        let number = self.checks;
        self.overlay = Overlay::Check(Check { number, of, answer: None });
        vec![Effect::Check { number, settings }]
    }

    /// Takes the answer, if its overlay is still open.
    pub(super) fn checked(&mut self, number: u64, answer: Result<Box<AccumulationCheck>, String>) {
        if let Overlay::Check(check) = &mut self.overlay
            && check.number == number
        {
            check.answer = Some(answer);
        }
    }

    /// The number of the check that is awaited.
    pub(super) fn awaited_check(&self) -> Option<u64> {
        match &self.overlay {
            Overlay::Check(Check { number, answer: None, .. }) => Some(*number),
            _ => None,
        }
    }
}
