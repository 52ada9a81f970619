//! Writes checkpoints beside training: one thread for each, one at a time.

use std::{io, thread::JoinHandle};

use super::{checkpoint::Snapshot, event_log::Events};
use crate::{
    config::CheckpointConfig,
    protocol::{Alert, CheckpointWritten, Event, Level},
    run::{
        RunDir, atomic,
        checkpoint::{self as stored, CheckpointInfo},
    },
};

/// Is told what became of a checkpoint, on the thread that wrote it.
pub type Told = Box<dyn FnOnce(Result<(), &io::Error>) + Send>;

/// A checkpoint on the disk that has not been told.
#[derive(Debug)]
pub struct Kept {
    /// `checkpoint.json`.
    pub info: CheckpointInfo,
    /// Of all its files.
    bytes: u64,
}

/// Has at most one checkpoint in flight.
#[derive(Debug)]
pub struct Keeper {
    run: RunDir,
    keep: CheckpointConfig,
    events: Events,
    in_flight: Option<JoinHandle<io::Result<()>>>,
}

impl Keeper {
    /// Writes into that run and removes what its settings do not keep.
    pub const fn new(run: RunDir, keep: CheckpointConfig, events: Events) -> Self {
        Self { run, keep, events, in_flight: None }
    }

    /// Starts to write, once nothing else is in flight. `time` is that of the copy, in seconds of the run.
    ///
    /// # Errors
    /// No thread can be started. What becomes of the writing is said in the record: the `checkpoint` event comes when
    /// it is on the disk, an alert when it failed.
    pub fn begin(&mut self, snapshot: Snapshot, time: f64, told: Option<Told>) -> io::Result<()> {
        // Its failure has been told.
        let _ = self.wait();
        let (run, keep, events) = (self.run.clone(), self.keep.clone(), self.events.clone());
        let write = move || write(&run, &keep, &events, snapshot, time, told);
        self.in_flight = Some(std::thread::Builder::new().name("checkpoint".into()).spawn(write)?);
        Ok(())
    }

    /// Writes one here and now, once nothing else is in flight, and leaves it to [`Self::tell`] to say so.
    ///
    /// # Errors
    /// It could not be written, which is said in the record.
    pub fn keep(&mut self, snapshot: Snapshot, time: f64) -> io::Result<Kept> {
        // Its failure has been told.
        let _ = self.wait();
        let (bytes, info) = put(&self.run, &self.events, snapshot, time)?;
        Ok(Kept { info, bytes })
    }

    /// Says in the record that it is there, and removes what is not kept. What `checkpoint.json` says is written again
    /// where it has `changed`.
    pub fn tell(&self, Kept { info, mut bytes }: Kept, changed: bool) {
        let (update, time) = (info.update, info.progress.time);
        if changed {
            match amend(&self.run, &info) {
                Ok(more) => bytes = bytes.saturating_add_signed(more),
                Err(error) => {
                    let message = format!(
                        "the checkpoint of update {update} does not say its validation loss: {error}"
                    );
                    let _ = self.events.send(alert(update, time, Level::Warning, message));
                }
            }
        }
        let _ = self.events.send(Event::Checkpoint(on_disk(&self.run, update, time, bytes)));
        prune(&self.run, &self.keep, &self.events, update, time);
    }

    /// Waits until nothing is in flight.
    ///
    /// # Errors
    /// What was in flight could not be written.
    pub fn wait(&mut self) -> io::Result<()> {
        match self.in_flight.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(io::Error::other("the thread that writes checkpoints panicked")),
        }
    }

    /// What became of the one in flight, if it is through.
    ///
    /// # Errors
    /// It could not be written.
    pub fn look(&mut self) -> io::Result<()> {
        if self.in_flight.as_ref().is_some_and(JoinHandle::is_finished) { self.wait() } else { Ok(()) }
    }
}

impl Drop for Keeper {
    /// A run that ends in a hurry still finishes what it began to write.
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

/// Writes one, tells what became of it, and removes what is not kept.
fn write(
    run: &RunDir,
    keep: &CheckpointConfig,
    events: &Events,
    snapshot: Snapshot,
    time: f64,
    told: Option<Told>,
) -> io::Result<()> {
    let update = snapshot.update();
    let written = put(run, events, snapshot, time);
    if let Ok((bytes, _)) = &written {
        let _ = events.send(Event::Checkpoint(on_disk(run, update, time, *bytes)));
    }
    if let Some(told) = told {
        told(written.as_ref().map(|_| ()));
    }
    if written.is_ok() {
        prune(run, keep, events, update, time);
    }
    written.map(|_| ())
}

/// Brings one to the disk; that it failed is said in the record.
fn put(run: &RunDir, events: &Events, snapshot: Snapshot, time: f64) -> io::Result<(u64, CheckpointInfo)> {
    let update = snapshot.update();
    // A run goes on from a checkpoint with the record so far: the events of its updates must be there, even when the
    // machine stops. The writer outlives this thread; should it have failed, the run reports it at its end.
    let _ = events.settle();
    snapshot.write(run).inspect_err(|error| {
        let message = format!("the checkpoint of update {update} was not written: {error}");
        let _ = events.send(alert(update, time, Level::Error, message));
    })
}

fn prune(run: &RunDir, keep: &CheckpointConfig, events: &Events, update: u64, time: f64) {
    if let Err(error) = stored::prune(run, keep.keep_last, keep.keep_best) {
        let message = format!("an old checkpoint could not be removed: {error}");
        let _ = events.send(alert(update, time, Level::Warning, message));
    }
}

/// Writes `checkpoint.json` again; returns by how many bytes it has grown.
fn amend(run: &RunDir, info: &CheckpointInfo) -> io::Result<i64> {
    let path = stored::Checkpoint { update: info.update, path: run.checkpoint(info.update) }.info_json();
    let before = std::fs::metadata(&path)?.len();
    let json = serde_json::to_vec_pretty(info)?;
    atomic::write_file(&path, &json)?;
    Ok(json.len() as i64 - before as i64)
}

fn on_disk(run: &RunDir, update: u64, time: f64, bytes: u64) -> CheckpointWritten {
    let path = run.checkpoint(update);
    let path = path.strip_prefix(run.path()).unwrap_or(&path).display().to_string();
    CheckpointWritten { update, time, path, bytes }
}

fn alert(update: u64, time: f64, level: Level, message: String) -> Event {
    Event::Alert(Alert { update, time, level, message })
}

#[cfg(test)]
mod tests;
