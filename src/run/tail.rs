//! The reading end of `events.jsonl`: what is new since the last look, whether the run is live or long over.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rayon::prelude::*;

pub use super::line::{Line, parse};
pub(super) use super::line::{kind, newer};
use super::{RunDir, bounded::LONGEST_LINE, own};
use crate::protocol::Event;

/// Bytes read at once.
const BLOCK: usize = 1 << 20;
/// Bytes of lines that one core reads at a time; less than that is not worth sharing.
const SHARE: usize = 64 * 1024;

/// Follows a run's record. A torn last line is kept for later; lines that cannot be read are counted.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// End of the last complete line that was read.
    offset: u64,
    /// Length of the file at the last look.
    seen: u64,
    corrupt: u64,
    unknown: u64,
    /// Of statistics of the optimizer's state only the newest is handed over.
    newest_state: bool,
    /// The beginning of the present line was dropped, because it is longer than any line can be.
    overlong: bool,
}

impl Tail {
    /// Starts at the beginning of the record. The file may not exist yet.
    pub fn open(run: &RunDir) -> Self {
        Self::at(&run.events())
    }

    /// Starts at that byte of the record, at which a line begins.
    pub fn open_at(run: &RunDir, offset: u64) -> Self {
        Self { offset, ..Self::open(run) }
    }

    /// The same for any file of events.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            offset: 0,
            seen: 0,
            corrupt: 0,
            unknown: 0,
            newest_state: false,
            overlong: false,
        }
    }

    /// Hands over only the newest statistics of the optimizer's state among those that one look finds: they are the
    /// longest lines, and who only wants to know how things stand needs no others.
    pub const fn with_newest_state(mut self) -> Self {
        self.newest_state = true;
        self
    }

    /// The events that were appended since the last call. Costs one look at the file's length when there are none.
    ///
    /// # Errors
    /// The file cannot be read, or became shorter.
    pub fn poll(&mut self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        self.each(u64::MAX, |event| events.push(event))?;
        Ok(events)
    }

    /// Hands over new events one by one until about `most` bytes are read; returns whether there are more.
    ///
    /// # Errors
    /// The file cannot be read, or became shorter.
    pub fn each(&mut self, most: u64, mut take: impl FnMut(Event)) -> io::Result<bool> {
        if self.file.is_none() {
            match own::look(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let Some(file) = &self.file else { return Ok(false) };
        let length = file.metadata()?.len();
        if length == self.seen {
            return Ok(false);
        }
        if length < self.offset {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} became shorter, but a record only grows", self.path.display()),
            ));
        }
        let left = usize::try_from(length - self.offset).unwrap_or(BLOCK);
        let (mut buffer, mut filled, mut at) = (vec![0; left.clamp(1, BLOCK)], 0, self.offset);
        let (start, mut read_now) = (self.offset, 0);
        // At least one whole line, so that every call that is asked again gets further.
        while at < length && (read_now < most || self.offset == start) {
            if filled == buffer.len() && filled >= LONGEST_LINE {
                self.corrupt += u64::from(!std::mem::replace(&mut self.overlong, true));
                self.offset += filled as u64;
                filled = 0;
            } else if filled == buffer.len() {
                // A line longer than the buffer.
                buffer.resize((2 * filled).min(LONGEST_LINE), 0);
            }
            let read = match file.read_at(&mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let fresh = filled;
            (filled, at, read_now) = (filled + read, at + read as u64, read_now + read as u64);
            let Some(end) = buffer[fresh..filled].iter().rposition(|&byte| byte == b'\n') else { continue };
            let end = fresh + end + 1;
            let mut lines = &buffer[..end];
            if std::mem::take(&mut self.overlong) {
                let rest = lines.iter().position(|&byte| byte == b'\n').map_or(end, |newline| newline + 1);
                lines = &lines[rest..];
            }
            let lines = parse_all(lines, self.newest_state);
            if let Some(Line::Newer(why)) = lines.iter().find(|line| matches!(line, Line::Newer(_))) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, why.clone()));
            }
            for line in lines {
                match line {
                    Line::Event(event) => take(event),
                    Line::Unknown => self.unknown += 1,
                    Line::Corrupt => self.corrupt += 1,
                    Line::Empty | Line::Newer(_) => {}
                }
            }
            self.offset += end as u64;
            buffer.copy_within(end..filled, 0);
            filled -= end;
        }
        // What follows the last line break is read again when the file has grown.
        let all = at >= length;
        self.seen = if all { at } else { self.offset };
        Ok(!all)
    }

    /// Lines that were passed over: corrupt ones, and events of types that only a newer version knows.
    pub const fn skipped(&self) -> u64 {
        self.corrupt + self.unknown
    }

    /// Of these, the lines that are no events at all.
    pub const fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// Of these, the events of unknown types.
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Bytes of the record read so far, complete lines only.
    pub const fn position(&self) -> u64 {
        self.offset
    }
}

