//! Finding a run by what a person types: id, `latest`, name, unique prefix of an id, or path.

use std::{fs, io, path::Path, time::SystemTime};

use rayon::prelude::*;

use super::{Home, RunDir, RunError, atomic};

/// Candidates named in an error.
const SHOWN: usize = 5;

impl RunDir {
    /// Every run, newest first. Folders that are no runs are passed over.
    ///
    /// # Errors
    /// The folder of runs exists and cannot be read.
    pub fn all(home: &Home) -> Result<Vec<Self>, RunError> {
        let folder = home.runs();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(RunError::io("cannot read", &folder)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(RunError::io("cannot read", &folder))?;
            if atomic::is_temporary(&entry.file_name().to_string_lossy()) {
                continue;
            }
            // Whatever else somebody keeps here costs no further look.
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            found.push(Self::unchecked(entry.path()));
        }
        // With when its configuration was written, which happens once.
        let looked = found.into_par_iter().filter_map(|run| {
            let written = match fs::metadata(run.run_toml()) {
                Ok(file) if file.is_file() => file.modified().ok(),
                _ if run.events().is_file() => None,
                _ => return None,
            };
            Some((run, written))
        });
        let mut runs: Vec<(Self, Option<SystemTime>)> = looked.collect();
        // Newest first. Runs of one second: by that.
        runs.sort_by(|(a, written_a), (b, written_b)| {
            let (a, b) = (order(a.id()), order(b.id()));
            b.0.cmp(a.0).then_with(|| written_b.cmp(written_a)).then_with(|| b.cmp(&a))
        });
        Ok(runs.into_iter().map(|(run, _)| run).collect())
    }

    /// The run that `text` means.
    ///
    /// # Errors
    /// No run or several are meant; the sentence lists at most five candidates.
    pub fn resolve(home: &Home, text: &str) -> Result<Self, RunError> {
        let text = text.trim();
        let runs = Self::all(home)?;
        let looks_like_path = text.contains('/') || matches!(text, "." | "..");
        if looks_like_path {
            // A name may hold a slash, too.
            let named = runs.into_iter().find(|run| run.name() == text);
            return named.map_or_else(|| Self::open(text), Ok);
        }
        if let Some(run) = runs.iter().find(|run| run.id() == text) {
            return Ok(run.clone());
        }
        if text == "latest" {
            return runs.into_iter().next().ok_or_else(|| RunError::NoRuns(home.runs()));
        }
        if text.is_empty() {
            return Err(unknown(home, text, &runs));
        }
        if let Some(run) = runs.iter().find(|run| run.name() == text) {
            return Ok(run.clone());
        }
        let prefixed: Vec<&Self> = runs.iter().filter(|run| run.id().starts_with(text)).collect();
        match &prefixed[..] {
            [one] => Ok((*one).clone()),
            [] if Path::new(text).is_dir() => Self::open(text),
            [] => Err(unknown(home, text, &runs)),
            several => Err(RunError::Ambiguous {
                text: text.to_owned(),
                count: several.len(),
                candidates: several.iter().take(SHOWN).map(|run| run.id()).collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

/// Ids sort by their time; the runs of one second by the number that was appended (`-2`, `-10`).
fn order(id: &str) -> (&str, &str, u64) {
    let (time, name) = id.split_once("Z-").unwrap_or((id, ""));
    match name.rsplit_once('-') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            (time, name, number.parse().unwrap_or(u64::MAX))
        }
        _ => (time, name, 1),
    }
}

fn unknown(home: &Home, text: &str, runs: &[RunDir]) -> RunError {
    if runs.is_empty() {
        return RunError::NoRuns(home.runs());
    }
    let candidates = runs.iter().take(SHOWN).map(RunDir::id).collect::<Vec<_>>().join(", ");
    RunError::Unknown { text: text.to_owned(), candidates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn runs(home: &Home, made: &[(&str, &str)]) -> Vec<RunDir> {
        let resolved = Layers::new().resolve().unwrap();
        made.iter()
            .map(|(time, name)| RunDir::create_at(home, name, &resolved, time.parse().unwrap()).unwrap())
            .collect()
    }

    #[test]
    fn a_run_is_found_by_id_name_prefix_path_and_latest() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let made = runs(
            &home,
            &[
                ("2026-01-01T00:00:00Z", "demo"),
                ("2026-01-02T00:00:00Z", "demo"),
                ("2026-01-03T00:00:00Z", "other thing"),
            ],
        );
        let found = |text: &str| RunDir::resolve(&home, text).unwrap().id().to_owned();
        assert_eq!(found(made[0].id()), made[0].id());
        assert_eq!(found("demo"), made[1].id(), "the newest of that name");
        assert_eq!(found("20260101"), made[0].id());
        assert_eq!(found("other thing"), made[2].id());
        assert_eq!(found("latest"), made[2].id());
        assert_eq!(found(&made[0].path().display().to_string()), made[0].id());
        assert_eq!(found(&format!("{}/", made[0].path().display())), made[0].id());
    }

    #[test]
    fn what_is_ambiguous_or_unknown_lists_at_most_five_candidates() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert!(matches!(RunDir::resolve(&home, "latest"), Err(RunError::NoRuns(_))));
        runs(&home, &[("2026-01-01T00:00:00Z", "a"); 7]);
        let text = RunDir::resolve(&home, "2026").unwrap_err().to_string();
        assert!(text.contains("any of 7 runs"), "{text}");
        assert_eq!(text.matches("20260101T000000Z-a").count(), 5, "{text}");
        let text = RunDir::resolve(&home, "nothing").unwrap_err().to_string();
        assert!(text.contains("`nothing`"), "{text}");
        assert_eq!(text.matches("20260101T000000Z-a").count(), 5, "{text}");
    }

    #[test]
    fn newest_first_also_among_runs_of_one_second() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        runs(&home, &[("2026-01-01T00:00:00Z", "a"); 11]);
        std::fs::create_dir(home.runs().join("not a run")).unwrap();
        std::fs::create_dir(home.runs().join(".20260101T000000Z-b.tmp-1")).unwrap();
        let all = RunDir::all(&home).unwrap();
        assert_eq!(all.len(), 11);
        assert_eq!(all[0].id(), "20260101T000000Z-a-11");
        assert_eq!(all[10].id(), "20260101T000000Z-a");
    }
}
