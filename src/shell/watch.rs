//! A thread that follows one run: its record, whether its worker lives, and what the worker answers.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel},
    time::{Duration, Instant},
};

use crate::{
    app::{Msg, link::Control, run::Waiting},
    protocol::{Answer, Command, Event},
    run::{Client, Queue, RunDir, Tail, lock, preparing, queue, reaper, standing},
};

/// Time between two looks at the record.
const POLL: Duration = Duration::from_millis(50);
/// Bytes of the record in one message, so that a long one shows from its first piece on.
const PIECE: u64 = 1 << 20;
/// Time between two attempts to take control of a run that another UI drives.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// Time between two looks at the queue for a run that has not started.
const WAITS: Duration = Duration::from_secs(1);
/// Lines of the worker's log that are shown when it died.
const LOG_LINES: usize = 8;
/// How long it may take to learn how a worker ended.
const GONE: Duration = Duration::from_secs(1);

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
    /// When control was last asked for; nothing once this UI has it or never wants it.
    asked: Option<Instant>,
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

/// What was said of a run without a worker, and when it was looked at.
#[derive(Default)]
struct Waits {
    asked: Option<Instant>,
    told: Option<Waiting>,
}

/// Why a run that nobody has started has no worker; nothing when it is just being started.
pub(super) fn why_not_started(run: &RunDir) -> Option<Waiting> {
    if queue::was_removed(run) {
        return Some(Waiting::TakenOut);
    }
    // Where the line cannot be read nobody knows: the next look may tell.
    Queue::beside(run)?.waits(run).ok()?.map(Waiting::InLine)
}

/// The UI is gone or follows another run.
struct Over;

