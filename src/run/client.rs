//! The asking end of the control socket.

use std::{
    collections::VecDeque,
    io::{BufReader, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel},
    time::{Duration, Instant},
};

use super::{RunDir, RunError, bounded, socket};
use crate::protocol::{Answer, Command, Reply, Request};

/// Replies that may wait to be taken before the reader waits too.
const WAITING: usize = 1024;

/// A worker that does not take a line for this long is stuck.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection to a live run.
#[derive(Debug)]
pub struct Client {
    run: String,
    stream: UnixStream,
    replies: Receiver<Reply>,
    /// Replies to other requests that came while one was waited for.
    aside: VecDeque<Reply>,
    next: u64,
    closed: bool,
}

impl Client {
    /// Connects to the worker of the run.
    ///
    /// # Errors
    /// No worker listens.
    pub fn connect(run: &RunDir) -> Result<Self, RunError> {
        let stream = socket::connect(run)?;
        let broken =
            |source| RunError::Io { what: "cannot use the connection to", path: run.control_sock(), source };
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(broken)?;
        let reader = stream.try_clone().map_err(broken)?;
        let (sender, replies) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("replies".into())
            .spawn(move || {
                let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
                while bounded::line(&mut reader, bounded::LONGEST_LINE, &mut line).is_ok_and(|more| more) {
                    // An answer of a newer version that cannot be read answers nothing here.
                    let Ok(reply) = serde_json::from_slice(&line) else { continue };
                    if sender.send(reply).is_err() {
                        break;
                    }
                }
            })
            .map_err(broken)?;
        // Ids of different clients differ, because the run's log records them.
        let next = u64::from(std::process::id()) << 20;
        Ok(Self { run: run.id().to_owned(), stream, replies, aside: VecDeque::new(), next, closed: false })
    }

    /// Sends a command and returns the id that its replies will carry.
    ///
    /// # Errors
    /// The worker is gone or does not take the line.
    pub fn send(&mut self, command: Command) -> Result<u64, RunError> {
        self.next += 1;
        let id = self.next;
        let closed = |_| RunError::Closed(self.run.clone());
        let mut line = serde_json::to_vec(&Request { id, command }).map_err(|error| closed(error.into()))?;
        line.push(b'\n');
        if let Err(error) = (&self.stream).write_all(&line) {
            self.closed = true;
            return Err(closed(error));
        }
        Ok(id)
    }

    /// The replies that have come; never waits.
    pub fn try_replies(&mut self) -> Vec<Reply> {
        let mut all: Vec<Reply> = self.aside.drain(..).collect();
        loop {
            match self.replies.try_recv() {
                Ok(reply) => all.push(reply),
                Err(TryRecvError::Empty) => return all,
                Err(TryRecvError::Disconnected) => {
                    self.closed = true;
                    return all;
                }
            }
        }
    }

    /// Whether the worker has closed the connection, as far as the last call could tell.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends a command and waits for its final answer; `queued` is not final.
    ///
    /// # Errors
    /// The worker is gone, or `within` passes first.
    pub fn ask(&mut self, command: Command, within: Duration) -> Result<Answer, RunError> {
        self.ask_and_tell(command, within, || {})
    }

    /// The same, calling `queued` when the worker has taken the command for later.
    ///
    /// # Errors
    /// The worker is gone, or `within` passes first.
    pub fn ask_and_tell(
        &mut self,
        command: Command,
        within: Duration,
        mut queued: impl FnMut(),
    ) -> Result<Answer, RunError> {
        let name = command.name();
        let until = Instant::now() + within;
        let id = self.send(command)?;
        loop {
            match self.replies.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Reply { id: answered, answer: Answer::Queued }) if answered == id => queued(),
                Ok(reply) if reply.id == id => return Ok(reply.answer),
                Ok(other) => self.aside.push_back(other),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(RunError::NoAnswer {
                        run: self.run.clone(),
                        command: name,
                        seconds: within.as_secs(),
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.closed = true;
                    return Err(RunError::Closed(self.run.clone()));
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Ends the reader's wait; a connection that is gone already needs no end.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use super::*;
    use crate::run::sample;

    /// A worker that answers each request with what `answers` makes of it.
    fn worker(
        run: &RunDir,
        answers: impl Fn(Request) -> Vec<Reply> + Send + 'static,
    ) -> std::thread::JoinHandle<()> {
        let listener = socket::bind(run).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let replies = answers(serde_json::from_str(&line.unwrap()).unwrap());
                if replies.is_empty() {
                    return;
                }
                for reply in replies {
                    let line = serde_json::to_string(&reply).unwrap() + "\n";
                    stream.write_all(line.as_bytes()).unwrap();
                }
            }
        })
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_is_waited_for_past_queued_and_others_are_kept() {
        let (_folder, run) = sample::run("client");
        let thread = worker(&run, |Request { id, .. }| {
            vec![
                Reply { id: 1, answer: Answer::Applied { at_update: 1 } },
                Reply { id, answer: Answer::Queued },
                Reply { id, answer: Answer::Applied { at_update: 9 } },
            ]
        });
        let mut client = Client::connect(&run).unwrap();
        let mut queued = 0;
        let answer = client.ask_and_tell(Command::Pause, LONG, || queued += 1).unwrap();
        assert_eq!((answer, queued), (Answer::Applied { at_update: 9 }, 1));
        assert_eq!(client.try_replies(), [Reply { id: 1, answer: Answer::Applied { at_update: 1 } }]);
        drop(client);
        thread.join().unwrap();
    }

    #[test]
    fn a_worker_that_goes_away_ends_the_wait() {
        let (_folder, run) = sample::run("gone");
        let thread = worker(&run, |_| Vec::new());
        let mut client = Client::connect(&run).unwrap();
        assert!(matches!(client.ask(Command::Stop, LONG), Err(RunError::Closed(_))));
        assert!(client.is_closed());
        thread.join().unwrap();
    }

    #[test]
    fn a_worker_that_only_queues_is_not_waited_for_forever() {
        let (_folder, run) = sample::run("slow");
        let thread = worker(&run, |Request { id, .. }| vec![Reply { id, answer: Answer::Queued }]);
        let mut client = Client::connect(&run).unwrap();
        let error = client.ask(Command::Stop, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, RunError::NoAnswer { command: "stop", .. }), "{error}");
        drop(client);
        thread.join().unwrap();
    }
}
