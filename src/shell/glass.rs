//! What is on the terminal, so that only what has changed is sent, and nothing where nothing has.

use std::io::{self, BufWriter, Write};

use ratatui::{
    Terminal,
    backend::{Backend, CrosstermBackend},
    buffer::Buffer,
    layout::Rect,
};

use crate::{
    app::State,
    ui::{self, theme::Theme},
};

/// Bytes that are kept until a frame is whole, so that it goes out in few pieces.
const KEPT: usize = 64 * 1024;

/// A terminal and the frame that it shows.
#[derive(Debug)]
pub struct Glass<W: Write> {
    terminal: Terminal<CrosstermBackend<BufWriter<W>>>,
    shown: Buffer,
    /// Whether `shown` is what the terminal shows.
    known: bool,
    next: Buffer,
}

impl<W: Write> Glass<W> {
    /// A terminal of which nothing is known.
    ///
    /// # Errors
    /// Its size cannot be read.
    pub fn new(out: W) -> io::Result<Self> {
        let backend = CrosstermBackend::new(BufWriter::with_capacity(KEPT, out));
        Ok(Self::on(Terminal::new(backend)?))
    }

    fn on(terminal: Terminal<CrosstermBackend<BufWriter<W>>>) -> Self {
        Self {
            terminal,
            shown: Buffer::empty(Rect::default()),
            known: false,
            next: Buffer::empty(Rect::default()),
        }
    }

    /// Draws the state where it differs from what is shown, and returns the size of the screen.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, state: &State, theme: &Theme) -> io::Result<Rect> {
        self.terminal.autoresize()?;
        let area = self.terminal.get_frame().area();
        self.next.resize(area);
        self.next.reset();
        ui::render(state, theme, area, &mut self.next);
        if self.known && self.shown == self.next {
            return Ok(area);
        }
        let next = &self.next;
        let drawn = self.terminal.draw(|frame| {
            if frame.area() == next.area {
                frame.buffer_mut().clone_from(next);
            } else {
                ui::draw(state, theme, frame);
            }
        })?;
        let area = drawn.area;
        self.known = area == self.next.area;
        self.shown.clone_from(&self.next);
        Ok(area)
    }

    /// Clears the terminal, which may have lost what it showed: the next frame is drawn whole.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        self.known = false;
        // Its own way to clear asks where the cursor is, and a terminal may be slow to answer.
        self.terminal.backend_mut().clear()?;
        self.terminal.swap_buffers();
        Ok(())
    }

    /// Says something to the terminal that is not drawn.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn say(&mut self, sequence: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        out.write_all(sequence.as_bytes())?;
        io::Write::flush(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{
            Msg,
            action::{Action, Screen},
            recorded,
        },
        protocol::{Event, Update},
        ui::theme::Colours,
    };
    use ratatui::{TerminalOptions, Viewport};
    use std::{cell::RefCell, rc::Rc};

    /// Keeps what is written.
    #[derive(Debug, Clone, Default)]
    struct Line(Rc<RefCell<Vec<u8>>>);

    impl Write for Line {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn glass(width: u16, height: u16) -> (Glass<Line>, Line) {
        let line = Line::default();
        let backend = CrosstermBackend::new(BufWriter::new(line.clone()));
        let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport }).unwrap();
        (Glass::on(terminal), line)
    }

    fn update(state: &State) -> Msg {
        let last = state.run.update.as_ref().unwrap();
        Msg::Events(vec![Event::Update(Update {
            update: last.update + 1,
            time: last.time + 0.1,
            tokens: last.tokens + 512,
            loss: last.loss * 0.99,
            grad_norm: last.grad_norm * 1.01,
            tokens_per_second: last.tokens_per_second + 3.0,
            ..last.clone()
        })])
    }

    /// Bytes that the next frame takes.
    fn sent(glass: &mut Glass<Line>, line: &Line, state: &State, theme: &Theme) -> usize {
        line.0.borrow_mut().clear();
        glass.draw(state, theme).unwrap();
        line.0.borrow().len()
    }

    #[test]
    fn what_stays_as_it_is_sends_nothing() {
        let theme = Theme { colours: Colours::True, ..Theme::default() };
        for screen in Screen::ALL {
            let mut state = recorded::watching(screen, "adafactor");
            let (mut glass, line) = glass(80, 24);
            assert!(sent(&mut glass, &line, &state, &theme) > 1000, "the first frame is whole");
            // The list is read again every two seconds, and says the same.
            let same = state.runs.all.iter().map(|row| (**row).clone()).collect();
            state.update(Msg::Runs(same));
            state.update(Msg::Tick { now: 1.0 });
            assert_eq!(sent(&mut glass, &line, &state, &theme), 0, "{screen:?}");
        }
    }

    #[test]
    fn an_update_sends_little_more_than_what_has_changed() {
        for (colours, most) in [(Colours::Sixteen, UPDATE), (Colours::True, UPDATE_TRUE)] {
            let theme = Theme { colours, ..Theme::default() };
            let mut state = recorded::watching(Screen::Train, "adamw");
            let (mut glass, line) = glass(80, 24);
            sent(&mut glass, &line, &state, &theme);
            let mut all = Vec::new();
            for _ in 0..50 {
                let msg = update(&state);
                state.update(msg);
                all.push(sent(&mut glass, &line, &state, &theme));
            }
            all.sort_unstable();
            let (median, worst) = (all[25], all[49]);
            assert!(
                median > 0 && median <= most && worst <= 3 * most,
                "{colours:?}: median {median}, worst {worst}"
            );
        }
    }

    /// Most bytes of the frame after one update, in the middle of many, at 80x24; half as many again as was measured.
    const UPDATE: usize = 600;
    const UPDATE_TRUE: usize = 1000;

    #[test]
    fn a_key_sends_its_change_alone_and_a_sequence_goes_out_at_once() {
        let theme = Theme::default();
        let mut state = recorded::watching(Screen::Setup, "adamw");
        let (mut glass, line) = glass(80, 24);
        let whole = sent(&mut glass, &line, &state, &theme);
        state.update(Msg::Action(Action::Down));
        let moved = sent(&mut glass, &line, &state, &theme);
        assert!(moved > 0 && moved < whole / 2, "{moved} of {whole}");
        line.0.borrow_mut().clear();
        glass.say("\x07").unwrap();
        assert_eq!(*line.0.borrow(), b"\x07");
        glass.clear().unwrap();
        let again = sent(&mut glass, &line, &state, &theme);
        assert!(again > 9 * whole / 10, "all of it again: {again} of {whole}");
    }
}
