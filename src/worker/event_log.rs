//! The thread that writes events, so that a slow disk never holds up the engine for longer than its queue is deep.

use std::{
    io,
    sync::mpsc::{SyncSender, sync_channel},
    thread::JoinHandle,
};

use crate::{
    protocol::{Event, Header, Resumed},
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
    /// Writes the header and starts the thread.
    ///
    /// # Errors
    /// The run directory cannot be written.
    pub fn start(run: &RunDir, header: &Header) -> io::Result<Self> {
        let writer = EventWriter::create(run, header)?;
        let mut record = Record::default();
        record.apply(&Event::Header(Box::new(header.clone())));
        Self::write(writer, record)
    }

    /// Goes on with a record, of which `record` is the fold so far, and starts the thread.
    ///
    /// # Errors
    /// The run directory cannot be written.
    pub fn resume(run: &RunDir, mut record: Record, resumed: Resumed) -> io::Result<Self> {
        let mut writer = EventWriter::reopen(run)?;
        let event = Event::Resumed(Box::new(resumed));
        writer.append(&event)?;
        record.take(event);
        Self::write(writer, record)
    }

    fn write(mut writer: EventWriter, mut record: Record) -> io::Result<Self> {
        let (events, queue) = sync_channel::<Event>(DEPTH);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || {
            let mut outcome = Ok(());
            for event in queue {
                record.apply(&event);
                // A disk that was full for a moment costs the events of that moment, no more.
                let appended = writer.append(&event);
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
