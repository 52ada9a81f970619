//! The terminal while the UI has it. It is given back when the guard is dropped and before a panic is told.

use std::{
    io::{self, Stdout, Write},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

use crossterm::{
    cursor::Show,
    event::{DisableMouseCapture, EnableMouseCapture},
    execute,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend};
use signal_hook::consts::SIGTSTP;

use crate::config::own;

/// Whether the terminal is ours; the panic hook must not touch one that is not.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the mouse is captured.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on its alternate screen.
#[derive(Debug)]
pub struct Guard {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Guard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is no terminal that can be drawn on.
    pub fn take(mouse: bool) -> io::Result<Self> {
        hook();
        match enter(mouse).and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout()))) {
            Ok(terminal) => Ok(Self { terminal, mouse }),
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
        enter(self.mouse)?;
        execute!(io::stdout(), Clear(ClearType::All))?;
        // A new one knows of nothing that is on the screen, and draws all of it.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, SeqCst);
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen)?;
    MOUSE.store(mouse, SeqCst);
    if mouse { execute!(out, EnableMouseCapture) } else { Ok(()) }
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
        let _ = execute!(out, DisableMouseCapture);
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
            if !own::is_awaited() {
                restore();
            }
            before(panic);
        }));
    });
}
