//! The events of a record that count, one at a time: a record of any length takes little memory.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
};

use crate::{
    protocol::{Event, Header, Validation},
    run::{
        RunDir, RunError, own,
        tail::{self, Line},
    },
};

/// Bytes read at once.
const BLOCK: usize = 1 << 20;
/// Lines between two reports of how far reading is.
const LINES_A_REPORT: u64 = 4096;

/// Told how far an export is: what is done, and of how much.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// What the first look through a record finds: where it went back, and the few events that later ones need.
#[derive(Debug, Default)]
pub struct Kept {
    /// The last update that counts of what was written before the first resumption, between it and the second, and so on.
    limits: Vec<u64>,
    /// The header in force at the end.
    pub header: Option<Box<Header>>,
    /// Every validation that counts, by its update.
    pub validations: BTreeMap<u64, Validation>,
    /// Bytes of the record when it was looked through; what was appended since does not count.
    length: u64,
}

impl Kept {
    /// Looks through a record once.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn read(run: &RunDir, progress: Progress<'_>) -> Result<Self, RunError> {
        let mut kept = Self::default();
        let mut went_back = Vec::new();
        let length = std::fs::metadata(run.events()).map_or(0, |meta| meta.len());
        let mut report = |done| progress(done, 2 * length);
        let wanted = |kind: &str| matches!(kind, "header" | "validation" | "resumed");
        kept.length = each_line(run, u64::MAX, wanted, &mut report, |event| {
            match event {
                Event::Header(header) => {
                    kept.header.get_or_insert(header);
                }
                Event::Validation(validation) => {
                    kept.validations.insert(validation.update, validation);
                }
                Event::Resumed(resumed) => {
                    kept.validations.retain(|update, _| *update <= resumed.from_update);
                    went_back.push(resumed.from_update);
                    if let Some(header) = resumed.header {
                        kept.header = Some(header);
                    }
                }
                _ => {}
            }
            Ok::<(), RunError>(())
        })?;
        // A later resumption drops what an earlier one had kept.
        let mut limit = u64::MAX;
        kept.limits.push(limit);
        for update in went_back.into_iter().rev() {
            limit = limit.min(update);
            kept.limits.push(limit);
        }
        kept.limits.reverse();
        Ok(kept)
    }

    /// Hands over the events of the wanted types that count, in the order of the record.
    ///
    /// # Errors
    /// The record cannot be read, or `take` fails.
    pub fn each<E: From<RunError>>(
        &self,
        run: &RunDir,
        wanted: impl Fn(&str) -> bool,
        progress: Progress<'_>,
        mut take: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut times = 0;
        let mut report = |done| progress(self.length + done, 2 * self.length);
        let wanted = |kind: &str| kind == "resumed" || wanted(kind);
        each_line(run, self.length, wanted, &mut report, |event| {
            if let Event::Resumed(_) = event {
                times += 1;
                return Ok(());
            }
            let limit = self.limits.get(times).copied().unwrap_or(u64::MAX);
            if of(&event).is_none_or(|update| update <= limit) { take(event) } else { Ok(()) }
        })?;
        Ok(())
    }
}

/// The update an event belongs to; nothing for one that is of no update.
const fn of(event: &Event) -> Option<u64> {
    match event {
        Event::Update(update) => Some(update.update),
        Event::Window(window) => Some(window.update),
        Event::Validation(validation) => Some(validation.update),
        Event::Sample(sample) => Some(sample.update),
        Event::Host(host) => Some(host.update),
        Event::Alert(alert) => Some(alert.update),
        Event::State(state) => Some(state.update),
        Event::Checkpoint(checkpoint) => Some(checkpoint.update),
        Event::Snapshot(snapshot) => Some(snapshot.update),
        Event::Command(command) => Some(command.update),
        Event::Header(_) | Event::Resumed(_) | Event::RunEnded(_) => None,
    }
}

/// Reads the complete lines of the first `most` bytes, and parses those of wanted types. Returns the bytes read.
fn each_line<E: From<RunError>>(
    run: &RunDir,
    most: u64,
    wanted: impl Fn(&str) -> bool,
    report: &mut dyn FnMut(u64),
    mut take: impl FnMut(Event) -> Result<(), E>,
) -> Result<u64, E> {
    let path = run.events();
    let file = match own::look(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(RunError::io("cannot read", &path)(error).into()),
    };
    let mut reader = BufReader::with_capacity(BLOCK, file);
    let (mut line, mut done) = (Vec::new(), 0);
    for number in 1_u64.. {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(RunError::io("cannot read", &path))?;
        if line.pop() != Some(b'\n') || done + read as u64 > most {
            break;
        }
        done += read as u64;
        // A type that does not stand first is found by reading the line.
        if tail::kind(&line).is_none_or(&wanted)
            && let Line::Event(event) = tail::parse(&line)
        {
            take(event)?;
        }
        if number.is_multiple_of(LINES_A_REPORT) {
            report(done);
        }
    }
    report(done);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::run::{EventWriter, sample};

    fn updates(run: &RunDir) -> Vec<(u64, f64)> {
        let kept = Kept::read(run, &mut |_, _| {}).unwrap();
        let mut found = Vec::new();
        kept.each(
            run,
            |kind| kind == "update",
            &mut |_, _| {},
            |event| {
                if let Event::Update(update) = event {
                    found.push((update.update, update.loss));
                }
                Ok::<(), RunError>(())
            },
        )
        .unwrap();
        found
    }

    #[test]
    fn what_any_later_resumption_drops_does_not_count() {
        let (_folder, run) = sample::run("kept");
        assert_eq!(updates(&run), [], "there is no record yet");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        let mut add = |updates: &[u64], loss: f64, back: Option<u64>| {
            for &update in updates {
                writer.append(&sample::update(update, loss)).unwrap();
                writer.append(&sample::validation(update, loss)).unwrap();
            }
            if let Some(back) = back {
                writer.append(&Event::resumed(back)).unwrap();
            }
        };
        add(&[1, 2, 3, 4], 5.0, Some(3));
        add(&[4, 5], 4.0, Some(2));
        add(&[3], 3.0, None);
        assert_eq!(updates(&run), [(1, 5.0), (2, 5.0), (3, 3.0)]);
        let kept = Kept::read(&run, &mut |_, _| {}).unwrap();
        let validations: Vec<_> = kept.validations.values().map(|v| (v.update, v.loss)).collect();
        assert_eq!(validations, [(1, 5.0), (2, 5.0), (3, 3.0)]);
    }

    #[test]
    fn lines_that_are_torn_or_strange_are_passed_over_and_the_rest_is_read() {
        let (_folder, run) = sample::run("torn");
        let mut file = std::fs::File::create(run.events()).unwrap();
        let line = |event: &Event| serde_json::to_string(event).unwrap();
        // The type of this one does not stand first.
        let turned = "{\"from_update\":1,\"type\":\"resumed\"}";
        let (one, two, three) = (sample::update(1, 2.0), sample::update(2, 2.0), sample::update(2, 1.0));
        writeln!(file, "{}\n{}\n{{\"type\":\"upd\n{turned}\n{}", line(&one), line(&two), line(&three))
            .unwrap();
        write!(file, "{}", line(&sample::update(3, 1.0))).unwrap();
        assert_eq!(updates(&run), [(1, 2.0), (2, 1.0)]);
    }
}
