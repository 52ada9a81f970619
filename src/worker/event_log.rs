//! The thread that writes events, so that a slow disk never holds up the engine for longer than its queue is deep.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use thiserror::Error;

use super::reserve;
use crate::{
    protocol::{Alert, Event, Header, Level, Resumed},
    run::{RunDir, record::Record, tensorboard::Live, writer::EventWriter},
};

/// Events that may wait for the disk.
const DEPTH: usize = 4096;

/// A handle that sends events to the writer; cheap to clone.
#[derive(Debug, Clone)]
pub struct Events(SyncSender<Queued>);

/// What waits for the writer.
#[derive(Debug)]
enum Queued {
    Event(Event),
    /// Tell it when everything before is on the disk.
    Settle(SyncSender<()>),
}

/// The writer has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the thread that writes events has ended")]
pub struct Closed;

impl Events {
    /// Sends one event; waits only while the queue is full.
    ///
    /// # Errors
    /// The writer has ended.
    pub fn send(&self, event: Event) -> Result<(), Closed> {
        self.0.send(Queued::Event(event)).map_err(|_| Closed)
    }

    /// Waits until everything that was sent before is on the disk, if the disk takes it: what it does not take is told in
    /// the record and at the end of the run.
    ///
    /// # Errors
    /// The writer has ended.
    pub fn settle(&self) -> Result<(), Closed> {
        let (told, done) = sync_channel(1);
        self.0.send(Queued::Settle(told)).map_err(|_| Closed)?;
        done.recv().map_err(|_| Closed)
    }

    /// A handle that leads nowhere.
    pub(super) fn closed() -> Self {
        Self(sync_channel(1).0)
    }

    /// A handle whose events come back as they are.
    #[cfg(test)]
    pub(super) fn kept() -> (Self, std::sync::mpsc::Receiver<Event>) {
        let (queue, queued) = sync_channel(DEPTH);
        let (sender, events) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for queued in queued {
                match queued {
                    Queued::Event(event) => drop(sender.send(event)),
                    Queued::Settle(told) => drop(told.send(())),
                }
            }
        });
        (Self(queue), events)
    }
}

/// The writer thread. It also folds what it writes, so that the summary is a function of the record alone.
#[derive(Debug)]
pub struct EventLog {
    events: Option<Events>,
    thread: Option<JoinHandle<(Files, Record, io::Result<()>)>>,
}

/// The record, and what grows beside it from the same events.
#[derive(Debug)]
pub struct Files {
    run: RunDir,
    record: EventWriter,
    tensorboard: Option<Live>,
    /// Why nothing is written beside the record any more.
    trouble: Option<String>,
}

impl Files {
    /// `from` is the update that a resumed run goes on from, and its time.
    fn new(run: &RunDir, record: EventWriter, header: Option<&Header>, from: Option<(u64, f64)>) -> Self {
        reserve::take(run);
        let mut files = Self { run: run.clone(), record, tensorboard: None, trouble: None };
        if let Some(header) = header.filter(|header| header.config.log.tensorboard) {
            match Live::start(run, header, from) {
                Ok(live) => files.tensorboard = Some(live),
                Err(error) => files.gave_up(&error),
            }
        }
        files
    }

    /// Appends one event.
    ///
    /// # Errors
    /// The record cannot be written; see [`EventWriter::append`].
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let appended = self.record.append(event);
        if let Some(Err(error)) = self.tensorboard.as_mut().map(|live| live.take(event)) {
            self.gave_up(&error);
        }
        appended
    }

    /// Appends a word about the record itself, which is a part of it.
    fn tell(&mut self, record: &mut Record, alert: Event) -> io::Result<()> {
        let told = self.append(&alert);
        record.take(alert);
        told
    }

    /// A file with a piece of a record at its end cannot be gone on with. The run can.
    fn gave_up(&mut self, error: &io::Error) {
        self.tensorboard = None;
        self.trouble = Some(format!(
            "nothing more is written for TensorBoard ({error}): `tui-train export --format tensorboard` writes it all"
        ));
    }

    /// Waits until the record is on disk.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn sync(&self) -> io::Result<()> {
        self.record.sync()
    }
}