/// Reads complete lines, on all cores when there are many.
fn parse_all(lines: &[u8], newest_state: bool) -> Vec<Line> {
    let mut shares = Vec::new();
    let mut rest = lines;
    while rest.len() > SHARE {
        let Some(end) = rest[SHARE..].iter().position(|&byte| byte == b'\n') else { break };
        let (share, more) = rest.split_at(SHARE + end + 1);
        shares.push(share);
        rest = more;
    }
    shares.push(rest);
    let newest =
        if newest_state { shares.iter().rposition(|share| last_state(share).is_some()) } else { None };
    let read = |(number, share): (usize, &&[u8])| -> Vec<Line> {
        let last = if newest == Some(number) { last_state(share) } else { None };
        let wanted = |line: &[u8]| {
            let is_last = last.is_some_and(|last| std::ptr::eq(last, line.as_ptr()));
            !newest_state || is_last || kind(line) != Some("state")
        };
        share.split(|&byte| byte == b'\n').filter(|line| wanted(line)).map(parse).collect()
    };
    match &shares[..] {
        [only] => read((0, only)),
        shares => shares.par_iter().enumerate().flat_map_iter(read).collect(),
    }
}

/// Where the last statistics of the optimizer's state among these lines begin.
fn last_state(lines: &[u8]) -> Option<*const u8> {
    let state = |line: &&[u8]| kind(line) == Some("state");
    lines.rsplit(|&byte| byte == b'\n').find(state).map(<[u8]>::as_ptr)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{
        protocol::{Alert, Level},
        run::{EventWriter, sample},
    };

    fn append(run: &RunDir, text: &str) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(run.events()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn what_is_written_is_read_back_once() {
        let (_folder, run) = sample::run("tail");
        let mut tail = Tail::open(&run);
        assert_eq!(tail.poll().unwrap(), [], "the worker has not started yet");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let events = [
            sample::update(1, 2.5),
            Event::Alert(Alert { update: 1, time: 0.5, level: Level::Warning, message: "hot\nöö".into() }),
            sample::validation(1, f64::NAN),
            Event::resumed(0),
        ];
        for event in &events {
            writer.append(event).unwrap();
        }
        let read = tail.poll().unwrap();
        assert!(matches!(&read[0], Event::Header(header) if header.run == run.id()));
        assert_eq!(read[1..3], events[..2]);
        assert!(matches!(&read[3], Event::Validation(validation) if validation.loss.is_nan()));
        assert_eq!(read[4], events[3]);
        assert_eq!(tail.poll().unwrap(), []);
        assert_eq!(tail.skipped(), 0);
    }

    #[test]
    fn a_record_of_a_newer_schema_is_refused_with_the_version_that_reads_it() {
        let later = r#"{"type":"header","schema":7,"version":"4.2.0\u001b[2J","dream":1}"#;
        let resumed = format!(r#"{{"type":"resumed","from_update":3,"header":{later}}}"#);
        for line in [later, &resumed] {
            let (_folder, run) = sample::run("newer");
            let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
            writer.append(&sample::update(1, 2.5)).unwrap();
            append(&run, &format!("{line}\n"));
            let mut tail = Tail::open(&run);
            for _ in 0..2 {
                let why = tail.poll().unwrap_err().to_string();
                assert!(why.contains("tui-train 4.2.0") && why.contains("or newer"), "{why}");
                assert!(why.contains("in schema 7") && why.contains("reads schema 1"), "{why}");
                assert!(!why.contains('\u{1b}'), "{why}");
            }
        }
    }

    #[test]
    fn a_torn_last_line_waits_until_it_is_whole() {
        let (_folder, run) = sample::run("torn");
        let line = serde_json::to_string(&sample::update(7, 1.0)).unwrap();
        let mut tail = Tail::open(&run);
        append(&run, &line[..20]);
        assert_eq!(tail.poll().unwrap(), []);
        append(&run, &line[20..]);
        assert_eq!(tail.poll().unwrap(), []);
        append(&run, "\n");
        assert_eq!(tail.poll().unwrap(), [sample::update(7, 1.0)]);
        assert_eq!(tail.skipped(), 0);
    }

    #[test]
    fn corrupt_lines_and_unknown_types_are_counted_apart() {
        let (_folder, run) = sample::run("corrupt");
        append(
            &run,
            "{\"type\":\"upd\n\n{\"type\":\"dream\",\"x\":1}\n{\"type\":\"update\",\"update\":\"x\"}\n[]\n",
        );
        append(&run, "{\"from_update\":3,\"type\":\"resumed\",\"new_field\":[1]}\n\u{fffd}\n");
        let mut tail = Tail::open(&run);
        assert_eq!(tail.poll().unwrap(), [Event::resumed(3)]);
        assert_eq!((tail.corrupt(), tail.unknown(), tail.skipped()), (4, 1, 5));
    }

    #[test]
    fn a_writer_that_goes_on_ends_the_line_a_dead_one_left_torn() {
        let (_folder, run) = sample::run("reopen");
        assert!(EventWriter::reopen(&run).is_err(), "there is nothing to go on with");
        append(&run, "{\"type\":\"hea");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(1, 3.0)).unwrap();
        append(&run, "{\"type\":\"update\",\"upd");
        assert!(EventWriter::create(&run, &sample::header(&run)).is_err(), "a record is never overwritten");
        let mut writer = EventWriter::reopen(&run).unwrap();
        writer.append(&Event::resumed(1)).unwrap();
        writer.append(&sample::update(2, 2.0)).unwrap();
        let mut tail = Tail::open(&run);
        let read = tail.poll().unwrap();
        assert_eq!(read[1..], [sample::update(1, 3.0), Event::resumed(1), sample::update(2, 2.0)]);
        assert_eq!(tail.corrupt(), 1);
    }

    #[test]
    fn large_records_come_in_pieces_and_lines_may_be_longer_than_a_piece() {
        let (_folder, run) = sample::run("large");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let long = "x".repeat(3 * BLOCK);
        writer
            .append(&Event::Alert(Alert { update: 0, time: 0.0, level: Level::Info, message: long.clone() }))
            .unwrap();
        for update in 1..=20_000 {
            writer.append(&sample::update(update, 1.0)).unwrap();
        }
        let mut tail = Tail::open(&run);
        let (mut events, mut calls) = (Vec::new(), 0);
        while tail.each(1, |event| events.push(event)).unwrap() {
            calls += 1;
        }
        assert!(calls > 2, "{calls}");
        assert_eq!(events.len(), 20_002);
        assert!(matches!(&events[1], Event::Alert(alert) if alert.message == long));
        assert_eq!(events[20_001], sample::update(20_000, 1.0));
        assert_eq!(tail.position(), std::fs::metadata(run.events()).unwrap().len());
    }

    #[test]
    fn a_line_without_an_end_is_counted_once_and_never_kept() {
        let (_folder, run) = sample::run("endless");
        append(&run, "{\"type\":\"resumed\",\"from_update\":3}\n");
        append(&run, &"x".repeat(LONGEST_LINE + 1000));
        let mut tail = Tail::open(&run);
        assert_eq!(tail.poll().unwrap(), [Event::resumed(3)]);
        append(&run, &"y".repeat(LONGEST_LINE));
        assert_eq!((tail.poll().unwrap(), tail.corrupt()), (vec![], 1));
        append(&run, "zzz\n{\"type\":\"resumed\",\"from_update\":4}\n");
        assert_eq!(tail.poll().unwrap(), [Event::resumed(4)]);
        assert_eq!(tail.corrupt(), 1);
    }

    #[test]
    fn a_glance_keeps_the_newest_state_and_everything_else_in_order() {
        let (_folder, run) = sample::run("glance");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let state = |update| {
            let (optimizer, tensors, shared) = ("adamw".into(), Vec::new(), Default::default());
            Event::State(crate::protocol::StateReport { update, optimizer, tensors, shared })
        };
        for update in 1..=3000 {
            writer.append(&sample::update(update, 1.0)).unwrap();
            writer.append(&state(update)).unwrap();
        }
        writer.append(&sample::update(3001, 1.0)).unwrap();
        let whole = Tail::open(&run).poll().unwrap();
        assert_eq!(whole.len(), 1 + 3001 + 3000);
        let mut tail = Tail::open(&run).with_newest_state();
        let glance = tail.poll().unwrap();
        let states: Vec<_> = glance.iter().filter(|event| matches!(event, Event::State(_))).collect();
        assert_eq!(states, [&state(3000)]);
        let others = |events: &[Event]| -> Vec<Event> {
            events.iter().filter(|event| !matches!(event, Event::State(_))).cloned().collect()
        };
        assert_eq!(others(&glance), others(&whole));
        assert_eq!(tail.skipped(), 0);
    }

    #[test]
    fn a_record_that_shrinks_is_an_error_not_a_silence() {
        let (_folder, run) = sample::run("shrink");
        append(&run, "{\"type\":\"resumed\",\"from_update\":3}\n");
        let mut tail = Tail::open(&run);
        tail.poll().unwrap();
        std::fs::write(run.events(), "").unwrap();
        assert!(tail.poll().unwrap_err().to_string().contains("became shorter"));
    }
}
