//! A run as a folder that TensorBoard loads: scalars, histograms of the optimizer's state at every checkpoint that is kept,
//! hyper-parameters, and a page with its name and its note.

use std::{
    fs::{self, File},
    io::BufWriter,
    path::Path,
};

use super::{
    ExportError,
    kept::{Kept, Progress},
};
use crate::{
    protocol::{Header, Reason},
    run::{
        RunDir, Standing, State, checkpoint,
        label::Label,
        summary,
        tensorboard::{Recorder, file_name, seconds},
    },
};

/// Writes the folder's one file and returns its size in bytes.
///
/// # Errors
/// The run has no record yet, it or a checkpoint cannot be read, or the file cannot be written.
pub fn write(run: &RunDir, folder: &Path, progress: Progress<'_>) -> Result<u64, ExportError> {
    let kept = Kept::read(run, progress)?;
    let Some(header) = &kept.header else {
        return Err(summary::no_record(run, State::of(run, None, false)).into());
    };
    let path = folder.join(file_name(seconds(&header.started).max(0.0) as u64, 0));
    let Label { name, note, .. } = Label::read(run)?;
    // What a person calls it now; its folder is told as the session.
    let name = name.unwrap_or_else(|| header.name.clone());
    let header = Header { name, ..(**header).clone() };
    let mut recorder = Recorder::new(BufWriter::new(File::create_new(&path)?), &header, None)?;
    recorder.label(&header.run, &header.name, note.as_deref())?;
    let wanted = |kind: &str| matches!(kind, "update" | "validation" | "sample" | "host" | "state");
    kept.each(run, wanted, progress, |event| Ok::<(), ExportError>(recorder.take(&event)?))?;
    for kept in checkpoint::checkpoints(run)? {
        recorder.checkpoint(&kept)?;
    }
    let standing = Standing::read(run)?;
    if standing.has_ended() {
        let summary = &standing.summary;
        recorder.end(summary.reason, summary.wall_seconds, summary.updates)?;
    } else if standing.state == State::Crashed {
        recorder.end(Reason::Failed, standing.summary.wall_seconds, standing.summary.updates)?;
    }
    recorder.flush()?;
    Ok(fs::metadata(&path)?.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::Event,
        run::{
            EventWriter, label, sample,
            tensorboard::{PREFIX, frame},
        },
    };

    /// How often the tag stands in the records.
    fn told(records: &[&[u8]], tag: &str) -> usize {
        records.iter().filter(|record| record.windows(tag.len()).any(|part| part == tag.as_bytes())).count()
    }

    #[test]
    fn a_run_is_one_file_of_whole_records() {
        let (folder, run) = sample::run("board");
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        assert!(write(&run, &out, &mut |_, _| {}).is_err(), "there is no record");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for (update, loss) in [(1, 4.0), (2, f64::NAN), (3, 2.0)] {
            writer.append(&sample::update(update, loss)).unwrap();
        }
        writer.append(&Event::resumed(2)).unwrap();
        writer.append(&sample::update(3, 2.5)).unwrap();
        writer.append(&sample::validation(3, 2.25)).unwrap();
        writer.append(&sample::text(3)).unwrap();
        sample::checkpoint(&run, 3);
        label::rename(&run, "better *name*").unwrap();
        label::annotate(&run, "with | the good data").unwrap();
        writer.append(&sample::run_ended(&run)).unwrap();
        let size = write(&run, &out, &mut |_, _| {}).unwrap();
        let files: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 1);
        assert!(files[0].file_name().to_string_lossy().starts_with(PREFIX));
        let bytes = fs::read(files[0].path()).unwrap();
        assert_eq!(bytes.len() as u64, size);
        let records = frame::read(&bytes).unwrap();
        // The tags of the results stand in the hyper-parameters' list, too.
        assert_eq!((told(&records, "train/grad_norm"), told(&records, "val/loss")), (3, 2));
        assert_eq!(told(&records, "opt/model.norm.weight/exp_avg_sq"), 1);
        assert_eq!((told(&records, "val/text"), told(&records, "the sun rises")), (1, 1));
        // The name of the experiment, and what the run's page says in blocks.
        assert_eq!((told(&records, "better *name*"), told(&records, "```text\nbetter *name*\n```")), (2, 1));
        assert_eq!((told(&records, "```text\nwith | the good data\n```"), told(&records, run.id())), (1, 2));
        assert_eq!(told(&records, "model.norm.weight/step"), 0, "a number is no distribution");
        for tag in ["_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info"] {
            assert_eq!(told(&records, tag), 1, "{tag}");
        }
        assert_eq!((told(&records, "optimizer.adamw.lr"), told(&records, "optimizer.sgd.lr")), (2, 0));
    }
}
