//! What lists know of ended runs, kept in one file, so that thousands of them are not read again each time.
//!
//! The file is beside the folder of runs and can be removed at any time: an entry counts only while the record it was
//! read from has the same length and time.

use std::{
    collections::HashMap,
    fs::{self, Metadata},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};

use super::{Home, RunEntry, bounded};
use crate::protocol::SCHEMA;

/// Longest file that is read: a million runs.
const LONGEST: u64 = 1 << 30;

/// Length of a record, and when it was written last: seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp(u64, u64, u32);

impl Stamp {
    /// Nothing where the file system keeps no times: what cannot be told from something newer is read again.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        let time = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self(metadata.len(), time.as_secs(), time.subsec_nanos()))
    }
}

/// Entries of ended runs by their ids.
pub(super) type Known = HashMap<String, (Stamp, RunEntry)>;

/// Changes with what an entry tells.
const TELLS: u32 = 2;

#[derive(Serialize)]
struct Written<'a> {
    schema: u32,
    tells: u32,
    version: &'a str,
    runs: Vec<(Stamp, &'a RunEntry)>,
}

#[derive(Deserialize)]
struct Read {
    schema: u32,
    tells: u32,
    version: String,
    runs: Vec<(Stamp, RunEntry)>,
}

fn path(home: &Home) -> PathBuf {
    home.path().join("list.json")
}

/// What is kept; nothing where the file is missing, damaged, or of another version.
pub(super) fn load(home: &Home) -> Known {
    let read = bounded::read(&path(home), LONGEST)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Read>(&bytes).ok());
    let ours =
        |read: &Read| (read.schema, read.tells, &*read.version) == (SCHEMA, TELLS, env!("CARGO_PKG_VERSION"));
    let Some(Read { runs, .. }) = read.filter(ours) else { return Known::new() };
    runs.into_iter().map(|(stamp, entry)| (entry.run.clone(), (stamp, entry))).collect()
}

/// Keeps them. A folder that cannot be written makes lists slower, and nothing else.
pub(super) fn save(home: &Home, known: &Known) {
    let runs = known.values().map(|(stamp, entry)| (*stamp, entry)).collect();
    let written = Written { schema: SCHEMA, tells: TELLS, version: env!("CARGO_PKG_VERSION"), runs };
    let Ok(bytes) = serde_json::to_vec(&written) else { return };
    let temporary = home.path().join(format!(".list.json.tmp-{}", std::process::id()));
    let done = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path(home)));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
}
