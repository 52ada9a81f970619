//! What is on the glass: keys, the mouse, events and sizes in any order, drawn as the program draws them, into a terminal
//! that sees nothing but the bytes. What it shows then is what the state says, sign by sign and colour by colour, and
//! the figures that it shows are the state's.

use std::{
    cell::{Cell, RefCell},
    io,
    num::NonZeroU16,
    rc::Rc,
    sync::LazyLock,
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use ratatui::{
    Terminal,
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::{Buffer, Cell as Drawn},
    layout::{Position, Rect, Size},
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

use super::{
    Theme, format, keymap, mouse, pressed, render,
    storms::{self, Step},
    theme::Colours,
};
use crate::app::{
    State,
    action::Screen,
    focus::Overlay,
    look::ThemeName,
    recorded,
    run::{RunView, Status},
};

/// Where the bytes go.
#[derive(Debug, Clone, Default)]
struct Line(Rc<RefCell<Vec<u8>>>);

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The program's own backend, but for what it asks the terminal.
struct Remote {
    inner: CrosstermBackend<Line>,
    size: Rc<Cell<Size>>,
}

impl Backend for Remote {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Drawn)>>(&mut self, content: I) -> io::Result<()> {
        self.inner.draw(content)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.inner.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size.get())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size.get(), pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

/// A program and the terminal at the other end of the line.
struct Glass {
    terminal: Terminal<Remote>,
    line: Line,
    size: Rc<Cell<Size>>,
    parser: vt100::Parser,
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

impl Glass {
    fn new(area: Rect) -> Self {
        // Colours are wanted whatever the environment of the tests says.
        crossterm::style::force_color_output(true);
        let (line, size) = (Line::default(), Rc::new(Cell::new(area.as_size())));
        let inner = CrosstermBackend::new(line.clone());
        let terminal = Terminal::new(Remote { inner, size: Rc::clone(&size) }).unwrap();
        let parser = vt100::Parser::new(cells(area.height), cells(area.width), 0);
        Self { terminal, line, size, parser }
    }

    /// Draws one frame as the loop does, and lets the other end have it. Returns its bytes.
    fn frame(&mut self, state: &State, theme: &Theme, area: Rect) -> usize {
        if self.size.get() != area.as_size() {
            self.size.set(area.as_size());
            self.parser.set_size(cells(area.height), cells(area.width));
        }
        self.terminal.draw(|frame| super::draw(state, theme, frame)).unwrap();
        let bytes = std::mem::take(&mut *self.line.0.borrow_mut());
        self.parser.process(&bytes);
        bytes.len()
    }

    /// Holds what is on the glass against a fresh draw of everything.
    fn is(&self, fresh: &Buffer) -> Result<(), TestCaseError> {
        let screen = self.parser.screen();
        for y in 0..fresh.area.height {
            let mut x = 0;
            while x < fresh.area.width {
                let ours = &fresh[(x, y)];
                let Some(theirs) = screen.cell(y, x) else {
                    return Err(TestCaseError::fail(format!("no cell {x},{y}")));
                };
                let shown = if theirs.has_contents() { theirs.contents() } else { " " };
                let width = ours.symbol().width().max(1) as u16;
                prop_assert_eq!(shown, ours.symbol(), "sign at {},{} of {}", x, y, fresh.area);
                prop_assert_eq!(theirs.is_wide(), width > 1, "width at {},{}", x, y);
                let reversed = ours.modifier.contains(Modifier::REVERSED);
                prop_assert_eq!(theirs.inverse(), reversed, "ground of {:?} at {},{}", ours.symbol(), x, y);
                prop_assert_eq!(theirs.bgcolor(), colour(ours.bg), "ground at {},{}", x, y);
                // The ink of a blank is not seen.
                if ours.symbol() != " " || reversed {
                    let wanted = [Modifier::BOLD, Modifier::DIM].map(|weight| ours.modifier.contains(weight));
                    let weight = [theirs.bold(), theirs.dim()];
                    prop_assert_eq!(weight, wanted, "weight of {:?} at {},{}", ours.symbol(), x, y);
                    prop_assert_eq!(theirs.fgcolor(), colour(ours.fg), "ink at {},{}", x, y);
                }
                x += width;
            }
        }
        Ok(())
    }

    fn row(&self, row: u16) -> String {
        self.parser.screen().rows(0, self.size.get().width).nth(usize::from(row)).unwrap_or_default()
    }
}

/// A colour as the other end understands its bytes.
fn colour(colour: Color) -> vt100::Color {
    let named = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    match colour {
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        Color::Indexed(index) => vt100::Color::Idx(index),
        other => named
            .iter()
            .position(|known| *known == other)
            .map_or(vt100::Color::Default, |at| vt100::Color::Idx(at as u8)),
    }
}

/// What is typed, clicked or happens.
#[derive(Debug, Clone)]
enum Do {
    Press(KeyCode, KeyModifiers),
    Mouse(MouseEventKind, u16, u16),
    Other(Step),
}

fn any_key() -> impl Strategy<Value = Do> {
    let plain = |code| Do::Press(code, KeyModifiers::NONE);
    prop_oneof![
        8 => (0..keymap::BINDINGS.len(), 0..4usize).prop_map(|(at, which)| {
            let keys = keymap::BINDINGS[at].keys;
            let key = keys[which % keys.len()];
            let modifiers = if key.control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            Do::Press(key.code, modifiers)
        }),
        3 => prop::char::range(' ', '~').prop_map(move |sign| plain(KeyCode::Char(sign))),
        // The reader takes U+FFFD for broken bytes and shows nothing.
        1 => any::<char>()
            .prop_map(move |sign| plain(KeyCode::Char(if sign == '\u{fffd}' { '?' } else { sign }))),
        2 => prop_oneof![
            Just(KeyCode::Enter), Just(KeyCode::Esc), Just(KeyCode::Tab), Just(KeyCode::Backspace),
            Just(KeyCode::Up), Just(KeyCode::Down), Just(KeyCode::Home), Just(KeyCode::Delete),
        ].prop_map(plain),
    ]
}

fn any_mouse() -> impl Strategy<Value = Do> {
    let kind = prop_oneof![
        3 => Just(MouseEventKind::Down(MouseButton::Left)),
        1 => Just(MouseEventKind::Drag(MouseButton::Left)),
        1 => Just(MouseEventKind::Up(MouseButton::Left)),
        1 => Just(MouseEventKind::Moved),
        2 => Just(MouseEventKind::ScrollUp),
        2 => Just(MouseEventKind::ScrollDown),
    ];
    (kind, 0..130u16, 0..45u16).prop_map(|(kind, column, row)| Do::Mouse(kind, column, row))
}

/// Sizes as terminals have them, and some that none has.
fn any_size() -> impl Strategy<Value = Do> {
    let size = prop_oneof![
        6 => (20..=100u16, 5..=32u16),
        1 => (1..=130u16, 1..=44u16),
        2 => Just((80, 24)),
    ];
    size.prop_map(|(width, height)| Do::Other(Step::Size(width, height)))
}

fn anything() -> impl Strategy<Value = Do> {
    prop_oneof![
        8 => any_key(),
        3 => any_mouse(),
        3 => any_size(),
        5 => storms::happening().prop_map(Do::Other),
    ]
}

fn play(state: &mut State, theme: &Theme, step: Do, area: &mut Rect) {
    match step {
        Do::Press(code, modifiers) => {
            if let Some(msg) = pressed(state, theme, *area, KeyEvent::new(code, modifiers)) {
                state.update(msg);
            }
        }
        Do::Mouse(kind, column, row) => {
            let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
            for msg in mouse::messages(state, theme, *area, event) {
                state.update(msg);
            }
        }
        Do::Other(step) => storms::do_it(state, step, area),
    }
}

/// The text between a word and the two blanks or the end after its figure.
fn figure<'a>(row: &'a str, word: &str) -> Option<&'a str> {
    let from = row.find(word)? + word.len();
    row[from..].split("  ").next().map(str::trim)
}

/// Every figure of the lines on top of the Train screen is the state's.
fn figures_are_the_states(glass: &Glass, state: &State, area: Rect) -> Result<(), TestCaseError> {
    let large = area.width >= super::layout::MIN_WIDTH && area.height >= super::layout::MIN_HEIGHT;
    if !large || state.screen != Screen::Train || state.overlay != Overlay::None || state.watching.is_none() {
        return Ok(());
    }
    let (view, top, below) = (state.view(), glass.row(1), glass.row(2));
    let whole = |text: &str| text.replace(',', "").parse::<u64>().ok();
    // A narrow screen cuts the line at its right end: a figure there may have lost digits.
    let full = |row: &str, text: &str| {
        row.trim_end().width() < usize::from(area.width) || !row.trim_end().ends_with(text)
    };
    if let Some((done, total)) = figure(&top, " update ").and_then(|text| text.split_once(" / "))
        && full(&top, total)
    {
        prop_assert_eq!(whole(done), Some(view.done()), "{}", top);
        prop_assert_eq!(whole(total), Some(view.total().unwrap_or(0)), "{}", top);
    }
    if state.cursor().is_some() {
        return Ok(());
    }
    for (word, wanted) in newest(state, view) {
        if let Some(text) = figure(&below, word).filter(|text| full(&below, text)) {
            let text = text.trim_start_matches(|sign: char| "█░#. ".contains(sign) && word == " window ");
            prop_assert_eq!(text, wanted, "{} in {}", word, below);
        }
    }
    Ok(())
}

/// What each word of the second line has to say, from the state alone.
fn newest(state: &State, view: &RunView) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    if let Some(update) = &view.update {
        all.push((" loss ", format::loss(update.loss)));
        let by_hand = if view.rate_override.is_some() { " by hand" } else { "" };
        all.push((" lr ", format!("{}{by_hand}", format::rate(update.learning_rate))));
        all.push((" |grad| ", format::number(update.grad_norm)));
        // The runs of this test are those of a language model.
        all.push((" tok/s ", format::short(update.tokens_per_second)));
        all.push((" tokens ", format::short(update.tokens as f64)));
    }
    if let Some(validation) = view.validation.as_ref().filter(|_| view.update.is_some()) {
        all.push((" val ", format::loss(validation.loss)));
    }
    if view.skipped > 0 {
        all.push((" skipped ", format::count(view.skipped)));
    }
    all.extend(view.best_val.map(|best| (" best val ", format::loss(best))));
    // The accumulation stands behind a bar that fills.
    let live = state.status().is_some_and(Status::is_live);
    let of = view.header.as_ref().map(|header| header.config.train.accumulate as u64).filter(|of| *of > 1);
    if let Some(of) = of.filter(|_| live) {
        let (done, of) = view.window.map_or((0, of), |window| (window.micro_batches, window.of));
        all.push((" window ", format!("{done}/{of}")));
    }
    all
}

