//! The writing end of `events.jsonl`: one line an event, each in one write.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
};

use super::{RunDir, fault::step, own};
use crate::protocol::{Event, Header};

/// Appends events. There is one for a run: that of the worker that holds its lock.
#[derive(Debug)]
pub struct EventWriter {
    file: File,
    line: Vec<u8>,
    /// A piece of a line stands at the end and could not be taken back.
    torn: bool,
}

impl EventWriter {
    /// Starts a record with its header.
    ///
    /// # Errors
    /// The file holds a record already, or cannot be written.
    pub fn create(run: &RunDir, header: &Header) -> io::Result<Self> {
        let mut writer = Self::open(run)?;
        if writer.has_a_line()? {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} holds a record already", run.events().display()),
            ));
        }
        // What a worker left that died while it wrote the header.
        writer.file.set_len(0)?;
        writer.torn = false;
        writer.append(&Event::Header(Box::new(header.clone())))?;
        Ok(writer)
    }

    /// Goes on with a record. A line that a dead worker left torn is ended, so that readers count it and
    /// the next event stands on a line of its own.
    ///
    /// # Errors
    /// The file holds no record, or cannot be written.
    pub fn reopen(run: &RunDir) -> io::Result<Self> {
        let mut writer = Self::open(run)?;
        if writer.has_a_line()? {
            return Ok(writer);
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{} holds no record to go on with", run.events().display()),
        ))
    }

    fn open(run: &RunDir) -> io::Result<Self> {
        let mut file = own::open(&run.events(), OpenOptions::new().create(true).read(true).append(true))?;
        let length = file.metadata()?.len();
        let mut torn = false;
        if length > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
            torn = last != *b"\n";
        }
        Ok(Self { file, line: Vec::new(), torn })
    }

    /// Whether the first line is complete.
    fn has_a_line(&mut self) -> io::Result<bool> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut block = [0; 16 * 1024];
        loop {
            match self.file.read(&mut block)? {
                0 => return Ok(false),
                read if block[..read].contains(&b'\n') => return Ok(true),
                _ => {}
            }
        }
    }

    /// Appends one event.
    ///
    /// # Errors
    /// The line cannot be written, for example because the disk is full. It is then taken back, so that
    /// appending may be tried again; `NotFound` says that the record was deleted, and that it would be in vain.
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        self.line.clear();
        if self.torn {
            self.line.push(b'\n');
        }
        serde_json::to_writer(&mut self.line, event)?;
        self.line.push(b'\n');
        let meta = self.file.metadata()?;
        if meta.nlink() == 0 {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the run's folder was deleted while it trained",
            ));
        }
        let before = meta.len();
        match write(&mut self.file, &self.line) {
            Ok(()) => {
                self.torn = false;
                Ok(())
            }
            Err(error) => {
                let taken_back = step().and_then(|()| self.file.set_len(before)).is_ok();
                self.torn = if taken_back { self.torn } else { true };
                Err(error)
            }
        }
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn sync(&self) -> io::Result<()> {
        step()?;
        self.file.sync_data()
    }
}

fn write(file: &mut File, line: &[u8]) -> io::Result<()> {
    // A fault comes when a part of the line is written.
    #[cfg(test)]
    {
        let (first, rest) = line.split_at(line.len() / 2);
        file.write_all(first)?;
        step()?;
        file.write_all(rest)
    }
    #[cfg(not(test))]
    file.write_all(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{
        Tail,
        fault::{self, Fault, Outcome},
        sample,
    };

    #[test]
    fn a_fault_in_an_event_costs_that_event_alone() {
        let (_folder, run) = sample::run("faults");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let mut append = |update: u64, number| {
            fault::at(number, Fault::Fails, || writer.append(&sample::update(update, 2.0)))
        };
        assert!(matches!(append(1, 0), Outcome::Returned(Err(_))));
        assert!(matches!(append(2, 0), Outcome::Returned(Err(_))), "as often as it likes");
        assert!(matches!(append(3, 9), Outcome::NotReached), "it is written");
        let mut tail = Tail::open(&run);
        assert_eq!(tail.poll().unwrap()[1..], [sample::update(3, 2.0)]);
        assert_eq!(tail.skipped(), 0, "what was written of the others was taken back");
        let failed = fault::at(0, Fault::Fails, || writer.sync());
        assert!(matches!(failed, Outcome::Returned(Err(_))));
    }

    #[test]
    fn a_death_in_an_event_costs_a_line_that_is_counted() {
        let (_folder, run) = sample::run("death");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let died = fault::at(0, Fault::Dies, || writer.append(&sample::update(1, 2.0)));
        assert!(matches!(died, Outcome::Died));
        let mut tail = Tail::open(&run);
        assert_eq!(tail.poll().unwrap().len(), 1, "the header; what is torn may still become whole");
        drop(writer);
        EventWriter::reopen(&run).unwrap().append(&sample::update(2, 2.0)).unwrap();
        assert_eq!(tail.poll().unwrap(), [sample::update(2, 2.0)]);
        assert_eq!(tail.corrupt(), 1);
    }

    #[test]
    fn a_record_that_was_deleted_is_not_written_in_vain() {
        let (_folder, run) = sample::run("deleted");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        std::fs::remove_dir_all(run.path()).unwrap();
        let error = writer.append(&sample::update(1, 2.0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("deleted"), "{error}");
    }
}
