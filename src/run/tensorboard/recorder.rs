//! A run's events as TensorBoard's: scalars under the metrics' own names, histograms, hyper-parameters.

use std::io::{self, Write};

use super::{frame, histogram::Histogram, hparams, proto::Message, seconds};
use crate::{
    protocol::{Event, Header, Host, Reason, StateReport, TextSample, Update, Validation},
    run::{
        checkpoint::Checkpoint,
        checkpoint_view::CheckpointView,
        export::{ExportError, texts},
    },
};

/// A file being written.
#[derive(Debug)]
pub struct Recorder<W> {
    out: W,
    /// Seconds since 1970 when the run began.
    started: f64,
    /// Seconds of the run at the newest event that carries a time.
    time: f64,
    record: Message,
    summary: Message,
    value: Message,
}

/// A reading of the machine, and the scalar it becomes.
type Reading = (&'static str, fn(&Host) -> Option<f64>);

/// Whole numbers of bytes are exact as far as 4 digits are asked for: a scalar is an f32.
const READINGS: [Reading; 10] = [
    ("mem/host_rss", |host| host.host_rss.map(|bytes| bytes as f64)),
    ("mem/allocator", |host| host.allocator.map(|bytes| bytes as f64)),
    ("mem/gpu_device_used", |host| host.gpu_device_used.map(|bytes| bytes as f64)),
    ("mem/gpu_process_used", |host| host.gpu_process_used.map(|bytes| bytes as f64)),
    ("mem/gpu_allocated", |host| host.gpu_allocated.map(|bytes| bytes as f64)),
    ("mem/gpu_reserved", |host| host.gpu_reserved.map(|bytes| bytes as f64)),
    ("sys/cpu_percent", |host| host.cpu_percent),
    ("sys/gpu_utilization", |host| host.gpu_utilization.map(|percent| percent as f64)),
    ("sys/gpu_power", |host| host.gpu_power),
    ("sys/gpu_energy", |host| host.gpu_energy),
];

impl<W: Write> Recorder<W> {
    /// Begins a file with its version and the run's hyper-parameters. Of a run that goes on, `from` is the update it goes
    /// on from: what earlier files say of later ones does not count.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(out: W, header: &Header, from: Option<u64>) -> io::Result<Self> {
        let mut recorder = Self {
            out,
            started: seconds(&header.started),
            time: 0.0,
            record: Message::default(),
            summary: Message::default(),
            value: Message::default(),
        };
        recorder.record.double(1, recorder.started).text(3, "brain.Event:2");
        frame::write(&mut recorder.out, recorder.record.bytes())?;
        if let Some(update) = from {
            recorder.went_back(update)?;
        }
        for value in [hparams::experiment(header), hparams::session_start(header)] {
            recorder.summary.clear();
            recorder.summary.message(1, &value);
            recorder.finish_record(0.0, from.unwrap_or(0))?;
        }
        Ok(recorder)
    }

    /// What was said of updates after that one does not count.
    fn went_back(&mut self, update: u64) -> io::Result<()> {
        let mut log = Message::default();
        // START, at the first update that is made again.
        log.whole(1, 1);
        self.record.clear();
        self.record.double(1, self.started).whole(2, update.saturating_add(1)).message(7, &log);
        frame::write(&mut self.out, self.record.bytes())
    }

    /// Writes what an event has for TensorBoard.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn take(&mut self, event: &Event) -> io::Result<()> {
        self.summary.clear();
        match event {
            Event::Update(update) => self.update(update),
            Event::Validation(validation) => self.validation(validation),
            Event::Sample(sample) => self.texts(sample),
            Event::Host(host) => self.host(host),
            Event::State(report) => self.state(report),
            _ => Ok(()),
        }
    }

    fn update(&mut self, update: &Update) -> io::Result<()> {
        self.scalar("train/loss", update.loss);
        self.scalar("train/learning_rate", update.learning_rate);
        self.scalar("train/grad_norm", update.grad_norm);
        self.scalar("perf/tokens_per_second", update.tokens_per_second);
        for (tag, value) in [("perf/flops_per_second", update.flops_per_second), ("perf/mfu", update.mfu)] {
            if let Some(value) = value {
                self.scalar(tag, value);
            }
        }
        self.finish_record(update.time, update.update)
    }

    fn validation(&mut self, validation: &Validation) -> io::Result<()> {
        self.scalar("val/loss", validation.loss);
        for (tag, value) in [
            ("val/accuracy", validation.accuracy),
            ("val/f1", validation.f1),
            ("val/f1_macro", validation.f1_macro),
        ] {
            if let Some(value) = value {
                self.scalar(tag, value);
            }
        }
        self.finish_record(validation.time, validation.update)
    }

    /// What the model wrote.
    fn texts(&mut self, sample: &TextSample) -> io::Result<()> {
        self.page("val/text", &texts::markdown(sample));
        self.finish_record(sample.time, sample.update)
    }

    /// Says what the run is called and what somebody wrote down about it.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn label(&mut self, id: &str, name: &str, note: Option<&str>) -> io::Result<()> {
        self.summary.clear();
        self.page("run", &texts::label(id, name, note));
        self.finish_record(0.0, 0)
    }

    /// Adds a page of Markdown, which TensorBoard's text plugin shows.
    fn page(&mut self, tag: &str, markdown: &str) {
        let (mut plugin, mut metadata, mut tensor) =
            (Message::default(), Message::default(), Message::default());
        plugin.text(1, "text");
        // DATA_CLASS_TENSOR
        metadata.message(1, &plugin).whole(4, 2);
        // DT_STRING without an axis: one text.
        tensor.whole(1, 7).message(2, &Message::default()).text(8, markdown);
        self.value.clear();
        self.value.text(1, tag).message(8, &tensor).message(9, &metadata);
        self.summary.message(1, &self.value);
    }

    fn host(&mut self, host: &Host) -> io::Result<()> {
        for (tag, reading) in READINGS {
            if let Some(value) = reading(host) {
                self.scalar(tag, value);
            }
        }
        self.finish_record(host.time, host.update)
    }

    /// The statistics of every state tensor; their elements are in checkpoints alone.
    fn state(&mut self, report: &StateReport) -> io::Result<()> {
        for tensor in &report.tensors {
            if let Some(ratio) = tensor.update_ratio {
                self.scalar(&format!("opt/{}/update_ratio", tensor.name), ratio);
            }
            for (state, of) in &tensor.state {
                let Some(stats) = of.stats.filter(|_| !of.shape.is_empty()) else { continue };
                self.scalar(&format!("opt/{}/{state}/rms", tensor.name), stats.rms);
                if stats.nonfinite > 0 {
                    self.scalar(&format!("opt/{}/{state}/nonfinite", tensor.name), stats.nonfinite as f64);
                }
            }
        }
        // Events of the state carry no time of their own.
        self.finish_record(self.time, report.update)
    }

    /// Adds a scalar to the record being made.
    fn scalar(&mut self, tag: &str, value: f64) {
        self.value.clear();
        self.value.text(1, tag).float(2, value as f32);
        self.summary.message(1, &self.value);
    }

    /// Writes a histogram; `time` is seconds since the run began.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn histogram(&mut self, tag: &str, time: f64, update: u64, histogram: &Histogram) -> io::Result<()> {
        let (ends, counts) = histogram.buckets();
        if counts.is_empty() {
            return Ok(());
        }
        let mut inner = Message::default();
        inner.double(1, histogram.min).double(2, histogram.max).double(3, histogram.count as f64);
        inner.double(4, histogram.sum).double(5, histogram.sum_of_squares);
        inner.doubles(6, &ends).doubles(7, &counts);
        self.value.clear();
        self.value.text(1, tag).message(5, &inner);
        self.summary.clear();
        self.summary.message(1, &self.value);
        self.finish_record(time, update)
    }

    /// Writes how the elements of every state tensor of a checkpoint lie.
    ///
    /// # Errors
    /// The checkpoint cannot be read, or `out` cannot be written.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), ExportError> {
        let view = CheckpointView::open(checkpoint)?;
        let (update, time) = (view.info().update, view.info().progress.time);
        for name in view.names() {
            for (state, histogram) in view.histograms(name)? {
                self.histogram(&format!("opt/{name}/{state}"), time, update, &histogram)?;
            }
        }
        Ok(())
    }

    /// Says how the run ended, so many seconds after it began.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn end(&mut self, reason: Reason, time: f64, update: u64) -> io::Result<()> {
        self.summary.clear();
        self.summary.message(1, &hparams::session_end(reason, self.started + time));
        self.finish_record(time, update)
    }

    /// Writes the summary that was made, unless nothing is in it.
    fn finish_record(&mut self, time: f64, update: u64) -> io::Result<()> {
        self.time = time;
        if self.summary.bytes().is_empty() {
            return Ok(());
        }
        self.record.clear();
        self.record.double(1, self.started + time).whole(2, update).message(5, &self.summary);
        frame::write(&mut self.out, self.record.bytes())
    }

    /// Hands what was written on to whoever reads.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample;

    #[test]
    fn an_update_is_the_known_bytes() {
        let (_folder, run) = sample::run("bytes");
        let mut header = sample::header(&run);
        header.started = "1970-01-01T00:00:01Z".into();
        let mut out = Vec::new();
        let mut recorder = Recorder::new(&mut out, &header, None).unwrap();
        // Update 3 of the sample: 1.5 s, loss 2, rate 1e-3, norm 0.5, 1024 tokens/s.
        recorder.take(&sample::update(3, 2.0)).unwrap();
        let records = frame::read(&out).unwrap();
        assert_eq!(records.len(), 4, "version, experiment, session, update");
        assert_eq!(&records[0][11..], b"brain.Event:2");
        let mut expected = vec![0x09];
        expected.extend(2.5_f64.to_le_bytes());
        expected.extend([0x10, 3, 0x2a]);
        let mut values = Vec::new();
        for (tag, value) in [
            ("train/loss", 2.0_f32),
            ("train/learning_rate", 1e-3),
            ("train/grad_norm", 0.5),
            ("perf/tokens_per_second", 1024.0),
        ] {
            values.extend([0x0a, tag.len() as u8 + 7, 0x0a, tag.len() as u8]);
            values.extend(tag.as_bytes());
            values.push(0x15);
            values.extend(value.to_le_bytes());
        }
        expected.push(values.len() as u8);
        expected.extend(values);
        assert_eq!(records[3], expected);
    }
}
