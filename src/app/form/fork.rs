//! The draft of a fork: another run's settings, and the checkpoint that it starts from.

use std::collections::BTreeMap;

use super::{Earlier, Form};
use crate::config::Layers;

/// Where the draft comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Id of the run.
    pub run: String,
    pub name: String,
    /// Update of the checkpoint.
    pub update: u64,
}

/// The draft that a fork takes the place of.
#[derive(Debug, Clone)]
pub(super) struct Before {
    base: Layers,
    set: BTreeMap<&'static str, String>,
    last: Option<Earlier>,
    name: Option<String>,
}

impl Form {
    /// Drafts a fork: `base` is what was set by hand for the run when that checkpoint was written.
    ///
    /// # Errors
    /// The settings cannot be resolved; the draft stays as it is.
    pub fn fork(&mut self, origin: Origin, base: Layers) -> Result<(), String> {
        let resolved = base.resolve().map_err(|error| error.to_string())?;
        self.unfork();
        let before = Before {
            base: std::mem::replace(&mut self.base, base),
            set: std::mem::take(&mut self.set),
            last: self.last.replace(Earlier::new(&*origin.run, &*origin.name, &resolved.config)),
            name: self.name.take(),
        };
        self.before = Some(Box::new(before));
        self.adopt(resolved);
        (self.error, self.editing, self.untyped) = (None, None, None);
        self.fork = Some(origin);
        Ok(())
    }

    /// Gives back the draft that the fork took the place of; false when there is no fork.
    pub fn unfork(&mut self) -> bool {
        let Some(before) = self.before.take() else { return false };
        let Before { base, set, last, name } = *before;
        (self.base, self.set, self.last, self.name) = (base, set, last, name);
        (self.fork, self.editing, self.untyped) = (None, None, None);
        self.check(self.focused);
        true
    }

    /// What was set here, as `key=value` each.
    pub fn assignments(&self) -> Vec<String> {
        super::lines(&self.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_has_the_settings_of_its_run_and_gives_the_draft_back() {
        let mut form = Form::new(Layers::new()).unwrap();
        form.assign("train.seed", "7").unwrap();
        form.name = Some("mine".into());
        let base = Layers::new().with_assignments(["optimizer.name=lion", "train.accumulate=4"]).unwrap();
        let origin = Origin { run: "r".into(), name: "base".into(), update: 200 };
        form.fork(origin.clone(), base).unwrap();
        assert_eq!((form.value("train.accumulate"), form.value("train.seed")), ("4".into(), "1".into()));
        assert!(form.differences().is_empty(), "it is held against the run that it comes from");
        form.assign("optimizer.lr", "3e-4").unwrap();
        assert_eq!(form.assignments(), ["optimizer.lion.lr=3e-4"]);
        assert_eq!(form.differences().len(), 1);
        assert_eq!(form.fork, Some(origin.clone()));
        // Another checkpoint instead keeps the draft behind it.
        form.fork(origin, Layers::new()).unwrap();
        assert!(form.assignments().is_empty());
        assert!(form.unfork() && !form.unfork());
        assert_eq!(
            (form.value("train.seed"), form.name.as_deref(), &form.fork),
            ("7".into(), Some("mine"), &None)
        );
    }
}
