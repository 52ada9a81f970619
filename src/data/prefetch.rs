//! The windows of a run, made by a thread that runs ahead.

use std::{
    any::Any,
    sync::mpsc::{Receiver, sync_channel},
    thread::{self, JoinHandle},
};

use super::{DataError, Window};

/// Windows that wait, besides the one the thread holds in its hands.
const AHEAD: usize = 2;

/// Yields the same windows in the same order. Dropping it ends the thread and waits for it.
#[derive(Debug)]
pub struct Prefetch {
    /// Gone once the stream has ended, or while dropping.
    windows: Option<Receiver<Window>>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetch {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn new(windows: impl Iterator<Item = Window> + Send + 'static) -> Result<Self, DataError> {
        let (sender, receiver) = sync_channel(AHEAD);
        let work = move || {
            for window in windows {
                // Nobody listens any more: the run has ended.
                if sender.send(window).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("prefetch".to_owned())
            .spawn(work)
            .map_err(|error| DataError::Prefetch(format!("no thread for it: {error}")))?;
        Ok(Self { windows: Some(receiver), thread: Some(thread) })
    }

    /// Hangs up first, so that a thread that waits to hand over a window wakes, then waits for its end.
    fn finish(&mut self) -> Result<(), DataError> {
        self.windows = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => Err(DataError::Prefetch(words(&*panic))),
            _ => Ok(()),
        }
    }
}

impl Iterator for Prefetch {
    type Item = Result<Window, DataError>;

    /// The next window, an error once when the thread panicked, then `None`.
    fn next(&mut self) -> Option<Self::Item> {
        match self.windows.as_ref()?.recv() {
            Ok(window) => Some(Ok(window)),
            Err(_) => self.finish().err().map(Err),
        }
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        // A panic that nobody asked for any more has no reader.
        let _ = self.finish();
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}
