//! What a queued run waits for.

use super::Queue;
use crate::run::{RunDir, RunError, text::plain};

/// Where a run stands in the line, and what has to happen before it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// 1 is the next one to start.
    pub place: usize,
    /// Runs that wait.
    pub of: usize,
    /// Names of the runs that train, or are being started, and end before the line moves.
    pub behind: Vec<String>,
    /// Name of the run whose turn is right before.
    pub after: Option<String>,
    /// Whether a runner is there to start what waits.
    pub runner: bool,
}

impl Waits {
    /// The place and what is waited for, in one sentence without its end.
    pub fn sentence(&self) -> String {
        let place = format!("place {} of {} in the queue", self.place, self.of);
        let named = |name: &String| plain(name);
        let mut first: Vec<String> = Vec::new();
        if !self.behind.is_empty() {
            let names = self.behind.iter().map(named).collect::<Vec<_>>().join(" and ");
            first
                .push(format!("waits until {names} {}", if self.behind.len() == 1 { "ends" } else { "end" }));
        }
        if let Some(after) = &self.after {
            let then = if first.is_empty() { "waits its turn" } else { "then its turn" };
            first.push(format!("{then} after {}", named(after)));
        }
        if !self.runner {
            first.push("nothing starts it: open `tui-train` without --readonly".to_owned());
        } else if first.is_empty() {
            first.push("about to start".to_owned());
        }
        format!("{place}: {}", first.join(", "))
    }
}

impl Queue {
    /// What the run waits for; nothing when it does not wait here, for example because it is being started.
    ///
    /// # Errors
    /// The line or the folder of runs cannot be read.
    pub fn waits(&self, run: &RunDir) -> Result<Option<Waits>, RunError> {
        let entries = self.entries()?;
        let (taken, waiting): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.taken);
        let Some(at) = waiting.iter().position(|entry| entry.id == run.id()) else { return Ok(None) };
        let named = |id: &str| RunDir::unchecked(self.home.runs().join(id)).name();
        let behind = if taken.is_empty() {
            let head = RunDir::unchecked(self.home.runs().join(&waiting[0].id));
            self.in_the_way(&head)?.iter().map(RunDir::name).collect()
        } else {
            taken.iter().map(|entry| named(&entry.id)).collect()
        };
        Ok(Some(Waits {
            place: at + 1,
            of: waiting.len(),
            behind,
            after: at.checked_sub(1).map(|before| named(&waiting[before].id)),
            runner: self.has_runner()?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Layers,
        run::{Home, RunLock},
    };

    #[test]
    fn a_queued_run_knows_its_place_and_what_it_waits_for() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let resolved = Layers::new().with_assignment("train.device=flex").unwrap().resolve().unwrap();
        let made = |name: &str| RunDir::create(&home, name, &resolved).unwrap();
        let (busy, first, second) = (made("busy"), made("first"), made("second"));
        let line = Queue::of(&home);
        assert_eq!(line.waits(&first).unwrap(), None, "it is not in the line");
        line.add(&[first.clone(), second.clone()]).unwrap();
        let told = |run: &RunDir| line.waits(run).unwrap().unwrap().sentence();
        assert!(told(&first).starts_with("place 1 of 2 in the queue: nothing starts it"), "{}", told(&first));
        let lock = RunLock::acquire(&busy).unwrap();
        let runner = std::fs::File::create(line.folder().join("runner")).unwrap();
        runner.lock().unwrap();
        assert_eq!(told(&first), "place 1 of 2 in the queue: waits until busy ends");
        assert_eq!(
            told(&second),
            "place 2 of 2 in the queue: waits until busy ends, then its turn after first"
        );
        drop(lock);
        assert_eq!(told(&first), "place 1 of 2 in the queue: about to start");
        // What the runner has taken is waited for, whether its worker holds its lock already or not.
        let entry = line.entries().unwrap().remove(0);
        line.rename(&entry, true).unwrap();
        assert_eq!(line.waits(&first).unwrap(), None);
        assert_eq!(told(&second), "place 1 of 1 in the queue: waits until first ends");
    }
}
