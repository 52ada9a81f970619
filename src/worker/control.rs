//! The control socket: one JSON line a request, one a reply.
//!
//! A thread a connection reads requests and hands them to the engine; replies go back through a queue of the
//! connection, so that a reader that does not read never holds up the engine.

use std::{
    io::{self, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
};

use crate::{
    protocol::{Answer, Command, Reply, Request},
    run::bounded,
};

/// Replies that may wait for one connection; more are dropped.
const DEPTH: usize = 256;

/// What other threads may know of the engine without asking it.
#[derive(Debug, Default)]
pub struct Status {
    pub update: AtomicU64,
    pub paused: AtomicBool,
}

/// A request with the way back to whoever sent it.
#[derive(Debug)]
pub struct Incoming {
    pub request: Request,
    pub back: Back,
}

/// Sends replies to one connection.
#[derive(Debug, Clone)]
pub struct Back(SyncSender<Reply>);

impl Back {
    /// For a command that nobody waits for.
    pub fn nobody() -> Self {
        Self(sync_channel(1).0)
    }

    /// Answers a request; nothing happens when the other side has gone or does not read.
    pub fn answer(&self, id: u64, answer: Answer) {
        let _ = self.0.try_send(Reply { id, answer });
    }
}

/// Who holds control: the connection of the first UI, until it goes.
type Controller = Arc<Mutex<Option<u64>>>;

/// Accepts connections on a thread of its own for the rest of the process and returns what they ask.
///
/// # Errors
/// The thread cannot be started.
pub fn serve(listener: UnixListener, status: Arc<Status>) -> io::Result<Receiver<Incoming>> {
    let (requests, queue) = channel();
    std::thread::Builder::new().name("control".into()).spawn(move || {
        let controller = Controller::default();
        for (number, stream) in listener.incoming().filter_map(Result::ok).enumerate() {
            let connection = Connection {
                number: number as u64,
                requests: requests.clone(),
                status: Arc::clone(&status),
                controller: Arc::clone(&controller),
            };
            // A connection that cannot be served is closed by dropping it; the others go on.
            let _ = std::thread::Builder::new()
                .name("connection".into())
                .spawn(move || connection.serve(&stream));
        }
    })?;
    Ok(queue)
}

struct Connection {
    number: u64,
    requests: Sender<Incoming>,
    status: Arc<Status>,
    controller: Controller,
}

impl Connection {
    fn serve(self, stream: &UnixStream) {
        let _ = self.answer_all(stream);
        if let Ok(mut controller) = self.controller.lock()
            && *controller == Some(self.number)
        {
            *controller = None;
        }
    }

    fn answer_all(&self, stream: &UnixStream) -> io::Result<()> {
        let mut out = stream.try_clone()?;
        let (back, replies) = sync_channel::<Reply>(DEPTH);
        std::thread::Builder::new().name("replies".into()).spawn(move || {
            for reply in replies {
                let Ok(mut line) = serde_json::to_string(&reply) else { continue };
                line.push('\n');
                if out.write_all(line.as_bytes()).is_err() {
                    break;
                }
            }
        })?;
        let back = Back(back);
        let (mut reader, mut line) = (BufReader::new(stream), Vec::new());
        loop {
            match bounded::line(&mut reader, bounded::LONGEST_REQUEST, &mut line) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    back.answer(0, Answer::Rejected { why: format!("not a request: {error}") });
                    return Err(error);
                }
            }
            match serde_json::from_slice::<Request>(&line) {
                Ok(request) => self.take(request, &back),
                Err(error) => back.answer(0, Answer::Rejected { why: format!("not a request: {error}") }),
            }
        }
    }

    fn take(&self, request: Request, back: &Back) {
        let id = request.id;
        if request.command == Command::Hello {
            return back.answer(id, self.welcome());
        }
        if !request.command.only_looks() {
            back.answer(id, Answer::Queued);
        }
        if self.requests.send(Incoming { request, back: back.clone() }).is_err() {
            back.answer(id, Answer::Rejected { why: "the run has ended".into() });
        }
    }

    fn welcome(&self) -> Answer {
        let control = self
            .controller
            .lock()
            .is_ok_and(|mut controller| *controller.get_or_insert(self.number) == self.number);
        Answer::Welcome {
            control,
            paused: self.status.paused.load(Relaxed),
            update: self.status.update.load(Relaxed),
        }
    }
}
