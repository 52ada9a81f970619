//! A thread that follows one run: its record, whether its worker lives, and what the worker answers.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel},
    time::Duration,
};

use crate::{
    app::{Msg, link::Control},
    protocol::{Answer, Command, Event},
    run::{Client, RunDir, Tail, lock, standing},
};

/// Time between two looks at the record.
const POLL: Duration = Duration::from_millis(50);
/// Bytes of the record in one message, so that a long one shows from its first piece on.
const PIECE: u64 = 1 << 20;
/// Lines of the worker's log that are shown when it died.
const LOG_LINES: usize = 8;

/// A command and the number that the state gave it.
#[derive(Debug)]
struct Order {
    id: u64,
    command: Command,
}

/// The thread's handle; dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    orders: Sender<Order>,
}

impl Watch {
    /// Starts following a run. Messages carry `number`, so that those of an earlier watch can be told apart.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        run: RunDir,
        readonly: bool,
        number: u64,
        messages: SyncSender<(u64, Msg)>,
    ) -> std::io::Result<Self> {
        let (orders, taken) = channel();
        let follower = Follower { run, readonly, number, messages, orders: taken, client: None };
        std::thread::Builder::new().name("watch".into()).spawn(move || follower.follow())?;
        Ok(Self { orders })
    }

    /// Passes a command on to the worker; its answer comes as a message.
    pub fn send(&self, id: u64, command: Command) {
        // The thread ends only after this handle.
        let _ = self.orders.send(Order { id, command });
    }
}

struct Connection {
    client: Client,
    /// The client's numbers and the state's.
    numbers: BTreeMap<u64, u64>,
}

struct Follower {
    run: RunDir,
    readonly: bool,
    number: u64,
    messages: SyncSender<(u64, Msg)>,
    orders: Receiver<Order>,
    client: Option<Connection>,
}

/// The UI is gone or follows another run.
struct Over;

impl Follower {
    fn follow(mut self) {
        let mut tail = Tail::open(&self.run);
        let (mut alive, mut ended, mut broken) = (None, false, false);
        loop {
            // Looked at first: when the worker is gone, its last line is there to be read.
            let live = lock::is_live(&self.run);
            if !broken && self.read(&mut tail, &mut ended, &mut broken).is_err() {
                return;
            }
            let known = live || lock::was_started(&self.run) || self.run.events().exists();
            if known && alive != Some(live) {
                alive = Some(live);
                if !live {
                    self.client = None;
                }
                let crash = (!live && !ended).then(|| self.crash());
                if self.tell(Msg::Alive(live)).is_err() || crash.is_some_and(|msg| self.tell(msg).is_err()) {
                    return;
                }
            }
            if (live && self.speak().is_err()) || self.obey().is_err() {
                return;
            }
        }
    }

    fn tell(&self, msg: Msg) -> Result<(), Over> {
        self.messages.send((self.number, msg)).map_err(|_| Over)
    }

    fn read(&self, tail: &mut Tail, ended: &mut bool, broken: &mut bool) -> Result<(), Over> {
        loop {
            let mut events = Vec::new();
            let more = tail.each(PIECE, |event| {
                *ended = match event {
                    Event::RunEnded(_) => true,
                    Event::Resumed { .. } => false,
                    _ => *ended,
                };
                events.push(event);
            });
            if !events.is_empty() {
                self.tell(Msg::Events(events))?;
            }
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    *broken = true;
                    return self.tell(Msg::Failed(format!("the run's record cannot be read: {error}")));
                }
            }
        }
    }

    fn crash(&self) -> Msg {
        let (told, log) = standing::crash_report(&self.run, LOG_LINES);
        Msg::Crash(std::iter::once(told).chain(log).collect())
    }

    /// Connects to the worker if there is no connection, and takes its answers.
    fn speak(&mut self) -> Result<(), Over> {
        if self.client.is_none() {
            // The worker opens its socket a moment after it takes the lock.
            let Ok(mut client) = Client::connect(&self.run) else { return Ok(()) };
            if self.readonly {
                self.tell(Msg::Connected(Control::ReadOnly("started with --readonly".into())))?;
            } else if client.send(Command::Hello).is_err() {
                return Ok(());
            }
            self.client = Some(Connection { client, numbers: BTreeMap::new() });
        }
        let Some(connection) = &mut self.client else { return Ok(()) };
        let replies = connection.client.try_replies();
        let closed = connection.client.is_closed();
        let mut messages = Vec::new();
        for reply in replies {
            if let Answer::Welcome { control, .. } = reply.answer {
                messages.push(Msg::Connected(if control {
                    Control::Full
                } else {
                    Control::ReadOnly("another UI drives this run".into())
                }));
            }
            let id = if matches!(reply.answer, Answer::Queued) {
                connection.numbers.get(&reply.id).copied()
            } else {
                connection.numbers.remove(&reply.id)
            };
            messages.push(Msg::Answer { id: id.unwrap_or(0), answer: reply.answer });
        }
        if closed {
            self.client = None;
            messages.push(Msg::Connected(Control::None));
        }
        messages.into_iter().try_for_each(|msg| self.tell(msg))
    }

    /// Waits for commands until it is time to look again.
    fn obey(&mut self) -> Result<(), Over> {
        let order = match self.orders.recv_timeout(POLL) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(Over),
        };
        let sent = self.client.as_mut().map(|connection| {
            let sent = connection.client.send(order.command);
            sent.map(|number| connection.numbers.insert(number, order.id))
        });
        let why = match sent {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => error.to_string(),
            None => "the worker cannot be reached".to_owned(),
        };
        self.tell(Msg::Answer { id: order.id, answer: Answer::Rejected { why } })
    }
}
