//! The folder of a run that grows while it trains.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter},
};

use super::{PREFIX, Recorder, file_name, seconds};
use crate::{
    protocol::{Event, Header},
    run::{RunDir, checkpoint, export::ExportError, own},
};

/// Writes the events of a run for TensorBoard as they come: `tensorboard --logdir RUNDIR/tensorboard` shows them.
#[derive(Debug)]
pub struct Live {
    run: RunDir,
    recorder: Recorder<BufWriter<File>>,
    /// The checkpoint whose histograms it has.
    told: Option<u64>,
}

/// Largest state that is read through for its histograms while a run trains, and when it ends, in bytes: nobody waits for more
/// than a moment. An export reads all of any size.
const LARGEST_STATE: [u64; 2] = [64 << 20, 512 << 20];

impl Live {
    /// Begins a file in the folder `tensorboard` of the run, one after those of earlier processes. `from` is the update
    /// that a resumed run goes on from, and the seconds it had run.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn start(run: &RunDir, header: &Header, from: Option<(u64, f64)>) -> io::Result<Self> {
        let folder = run.tensorboard();
        if folder.is_symlink() {
            return Err(io::Error::other(format!("{} is a link", folder.display())));
        }
        fs::create_dir_all(&folder)?;
        let mut number = 0;
        for entry in fs::read_dir(&folder)? {
            number += usize::from(entry?.file_name().to_string_lossy().starts_with(PREFIX));
        }
        let begun = seconds(&header.started) + from.map_or(0.0, |(_, time)| time);
        let path = folder.join(file_name(begun.max(0.0) as u64, number));
        let file = own::open(&path, OpenOptions::new().create_new(true).write(true))?;
        let recorder = Recorder::new(BufWriter::new(file), header, from.map(|(update, _)| update))?;
        let mut live = Self { run: run.clone(), recorder, told: None };
        live.recorder.flush()?;
        Ok(live)
    }

    /// Takes one more event, which can be seen at once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn take(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Checkpoint(_) => {
                self.recorder.take(event)?;
                self.histograms(LARGEST_STATE[0])?;
            }
            Event::RunEnded(ended) => {
                self.histograms(LARGEST_STATE[1])?;
                let summary = &ended.summary;
                self.recorder.end(ended.reason, summary.wall_seconds, summary.updates)?;
            }
            other => self.recorder.take(other)?,
        }
        self.recorder.flush()
    }

    /// How the state lies in the last checkpoint.
    fn histograms(&mut self, largest: u64) -> io::Result<()> {
        let Ok(Some(last)) = checkpoint::latest_checkpoint(&self.run) else { return Ok(()) };
        // It may just have been removed for a newer one.
        let Ok(state) = fs::metadata(last.optimizer()) else { return Ok(()) };
        if self.told == Some(last.update) || state.len() > largest {
            return Ok(());
        }
        match self.recorder.checkpoint(&last) {
            Ok(()) => self.told = Some(last.update),
            Err(ExportError::Write(error)) => return Err(error),
            Err(ExportError::Run(_)) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::CheckpointWritten,
        run::{sample, tensorboard::frame},
    };

    fn files(run: &RunDir) -> Vec<std::path::PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(run.tensorboard()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn every_event_can_be_read_at_once_and_a_resumed_run_adds_a_file() {
        let (_folder, run) = sample::run("live");
        let header = sample::header(&run);
        let mut live = Live::start(&run, &header, None).unwrap();
        let count = |file: usize| frame::read(&fs::read(&files(&run)[file]).unwrap()).unwrap().len();
        assert_eq!(count(0), 3);
        live.take(&sample::update(1, 2.0)).unwrap();
        assert_eq!(count(0), 4);
        drop(live);
        let mut live = Live::start(&run, &header, Some((1, 0.5))).unwrap();
        assert_eq!(count(1), 4, "it says where it goes on, too");
        live.take(&sample::update(2, 2.0)).unwrap();
        assert_eq!((count(0), count(1), files(&run).len()), (4, 5, 2));
        crate::run::EventWriter::create(&run, &header).unwrap();
        sample::checkpoint(&run, 2);
        let written =
            CheckpointWritten { update: 2, time: 1.0, path: "checkpoints/00000002".into(), bytes: 9 };
        live.take(&Event::Checkpoint(written)).unwrap();
        let with_histograms = count(1);
        assert!(with_histograms > 10, "histograms of the state");
        live.take(&sample::run_ended(&run)).unwrap();
        assert!(count(1) < with_histograms + 5, "the same state is not told twice");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (folder, run) = sample::run("link");
        std::os::unix::fs::symlink(folder.path(), run.tensorboard()).unwrap();
        let told = Live::start(&run, &sample::header(&run), None).unwrap_err().to_string();
        assert!(told.contains("is a link"), "{told}");
    }
}
