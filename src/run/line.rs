//! One line of `events.jsonl`: an event, or what else it turned out to be.

use serde::Deserialize;

use super::text;
use crate::protocol::{Event, SCHEMA};

/// Types of events this version knows; others come from a newer one.
const KNOWN: [&str; 13] = [
    "header",
    "update",
    "window",
    "validation",
    "sample",
    "host",
    "alert",
    "state",
    "snapshot",
    "checkpoint",
    "resumed",
    "command",
    "run_ended",
];

/// What a line turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Read whole.
    Event(Event),
    /// An event of a type that a newer version writes.
    Unknown,
    /// The line says that what follows is of a newer schema; a sentence.
    Newer(String),
    /// Not an event at all, such as a line that a dead worker left torn.
    Corrupt,
    /// Nothing but white space.
    Empty,
}

/// Reads one line without its line break.
pub fn parse(line: &[u8]) -> Line {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Line::Empty;
    }
    // A type that stands first, as the writer puts it, is read without looking for it through the whole line.
    let direct = match kind(line) {
        Some("update") => serde_json::from_slice(line).map(Event::Update).ok(),
        Some("host") => serde_json::from_slice(line).map(Event::Host).ok(),
        Some("window") => serde_json::from_slice(line).map(Event::Window).ok(),
        Some("validation") => serde_json::from_slice(line).map(Event::Validation).ok(),
        Some("state") => serde_json::from_slice(line).map(Event::State).ok(),
        Some("run_ended") => serde_json::from_slice(line).map(Event::RunEnded).ok(),
        _ => None,
    };
    if let Some(event) = direct {
        return Line::Event(event);
    }
    if let Some(why) = newer(line) {
        return Line::Newer(why);
    }
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    match serde_json::from_slice(line) {
        // Sizes that no model can have would be multiplied and counted.
        Ok(Event::Header(header)) if header.config.in_range().is_err() => Line::Corrupt,
        Ok(event) => Line::Event(event),
        Err(_) => match serde_json::from_slice::<Typed>(line) {
            Ok(typed) if !KNOWN.contains(&&*typed.r#type) => Line::Unknown,
            _ => Line::Corrupt,
        },
    }
}

/// The sentence for a header, or a resumption with one, whose schema only a newer version reads.
pub(super) fn newer(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Version {
        #[serde(default)]
        schema: u32,
        #[serde(default)]
        version: Option<String>,
        header: Option<Box<Self>>,
    }
    if !matches!(kind(line), Some("header" | "resumed")) {
        return None;
    }
    let Version { schema, version, header } = serde_json::from_slice(line).ok()?;
    let (schema, version) = header.map_or((schema, version), |header| (header.schema, header.version));
    let version = version.as_deref().map_or_else(|| "a newer version".to_owned(), text::plain);
    (schema > SCHEMA).then(|| {
        format!(
            "written by tui-train {version} in schema {schema}, and this is {}, which reads schema {SCHEMA}: use {version} \
             or newer",
            env!("CARGO_PKG_VERSION")
        )
    })
}

/// The type of an event if it is written first.
pub(super) fn kind(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = rest.iter().position(|&byte| byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}
