//! Curves of runs that are asked for again and again while they are live: of a record only what is new is read.

use std::{collections::VecDeque, io, path::PathBuf};

use crate::{
    app::{
        run::RunView,
        runs::{Curves, MOST_MARKED},
    },
    run::{RunDir, Tail},
};

/// The runs that were asked for last, the newest at the end; as many as can be shown at once.
#[derive(Debug, Default)]
pub struct Following {
    kept: VecDeque<Followed>,
}

#[derive(Debug)]
struct Followed {
    path: PathBuf,
    tail: Tail,
    view: RunView,
}

impl Following {
    /// The curves as they are now.
    ///
    /// # Errors
    /// The record cannot be read, or is another one than before; the next call begins anew.
    pub fn curves(&mut self, run: &RunDir) -> io::Result<Curves> {
        let at = self.kept.iter().position(|followed| followed.path == run.path());
        let mut followed = at.and_then(|at| self.kept.remove(at)).unwrap_or_else(|| Followed {
            path: run.path().to_owned(),
            tail: Tail::open(run).with_newest_state(),
            view: RunView::default(),
        });
        followed.tail.each(u64::MAX, |event| followed.view.apply(&event))?;
        let curves = Curves { loss: followed.view.loss.clone(), val: followed.view.val.clone() };
        if self.kept.len() == MOST_MARKED {
            self.kept.pop_front();
        }
        self.kept.push_back(followed);
        Ok(curves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::Event,
        run::{EventWriter, sample},
    };

    #[test]
    fn what_a_run_adds_is_read_and_a_run_that_goes_back_loses_what_it_drops() {
        let (_folder, run) = sample::run("followed");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let mut following = Following::default();
        for update in 1..=4 {
            writer.append(&sample::update(update, 3.0)).unwrap();
            writer.append(&sample::validation(update, 3.2)).unwrap();
            let curves = following.curves(&run).unwrap();
            assert_eq!((curves.loss.len() as u64, curves.val.len() as u64), (update, update));
            assert_eq!(curves, following.curves(&run).unwrap(), "nothing was added");
        }
        writer.append(&Event::resumed(2)).unwrap();
        writer.append(&sample::update(3, 2.0)).unwrap();
        let curves = following.curves(&run).unwrap();
        assert_eq!((curves.loss.len(), curves.val.len()), (3, 2));
        assert_eq!(curves, Following::default().curves(&run).unwrap(), "as if it was read at once");
        assert_eq!(following.kept.len(), 1);
    }

    #[test]
    fn a_record_that_is_another_one_is_an_error_once() {
        let (_folder, run) = sample::run("replaced");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, 3.0)).unwrap();
        let mut following = Following::default();
        following.curves(&run).unwrap();
        std::fs::write(run.events(), "").unwrap();
        assert!(following.curves(&run).unwrap_err().to_string().contains("became shorter"));
        assert!(following.curves(&run).unwrap().loss.is_empty());
    }

    #[test]
    fn no_more_runs_are_kept_than_can_be_shown() {
        let mut following = Following::default();
        let all: Vec<_> = (0..=MOST_MARKED).map(|_| sample::run("many")).collect();
        for (_, run) in &all {
            following.curves(run).unwrap();
        }
        assert_eq!(following.kept.len(), MOST_MARKED);
    }
}