impl EventLog {
    /// Writes the header and starts the thread, which sets `gone` when the record is deleted under it.
    ///
    /// # Errors
    /// The run directory cannot be written.
    pub fn start(run: &RunDir, header: &Header, gone: Arc<AtomicBool>) -> io::Result<Self> {
        let writer = EventWriter::create(run, header)?;
        let mut record = Record::default();
        record.apply(&Event::Header(Box::new(header.clone())));
        Self::write(Files::new(run, writer, Some(header), None), record, gone)
    }

    /// Goes on with a record, of which `record` is the fold so far, and starts the thread.
    ///
    /// # Errors
    /// The run directory cannot be written.
    pub fn resume(
        run: &RunDir,
        mut record: Record,
        resumed: Resumed,
        gone: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let mut writer = EventWriter::reopen(run)?;
        let from = (resumed.from_update, resumed.time);
        let event = Event::Resumed(Box::new(resumed));
        writer.append(&event)?;
        record.take(event);
        let files = Files::new(run, writer, record.header.as_deref(), Some(from));
        Self::write(files, record, gone)
    }

    fn write(mut writer: Files, mut record: Record, gone: Arc<AtomicBool>) -> io::Result<Self> {
        let (events, queue) = sync_channel(DEPTH);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || {
            let mut outcome = Ok(());
            let mut lost = 0_u64;
            for queued in queue {
                let event = match queued {
                    Queued::Event(event) => event,
                    Queued::Settle(told) => {
                        outcome = outcome.and(writer.sync());
                        // Whoever waits may be gone.
                        let _ = told.send(());
                        continue;
                    }
                };
                // A disk that was full for a moment costs the events of that moment, no more.
                let appended = writer.append(&event);
                record.take(event);
                if let Err(error) = &appended {
                    lost += 1;
                    // Nothing that is trained from here on could be kept.
                    gone.fetch_or(error.kind() == io::ErrorKind::NotFound, Relaxed);
                } else if lost > 0 {
                    let alert = missing(&record, std::mem::take(&mut lost));
                    outcome = outcome.and(writer.tell(&mut record, alert));
                }
                outcome = outcome.and(appended);
                if let Some(message) = writer.trouble.take() {
                    let alert = warning(&record, message);
                    outcome = outcome.and(writer.tell(&mut record, alert));
                }
            }
            if lost > 0 {
                // What is kept back for the end has room for a word about them.
                reserve::give_back(&writer.run);
                let alert = missing(&record, lost);
                outcome = outcome.and(writer.tell(&mut record, alert));
            }
            (writer, record, outcome)
        })?;
        Ok(Self { events: Some(Events(events)), thread: Some(thread) })
    }

    /// A sender of events.
    pub fn sender(&self) -> Option<Events> {
        self.events.clone()
    }

    /// Waits until everything sent has been tried. Every other sender must be gone. Returns, beside the writer and the
    /// fold of all events, the first write that failed.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn finish(mut self) -> io::Result<(Files, Record, io::Result<()>)> {
        self.events = None;
        let thread = self.thread.take().ok_or_else(|| io::Error::other("the writer has already ended"))?;
        thread.join().map_err(|_| io::Error::other("the thread that writes events panicked"))
    }
}

/// Says that the record has a hole, and where it ends.
fn missing(record: &Record, lost: u64) -> Event {
    let events = if lost == 1 { "event" } else { "events" };
    warning(
        record,
        format!("{lost} {events} before this could not be written: the record does not have them"),
    )
}

fn warning(record: &Record, message: String) -> Event {
    let (update, time) = (record.updates(), record.totals.time);
    Event::Alert(Alert { update, time, level: Level::Warning, message })
}
