//! The terminal while the UI has it. It is given back when the guard is dropped and before a panic is told.

use std::{
    io::{self, Stdout, Write},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

use crossterm::{
    cursor::Show,
    execute,
    style::Print,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    },
};
use signal_hook::consts::SIGTSTP;

use super::{
    glass::Glass,
    outside::{KEEP_TITLE, OLD_TITLE},
};
use crate::config::quiet;

/// Asks for the mouse: presses, the wheel and movements with a button down. Movements without one are nothing that a
/// slow line should carry.
const LISTEN: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1015h\x1b[?1006h";
/// Gives the mouse back.
const IGNORE: &str = "\x1b[?1006l\x1b[?1015l\x1b[?1002l\x1b[?1000l";

/// Whether the terminal is ours; the panic hook must not touch one that is not.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the mouse is captured.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// Whether the window's own title is kept to be given back.
static TITLE: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on its alternate screen.
#[derive(Debug)]
pub struct Guard {
    pub glass: Glass<Stdout>,
    wants: Wants,
}

/// What is asked of the terminal besides its screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wants {
    pub mouse: bool,
    /// The window gets a title.
    pub title: bool,
}

impl Guard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is no terminal that can be drawn on.
    pub fn take(wants: Wants) -> io::Result<Self> {
        hook();
        match enter(wants).and_then(|()| Glass::new(io::stdout())) {
            Ok(glass) => Ok(Self { glass, wants }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Guard {
    /// Gives the terminal back, stops this process as Ctrl+Z does, and takes the terminal again when the process goes on.
    ///
    /// # Errors
    /// The terminal cannot be taken again.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.retake()
    }

    /// Takes the terminal again after somebody else had it.
    ///
    /// # Errors
    /// Standard output is no terminal any more.
    pub fn retake(&mut self) -> io::Result<()> {
        restore();
        enter(self.wants)?;
        execute!(io::stdout(), Clear(ClearType::All))?;
        // A new one knows of nothing that is on the screen, and draws all of it.
        self.glass = Glass::new(io::stdout())?;
        Ok(())
    }
}

fn enter(wants: Wants) -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, SeqCst);
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen)?;
    MOUSE.store(wants.mouse, SeqCst);
    if wants.mouse {
        execute!(out, Print(LISTEN))?;
    }
    TITLE.store(wants.title, SeqCst);
    if wants.title { execute!(out, Print(KEEP_TITLE)) } else { Ok(()) }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. Errors are left alone: the terminal may be gone.
pub fn restore() {
    if !TAKEN.swap(false, SeqCst) {
        return;
    }
    let mut out = io::stdout();
    if MOUSE.swap(false, SeqCst) {
        let _ = execute!(out, Print(IGNORE));
    }
    if TITLE.swap(false, SeqCst) {
        let _ = execute!(out, Print(OLD_TITLE));
    }
    let _ = execute!(out, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = out.flush();
}

/// A panic is told on the normal screen, where it can be read.
fn hook() {
    static SET: std::sync::Once = std::sync::Once::new();
    SET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // One that is caught is told on the screens.
            if !quiet::is_awaited() {
                restore();
            }
            before(panic);
        }));
    });
}