impl Follower {
    fn follow(mut self) {
        let mut tail = Tail::open(&self.run).with_newest_state();
        let (mut alive, mut ended, mut broken) = (None, false, false);
        let mut waits = Waits::default();
        let mut preparing = None;
        loop {
            let begun = standing::has_begun(&self.run);
            // Looked at before the record: when the worker is gone, its last line is there to be read.
            let live = lock::is_live(&self.run);
            if !broken && self.read(&mut tail, &mut ended, &mut broken).is_err() {
                return;
            }
            // Only before the first line of the record.
            let now = (live && !self.run.events().exists()).then(|| preparing::read(&self.run)).flatten();
            if now != preparing {
                preparing = now;
                if preparing.clone().is_some_and(|line| self.tell(Msg::Preparing(line)).is_err()) {
                    return;
                }
            }
            // A folder that vanishes takes its files with it: what was live is gone all the same.
            let known = live || alive.is_some() || begun || standing::was_abandoned(&self.run);
            if !known && self.wait(&mut waits).is_err() {
                return;
            }
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
            let skipped = tail.skipped();
            let mut events = Vec::new();
            let more = tail.each(PIECE, |event| {
                *ended = match event {
                    Event::RunEnded(_) => true,
                    Event::Resumed(_) => false,
                    _ => *ended,
                };
                events.push(event);
            });
            if !events.is_empty() {
                self.tell(Msg::Events(events))?;
            }
            if tail.skipped() > skipped {
                self.tell(Msg::Unreadable(tail.skipped()))?;
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

    /// Says why a run has no worker yet, when that has changed.
    fn wait(&self, waits: &mut Waits) -> Result<(), Over> {
        if waits.asked.is_some_and(|asked| asked.elapsed() < WAITS) {
            return Ok(());
        }
        waits.asked = Some(Instant::now());
        let now = why_not_started(&self.run);
        if now == waits.told {
            return Ok(());
        }
        waits.told.clone_from(&now);
        self.tell(Msg::Waits(now))
    }

    fn crash(&self) -> Msg {
        if !self.run.path().exists() {
            let told = format!("the run's folder is gone: {}", self.run.path().display());
            return Msg::Crash(vec![told]);
        }
        // Whoever started the worker learns a moment later how it ended.
        reaper::wait(&self.run, GONE);
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
            let asked = (!self.readonly).then(Instant::now);
            self.client = Some(Connection { client, asked, numbers: BTreeMap::new() });
        }
        let Some(connection) = &mut self.client else { return Ok(()) };
        if connection.asked.is_some_and(|asked| asked.elapsed() > ASK_AGAIN) {
            connection.asked = Some(Instant::now());
            // A failure shows when the answers are taken.
            let _ = connection.client.send(Command::Hello);
        }
        let replies = connection.client.try_replies();
        let closed = connection.client.is_closed();
        let mut messages = Vec::new();
        for reply in replies {
            if let Answer::Welcome { control, .. } = reply.answer {
                messages.push(Msg::Connected(if control {
                    connection.asked = None;
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

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        sync::mpsc::sync_channel,
    };

    use super::*;
    use crate::{
        app::{Options, RunRef, State, action::Screen, run::Status},
        config::Layers,
        protocol::{Reply, Request},
        run::{EventWriter, RunLock, sample, socket},
    };

    const DEADLINE: Duration = Duration::from_secs(20);

    /// Feeds a state from a watch until it is as wanted.
    fn until(messages: &Receiver<(u64, Msg)>, state: &mut State, wanted: impl Fn(&State) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !wanted(state) {
            let left = end.saturating_duration_since(Instant::now());
            let (number, msg) = messages.recv_timeout(left).expect("in time");
            assert_eq!(number, 7);
            state.update(msg);
        }
    }

    fn watching(run: &RunDir) -> State {
        let mut state = State::new(Layers::new(), Options::default(), Screen::Train).unwrap();
        state.update(Msg::Watching { run: RunRef { id: run.id().into(), ..RunRef::default() } });
        state
    }

    #[test]
    fn a_live_run_is_followed_commanded_and_its_death_is_noticed() {
        let (_folder, run) = sample::run("watched");
        let lock = RunLock::acquire(&run).unwrap();
        let listener = socket::bind(&run).unwrap();
        let worker = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut commands = Vec::new();
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let Ok(line) = line else { break };
                let Request { id, command } = serde_json::from_str(&line).unwrap();
                let answer = match command {
                    Command::Hello => Answer::Welcome { control: true, paused: false, update: 2 },
                    _ => Answer::Applied { at_update: 2 },
                };
                commands.push(command);
                let line = serde_json::to_string(&Reply { id, answer }).unwrap() + "\n";
                stream.write_all(line.as_bytes()).unwrap();
                if commands.contains(&Command::Pause) {
                    break;
                }
            }
            commands
        });
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, 3.0)).unwrap();
        let (sender, messages) = sync_channel(64);
        let watch = Watch::start(run.clone(), false, 7, sender).unwrap();
        let mut state = watching(&run);
        until(&messages, &mut state, |state| state.run.done() == 1 && state.link.control == Control::Full);
        writer.append(&sample::update(2, 2.5)).unwrap();
        until(&messages, &mut state, |state| state.run.done() == 2);
        for effect in state.update(Msg::Action(crate::app::action::Action::PauseResume)) {
            if let crate::app::Effect::Send { id, command } = effect {
                watch.send(id, command);
            }
        }
        assert_eq!(state.link.pending.len(), 1);
        until(&messages, &mut state, |state| state.link.pending.is_empty());
        assert_eq!(worker.join().unwrap(), [Command::Hello, Command::Pause]);
        drop(lock);
        until(&messages, &mut state, |state| state.status() == Some(Status::Crashed));
        until(&messages, &mut state, |state| !state.run.journal.is_empty());
    }

    #[test]
    fn lines_that_cannot_be_read_are_told_and_so_is_a_folder_that_is_gone() {
        let (_folder, run) = sample::run("hurt");
        let lock = RunLock::acquire(&run).unwrap();
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(run.events()).unwrap();
        file.write_all(b"torn\n{}\n").unwrap();
        writer.append(&sample::update(1, 3.0)).unwrap();
        let (sender, messages) = sync_channel(64);
        let _watch = Watch::start(run.clone(), false, 7, sender).unwrap();
        let mut state = watching(&run);
        let told =
            |state: &State, text: &str| state.run.journal.iter().any(|entry| entry.text.contains(text));
        until(&messages, &mut state, |state| told(state, "2 lines of events.jsonl cannot be read"));
        file.write_all(b"more\n").unwrap();
        until(&messages, &mut state, |state| told(state, "3 lines of events.jsonl cannot be read"));
        assert!(!told(&state, "2 lines"), "one line says how many there are");
        std::fs::remove_dir_all(run.path()).unwrap();
        until(&messages, &mut state, |state| state.status() == Some(Status::Crashed));
        until(&messages, &mut state, |state| told(state, "the run's folder is gone"));
        drop(lock);
    }

    #[test]
    fn a_queued_run_is_said_to_wait_until_it_is_taken_out() {
        let (_folder, run) = sample::run("waits");
        let line = Queue::beside(&run).unwrap();
        line.add(std::slice::from_ref(&run)).unwrap();
        let (sender, messages) = sync_channel(64);
        let _watch = Watch::start(run.clone(), false, 7, sender).unwrap();
        let mut state = watching(&run);
        until(&messages, &mut state, |state| state.status() == Some(Status::Queued));
        let told = state.link.waits.as_ref().unwrap().sentence();
        assert!(told.starts_with("place 1 of 1 in the queue"), "{told}");
        line.remove(&run).unwrap();
        until(&messages, &mut state, |state| state.status() == Some(Status::TakenOut));
        let _lock = RunLock::acquire(&run).unwrap();
        until(&messages, &mut state, |state| state.status() == Some(Status::Starting));
    }

    #[test]
    fn a_finished_run_is_read_to_its_end_and_no_command_goes_anywhere() {
        let (_folder, run) = sample::run("over");
        drop(RunLock::acquire(&run).unwrap());
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        (1..=500).for_each(|update| writer.append(&sample::update(update, 2.0)).unwrap());
        let (sender, messages) = sync_channel(2);
        let watch = Watch::start(run.clone(), true, 7, sender).unwrap();
        let mut state = watching(&run);
        until(&messages, &mut state, |state| state.link.gone && state.run.done() == 500);
        watch.send(3, Command::Pause);
        until(&messages, &mut state, |state| state.notice.as_ref().is_some_and(|notice| notice.error));
    }
}
