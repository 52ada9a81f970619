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

use crate::{
    protocol::{Alert, Event, Header, Level, Resumed},
    run::{RunDir, record::Record, writer::EventWriter},
};

/// Events that may wait for the disk.
const DEPTH: usize = 4096;

/// A handle that sends events to the writer; cheap to clone.
pub type Events = SyncSender<Event>;

/// The writer thread. It also folds what it writes, so that the summary is a function of the record alone.
#[derive(Debug)]
pub struct EventLog {
    events: Option<Events>,
    thread: Option<JoinHandle<(EventWriter, Record, io::Result<()>)>>,
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
        Self::write(writer, record, gone)
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
        let event = Event::Resumed(Box::new(resumed));
        writer.append(&event)?;
        record.take(event);
        Self::write(writer, record, gone)
    }

    fn write(mut writer: EventWriter, mut record: Record, gone: Arc<AtomicBool>) -> io::Result<Self> {
        let (events, queue) = sync_channel::<Event>(DEPTH);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || {
            let mut outcome = Ok(());
            let mut lost = 0_u64;
            for event in queue {
                record.apply(&event);
                // A disk that was full for a moment costs the events of that moment, no more.
                let appended = writer.append(&event);
                if let Err(error) = &appended {
                    lost += 1;
                    // Nothing that is trained from here on could be kept.
                    gone.fetch_or(error.kind() == io::ErrorKind::NotFound, Relaxed);
                } else if lost > 0 {
                    let alert = missing(&record, std::mem::take(&mut lost));
                    record.apply(&alert);
                    outcome = outcome.and(writer.append(&alert));
                }
                outcome = outcome.and(appended);
            }
            (writer, record, outcome)
        })?;
        Ok(Self { events: Some(events), thread: Some(thread) })
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
    pub fn finish(mut self) -> io::Result<(EventWriter, Record, io::Result<()>)> {
        self.events = None;
        let thread = self.thread.take().ok_or_else(|| io::Error::other("the writer has already ended"))?;
        thread.join().map_err(|_| io::Error::other("the thread that writes events panicked"))
    }
}

/// Says that the record has a hole, and where it ends.
fn missing(record: &Record, lost: u64) -> Event {
    let events = if lost == 1 { "event" } else { "events" };
    Event::Alert(Alert {
        update: record.updates(),
        time: record.totals.time,
        level: Level::Warning,
        message: format!("{lost} {events} before this could not be written: the record does not have them"),
    })
}
