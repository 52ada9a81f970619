//! One frame without a terminal: as text, plain or with colours, or as SVG.

use std::path::{Path, PathBuf};

use anyhow::Context;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Launch, Start,
    load::{Job, Reader},
    watch::why_not_started,
};
use crate::{
    app::{Effect, Msg, State, action::Screen, link::Control},
    run::{Tail, atomic, lock, standing},
    ui::{
        self, sgr, svg,
        theme::{Colours, Theme},
    },
};

/// Bytes of the record read at once.
const PIECE: u64 = 1 << 20;

/// The state once everything that is on disk now was read.
fn state(launch: &Launch, screen: Option<Screen>) -> anyhow::Result<State> {
    let mut state = launch.state()?;
    if let Start::Watch(run) = &launch.start {
        let begun = standing::has_begun(run);
        let live = lock::is_live(run);
        let mut tail = Tail::open(run).with_newest_state();
        while tail.each(PIECE, |event| drop(state.update(Msg::Events(vec![event]))))? {}
        state.update(Msg::Unreadable(tail.skipped()));
        if !live && begun {
            state.update(Msg::Alive(false));
        } else if !live {
            state.update(Msg::Waits(why_not_started(run)));
        }
        if live {
            state.link.control = Control::None;
        }
    }
    if let Some(screen) = screen {
        state.screen = screen;
    }
    let mut reader = Reader::new(launch.home.clone());
    match (state.screen, &launch.start) {
        (Screen::Runs, _) => list(&mut state, reader),
        (Screen::State, Start::Watch(run)) if state.run.ended.is_some() => {
            // Nothing is asked for in return: it is one frame.
            let _ = state.update(reader.read(Job::State { run: run.id().to_owned() }));
        }
        _ => {}
    }
    Ok(state)
}

/// Reads the list of runs, and then what its screen asks for.
fn list(state: &mut State, mut reader: Reader) {
    let mut jobs = vec![Job::Runs];
    while let Some(job) = jobs.pop() {
        let asked = state.update(reader.read(job)).into_iter().filter_map(|effect| match effect {
            Effect::LoadCurves { run } => Some(Job::Curves { run }),
            Effect::Compare { runs } => Some(Job::Compare { runs }),
            _ => None,
        });
        jobs.extend(asked);
    }
}

/// What a frame is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Svg,
    /// Plain text.
    Text,
    /// Text with the sequences that give a terminal its colours.
    Coloured,
}

impl Kind {
    /// What the ending of a file's name asks for.
    ///
    /// # Errors
    /// It asks for nothing that is known.
    pub fn of(path: &Path) -> Result<Self, String> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("txt") => Ok(Self::Text),
            Some("ans" | "ansi") => Ok(Self::Coloured),
            _ => Err(format!(
                "{}: end the name with .svg for a picture, .txt for text, or .ans for text with colours",
                path.display()
            )),
        }
    }
}

/// One frame of what is on the disk.
///
/// # Errors
/// The record cannot be read.
pub fn frame(
    launch: &Launch,
    screen: Option<Screen>,
    kind: Kind,
    size: (u16, u16),
) -> anyhow::Result<String> {
    let mut look = launch.look();
    if let Some(signs) = launch.signs.filter(|_| kind == Kind::Svg) {
        look = look.drawn_with(signs);
    } else if kind == Kind::Svg {
        // A picture brings its own dots: what the terminal can show does not matter.
        look = look.drawn_with(crate::app::look::Signs::default());
    }
    Ok(drawn(&state(launch, screen)?, &look.named(launch.theme), kind, size))
}

/// A state as that kind of text.
fn drawn(state: &State, look: &Theme, kind: Kind, (width, height): (u16, u16)) -> String {
    let colours = match (kind, look.colours) {
        (Kind::Svg, _) => Colours::True,
        (Kind::Text, _) => Colours::None,
        // They were asked for: whatever a terminal has besides.
        (Kind::Coloured, Colours::None) => Colours::Sixteen,
        (Kind::Coloured, colours) => colours,
    };
    let theme = Theme { colours, ..*look }.named(look.name);
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    ui::render(state, &theme, area, &mut buffer);
    match kind {
        Kind::Svg => svg::themed(&buffer, theme.name),
        Kind::Text => sgr::plain(&buffer),
        Kind::Coloured => sgr::coloured(&buffer),
    }
}

/// Writes the screen as it is into a new file and returns it.
///
/// # Errors
/// The name's ending is not known, the file is there already, or it cannot be written.
pub fn write(state: &State, look: &Theme, size: (u16, u16), path: &Path) -> anyhow::Result<PathBuf> {
    let kind = Kind::of(path).map_err(anyhow::Error::msg)?;
    put(path, &drawn(state, look, kind, size))?;
    Ok(path.to_owned())
}

/// Writes a text into a new file.
///
/// # Errors
/// The file is there already, or it cannot be written.
pub fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    if path.symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_dir() || meta.is_symlink()) {
        anyhow::bail!("{} exists already: remove it, or name another file", path.display());
    }
    let cannot = || format!("cannot write {}", path.display());
    if path.exists() {
        // A pipe, or a terminal.
        return std::fs::write(path, text).with_context(cannot);
    }
    atomic::stream_file(path, |out| out.write_all(text.as_bytes())).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recorded;

    #[test]
    fn the_ending_says_what_is_drawn_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let state = recorded::watching(Screen::Train, "adamw");
        let drawn = |name: &str| {
            let path = folder.path().join(name);
            write(&state, &Theme::default(), (80, 24), &path).map_err(|error| format!("{error:#}"))?;
            Ok::<_, String>(std::fs::read_to_string(path).unwrap())
        };
        assert!(drawn("a.svg").unwrap().starts_with("<svg"));
        let plain = drawn("a.txt").unwrap();
        assert!(plain.contains("learning rate") && plain.lines().count() == 24 && !plain.contains('\x1b'));
        let coloured = drawn("a.ans").unwrap();
        let bare: String = coloured
            .split('\x1b')
            .enumerate()
            .map(|(at, piece)| match piece.split_once('m') {
                Some((_, rest)) if at > 0 => rest,
                _ => piece,
            })
            .collect();
        // Without colours the parts of a bar are told apart by letters, below.
        let top = |text: &str| text.lines().take(4).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(top(&bare), top(&plain));
        assert!(coloured.contains("\x1b["));
        assert!(drawn("a.txt").unwrap_err().contains("exists already"));
        assert!(drawn("a.png").unwrap_err().contains(".svg"));
        assert!(drawn("no/such.txt").unwrap_err().contains("cannot write"));
    }
}
