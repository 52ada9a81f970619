//! The writing end of `events.jsonl`: one line an event, each in one write.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
};

use super::{RunDir, own};
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
        match self.file.write_all(&self.line) {
            Ok(()) => {
                self.torn = false;
                Ok(())
            }
            Err(error) => {
                let taken_back = self.file.set_len(before).is_ok();
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
        self.file.sync_data()
    }
}