/// Runs to begin with: making one takes longer than a whole history.
static BEGINNINGS: LazyLock<Vec<State>> = LazyLock::new(|| {
    let optimizers = ["adamw", "adafactor", "adamw8bit"];
    let all = Screen::ALL.into_iter().enumerate();
    all.flat_map(|(at, screen)| [optimizers[at % 3], optimizers[(at + 1) % 3]].map(|name| (screen, name)))
        .map(|(screen, optimizer)| recorded::watching(screen, optimizer))
        .collect()
});

fn history(
    begin: usize,
    steps: Vec<Do>,
    (colours, name, signs): (usize, usize, u8),
) -> Result<(), TestCaseError> {
    let mut state = BEGINNINGS[begin % BEGINNINGS.len()].clone();
    let colours = [Colours::None, Colours::Sixteen, Colours::True][colours];
    let theme = Theme { colours, ascii: signs == 1, blocks: signs == 2, ..Theme::default() };
    let mut area = Rect::new(0, 0, 80, 24);
    let mut glass = Glass::new(area);
    state.theme = ThemeName::ALL[name];
    glass.frame(&state, &theme.named(state.theme), area);
    for step in steps {
        let look = theme.named(state.theme);
        play(&mut state, &look, step, &mut area);
        let theme = theme.named(state.theme);
        glass.frame(&state, &theme, area);
        let mut fresh = Buffer::empty(area);
        render(&state, &theme, area, &mut fresh);
        glass.is(&fresh)?;
        figures_are_the_states(&glass, &state, area)?;
        let bytes = glass.frame(&state, &theme, area);
        prop_assert!(bytes < 64, "{} bytes for a frame in which nothing is new", bytes);
    }
    Ok(())
}

fn looks() -> impl Strategy<Value = (usize, usize, u8)> {
    (0..3usize, 0..5usize, 0..3u8)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn the_glass_shows_what_the_state_says(
        begin in 0..8usize,
        steps in prop::collection::vec(anything(), 1..7),
        look in looks(),
    ) {
        history(begin, steps, look)?;
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn the_glass_shows_what_the_state_says_after_keys_alone(
        begin in 0..8usize,
        steps in prop::collection::vec(any_key(), 1..7),
        look in looks(),
    ) {
        history(begin, steps, look)?;
    }
}
