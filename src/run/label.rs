//! What a person calls a run and writes down about it: `label.json`, the one file of a run's folder that is not its
//! worker's. The folder keeps its name, so that whatever points at it still does.

use std::io;

use serde::{Deserialize, Serialize};

use super::{RunDir, RunError, atomic, own};
use crate::protocol::SCHEMA;

/// Most characters of a note.
const LONGEST_NOTE: usize = 1000;

/// The name that a run was given since it was made, and the note on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    #[serde(default)]
    schema: u32,
    /// Without one, the run is called what it was made as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Label {
    /// What the file says; nothing where there is none.
    ///
    /// # Errors
    /// It cannot be read or is damaged.
    pub fn read(run: &RunDir) -> Result<Self, RunError> {
        let path = run.label_json();
        match own::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| RunError::Damaged { path, problem: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(RunError::io("cannot read", &path)(error)),
        }
    }

    /// The same for whoever can do without.
    pub fn of(run: &RunDir) -> Self {
        Self::read(run).unwrap_or_default()
    }

    fn write(&self, run: &RunDir) -> Result<(), RunError> {
        let path = run.label_json();
        let written = Self { schema: SCHEMA, ..self.clone() };
        let bytes = serde_json::to_vec_pretty(&written)
            .map_err(|error| RunError::Damaged { path: path.clone(), problem: error.to_string() })?;
        atomic::write_file(&path, &bytes).map_err(RunError::io("cannot write", &path))
    }
}

/// Gives a run another name. It is found by that name from now on, and no more by the old one.
///
/// # Errors
/// The run's folder cannot be written, or its label is damaged.
pub fn rename(run: &RunDir, name: &str) -> Result<(), RunError> {
    let label = Label { name: Some(name.trim().to_owned()), ..Label::read(run)? };
    label.write(run)
}

/// Writes a note on a run, or takes it away when there is nothing in it.
///
/// # Errors
/// The same.
pub fn annotate(run: &RunDir, note: &str) -> Result<(), RunError> {
    let note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
    Label { note, ..Label::read(run)? }.write(run)
}

/// What a run may be called.
///
/// # Errors
/// Nothing can be seen of the name, or it stands for another run.
pub fn run_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a run needs a name that can be seen".to_owned()),
        "latest" => Err("`latest` stands for the newest run, whatever its name".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// What can be written down about a run.
///
/// # Errors
/// It is too long for a line.
pub fn note_text(text: &str) -> Result<String, String> {
    let length = text.trim().chars().count();
    if length <= LONGEST_NOTE {
        return Ok(text.trim().to_owned());
    }
    Err(format!("a note is a line of up to {LONGEST_NOTE} characters, and this has {length}: shorten it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Home, list, sample};

    #[test]
    fn a_name_and_a_note_stay_beside_each_other_and_the_folder_stays_where_it_is() {
        let (folder, run) = sample::run("first");
        let home = Home::at(folder.path());
        assert_eq!((run.name(), Label::read(&run).unwrap()), ("first".into(), Label::default()));
        rename(&run, " better name ").unwrap();
        annotate(&run, "the one with the good data").unwrap();
        rename(&run, "best").unwrap();
        assert_eq!(run.name(), "best");
        assert_eq!(RunDir::resolve(&home, "best").unwrap(), run);
        assert!(RunDir::resolve(&home, "first").is_err(), "the old name is free for another run");
        assert_eq!(RunDir::resolve(&home, run.id()).unwrap(), run);
        let entry = list(&home).unwrap().remove(0);
        assert_eq!((&*entry.name, entry.note.as_deref()), ("best", Some("the one with the good data")));
        annotate(&run, "  ").unwrap();
        assert_eq!(Label::read(&run).unwrap().note, None);
        assert_eq!(run.meta().unwrap().name, "first", "what it was made as is kept");
    }

    #[test]
    fn a_damaged_label_is_told_in_the_list_and_not_written_over() {
        let (folder, run) = sample::run("first");
        std::fs::write(run.label_json(), "{").unwrap();
        assert!(rename(&run, "other").unwrap_err().to_string().contains("label.json"));
        assert_eq!(run.name(), "first");
        let entry = list(&Home::at(folder.path())).unwrap().remove(0);
        assert!(entry.problem.unwrap().contains("label.json"));
        assert!(run_name("latest").is_err() && run_name(" ").is_err() && run_name("a b").is_ok());
        assert!(note_text(&"x".repeat(1001)).unwrap_err().contains("1001"));
    }
}
