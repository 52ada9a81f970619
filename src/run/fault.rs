//! Faults that tests put into the steps of writing: a step fails, or the process dies in it.

#[cfg(test)]
pub(crate) use seam::{Fault, Outcome, at, step};

/// Where tests let a step fail.
#[cfg(not(test))]
pub(crate) const fn step() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod seam {
    use std::{
        cell::Cell,
        io,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    /// What happens at a step.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fault {
        /// It fails, as on a full disk.
        Fails,
        /// The process is killed: nothing behind it is done, no cleaning up either.
        Dies,
    }

    /// How it went.
    #[derive(Debug)]
    pub(crate) enum Outcome<T> {
        /// There are fewer steps.
        NotReached,
        Returned(T),
        Died,
    }

    thread_local! {
        static NEXT: Cell<Option<(u32, Fault)>> = const { Cell::new(None) };
    }

    /// One step of writing. The error is the test's.
    pub(crate) fn step() -> io::Result<()> {
        match NEXT.get() {
            None => Ok(()),
            Some((0, fault)) => {
                NEXT.set(None);
                match fault {
                    Fault::Fails => Err(io::Error::from(io::ErrorKind::StorageFull)),
                    Fault::Dies => std::panic::resume_unwind(Box::new("killed")),
                }
            }
            Some((left, fault)) => {
                NEXT.set(Some((left - 1, fault)));
                Ok(())
            }
        }
    }

    /// Does something with a fault at its step of that number; the first is 0.
    pub(crate) fn at<T>(number: u32, fault: Fault, work: impl FnOnce() -> T) -> Outcome<T> {
        NEXT.set(Some((number, fault)));
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let reached = NEXT.take().is_none();
        match outcome {
            Err(_) => Outcome::Died,
            Ok(_) if !reached => Outcome::NotReached,
            Ok(value) => Outcome::Returned(value),
        }
    }
}
