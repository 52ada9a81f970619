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

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Sender, channel},
        time::Duration,
    };

    use super::*;
    use crate::data::{
        Cursor, Windows,
        windows::tests::{config, dataset},
    };

    /// Ends at the first `None` and tells when it is dropped, that is, when the thread is done with it.
    struct Watched(Windows, Sender<()>);

    impl Iterator for Watched {
        type Item = Window;
        fn next(&mut self) -> Option<Window> {
            self.0.next()
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.1.send(());
        }
    }

    fn windows(settings: &[&str]) -> Windows {
        Windows::new(dataset(13), &config(settings), Cursor::default()).unwrap()
    }

    #[test]
    fn the_same_windows_in_the_same_order_and_an_end() {
        let windows = windows(&["train.epochs=3", "train.micro_batch=2", "train.accumulate=2"]);
        let direct: Vec<Window> = windows.clone().collect();
        let mut prefetch = Prefetch::new(windows).unwrap();
        let fetched: Vec<Window> = prefetch.by_ref().map(Result::unwrap).collect();
        assert_eq!(fetched, direct);
        assert!(prefetch.next().is_none());
    }

    #[test]
    fn dropping_ends_the_thread_while_it_waits() {
        let (sender, ended) = channel();
        let endless = Watched(windows(&["train.max_updates=1"]), sender);
        let mut prefetch = Prefetch::new(endless).unwrap();
        assert!(prefetch.next().unwrap().is_ok());
        let dropper = thread::spawn(move || drop(prefetch));
        ended.recv_timeout(Duration::from_secs(60)).expect("the thread still lives");
        dropper.join().unwrap();
    }

    #[test]
    fn a_panic_becomes_one_error_after_the_windows_before_it() {
        let mut windows = windows(&["train.max_updates=9"]);
        let mut left = 3;
        let failing = std::iter::from_fn(move || {
            assert!(left > 0, "the disk is gone");
            left -= 1;
            windows.next()
        });
        let got: Vec<Result<Window, DataError>> = Prefetch::new(failing).unwrap().collect();
        assert_eq!(got.len(), 4);
        assert!(got[..3].iter().all(Result::is_ok));
        let message = got[3].as_ref().unwrap_err().to_string();
        assert!(message.contains("the disk is gone"), "{message}");
    }
}
