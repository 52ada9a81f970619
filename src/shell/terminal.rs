//! The terminal while the UI has it. It is given back when the guard is dropped and before a panic is told.

use std::{
    io::{self, Stdout, Write},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

use crossterm::{
    cursor::Show,
    event::{DisableMouseCapture, EnableMouseCapture},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{Terminal, backend::CrosstermBackend};

/// Whether the terminal is ours; the panic hook must not touch one that is not.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the mouse is captured.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on its alternate screen.
#[derive(Debug)]
pub struct Guard {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Guard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is no terminal that can be drawn on.
    pub fn take(mouse: bool) -> io::Result<Self> {
        hook();
        enable_raw_mode()?;
        TAKEN.store(true, SeqCst);
        let mut out = io::stdout();
        let entered = execute!(out, EnterAlternateScreen).and_then(|()| {
            MOUSE.store(mouse, SeqCst);
            if mouse { execute!(out, EnableMouseCapture) } else { Ok(()) }
        });
        match entered.and_then(|()| Terminal::new(CrosstermBackend::new(out))) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
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
            restore();
            before(panic);
        }));
    });
}
