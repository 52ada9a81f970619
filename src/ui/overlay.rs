//! What lies over the screen: help, palette, questions.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::Line,
};
use unicode_width::UnicodeWidthStr;

use crate::{
    app::{
        State,
        action::{ACTIONS, Action, Screen},
        focus::{Context, Overlay},
        palette::Palette,
        tensors::first_visible,
    },
    ui::{
        format, help, screens,
        theme::{Role, Theme},
        widgets::{dialog, inner, paragraph, placed, span, write, write_right},
    },
};

/// A question: what it is about, what is asked, and what may be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub heading: &'static str,
    pub text: String,
    /// The one that changes nothing is the last.
    pub answers: Vec<Answer>,
}

/// One answer to a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    pub action: Action,
    pub text: &'static str,
    /// What is said where a screen has no room for panels.
    pub short: &'static str,
}

const fn answer(action: Action, text: &'static str, short: &'static str) -> Answer {
    Answer { action, text, short }
}

/// The question that lies over the screen, if one does.
pub fn asked(state: &State) -> Option<Asked> {
    let (heading, text, answers) = match &state.overlay {
        Overlay::Quit => (
            "leave",
            still_training(state),
            if state.live_here().len() > 1 {
                vec![
                    answer(Action::Detach, "detach: leave, the runs go on", "the runs go on"),
                    answer(
                        Action::StopAndLeave,
                        "stop them: save checkpoints, then leave",
                        "stop, save them",
                    ),
                ]
            } else {
                vec![
                    answer(Action::Detach, "detach: leave, the run goes on", "the run goes on"),
                    answer(Action::StopAndLeave, "stop: save a checkpoint, then leave", "stop and save it"),
                ]
            },
        ),
        Overlay::Delete { name, .. } => (
            "delete a run",
            format!(
                "{name}, with its record and its checkpoints, goes from `runs` to `trash` beside it. Nothing is erased: \
                 empty that folder by hand."
            ),
            vec![answer(Action::Delete, "move it to the trash folder", "to the trash")],
        ),
        Overlay::StartBeside => (
            "start another run",
            beside(state),
            vec![
                answer(Action::Start, "start the draft beside it", "beside it"),
                answer(Action::Queue, "queue it: it starts when its turn comes", "queue it"),
            ],
        ),
        Overlay::Unqueue { name, .. } => (
            "leave the queue",
            format!("{name} waits for its turn."),
            vec![answer(Action::Unqueue, "take it out: it will not start", "take it out")],
        ),
        Overlay::None
        | Overlay::Help { .. }
        | Overlay::Palette(_)
        | Overlay::Check(_)
        | Overlay::Fork(_)
        | Overlay::Samples { .. } => return None,
    };
    let cancel = [answer(Action::Back, "cancel", "cancel")];
    Some(Asked { heading, text, answers: answers.into_iter().chain(cancel).collect() })
}

/// Draws the overlay, if there is one.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    match &state.overlay {
        Overlay::None => {}
        Overlay::Help { scroll } => help::draw(state, *scroll, theme, area, buffer),
        Overlay::Palette(palette) => self::palette(palette, state.screen, theme, area, buffer),
        Overlay::Fork(choice) => screens::fork::draw(choice, state.context(), theme, area, buffer),
        Overlay::Check(check) => screens::check::draw(check, theme, area, buffer),
        Overlay::Samples { back, scroll } => {
            screens::samples::draw(state.view(), *back, *scroll, theme, area, buffer);
        }
        _ => {
            if let Some(asked) = asked(state) {
                question(&asked, state, theme, area, buffer);
            }
        }
    }
}

/// Which runs of this session are live.
fn still_training(state: &State) -> String {
    match &state.live_here()[..] {
        [] => {
            let name = state.watching.as_ref().map_or("the run", |run| &run.name);
            format!("{name} is still training.")
        }
        [only] if state.may_drive() => format!("{only} is still training."),
        [only] => format!("{only}, which is not on the screen, is still training."),
        several => format!("{} are still training.", listed(several)),
    }
}

/// What another run would be started beside.
fn beside(state: &State) -> String {
    let (live, waiting) = state.beside();
    match (&live[..], &waiting[..]) {
        ([], []) => "A run is still training. Two runs share the processor: both get slower.".to_owned(),
        ([], waits) => format!(
            "{} {} for a turn in the queue. Runs that share the processor get slower.",
            listed(waits),
            if waits.len() == 1 { "waits" } else { "wait" }
        ),
        ([only], _) => {
            format!("{only} is still training. Two runs share the processor: both get slower.")
        }
        (several, _) => format!(
            "{} are still training. They share the processor: every one of them gets slower.",
            listed(several)
        ),
    }
}

/// Names in a row, the first of them where there are many.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, second, third, rest @ ..] if rest.len() > 1 => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Columns of a question, and of the keys in it.
const WIDTH: u16 = 54;
const KEY: usize = 6;

/// Size of a question's box, and lines of its text.
fn measured(asked: &Asked, area: Rect) -> ((u16, u16), u16) {
    let width = WIDTH.min(area.width);
    let lines = format::wrap(&asked.text, usize::from(width.saturating_sub(4))).len() as u16;
    ((width, lines + asked.answers.len() as u16 + 3), lines)
}

fn question(asked: &Asked, state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let (size, _) = measured(asked, area);
    let inside = dialog(area, size, asked.heading, buffer, theme);
    let below = paragraph(inside, 0, &asked.text, Role::Text, buffer, theme) + 1;
    let room = usize::from(inside.width).saturating_sub(KEY + 2);
    for (row, answer) in (below..).zip(&asked.answers) {
        let key = theme.keys.first(answer.action, state.context());
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        let spans = vec![
            span(format!("{key:>KEY$}"), Role::Key, theme),
            span(
                format!("  {}", format::first_fitting(&[answer.text, answer.short], room)),
                Role::Text,
                theme,
            ),
        ];
        write(inside, row, &Line::from(spans), buffer);
    }
}

/// The lines of a question that can be clicked.
pub fn buttons(state: &State, area: Rect) -> Vec<(Rect, Action)> {
    let Some(asked) = asked(state) else { return Vec::new() };
    let (size, lines) = measured(&asked, area);
    let inside = inner(placed(area, size));
    let below = inside.y + lines + 1;
    let place = |row: usize| Rect { y: below + row as u16, height: 1, ..inside };
    let buttons = asked.answers.iter().enumerate().map(|(row, answer)| (place(row), answer.action));
    buttons.filter(|(place, _)| place.bottom() <= inside.bottom()).collect()
}

/// The box of the overlay; nothing without one.
pub fn place(state: &State, area: Rect) -> Option<Rect> {
    match &state.overlay {
        Overlay::None => None,
        Overlay::Help { .. } => Some(placed(area, help::size(area))),
        Overlay::Palette(palette) => Some(placed(area, palette_size(palette, area))),
        // It is as high as what it tells.
        Overlay::Check(_) => Some(placed(area, (screens::check::WIDTH, area.height))),
        Overlay::Fork(choice) => Some(screens::fork::place(choice, area)),
        Overlay::Samples { back, .. } => Some(screens::samples::place(state.view(), *back, area)),
        _ => asked(state).map(|asked| placed(area, measured(&asked, area).0)),
    }
}

/// Columns and rows of the palette.
fn palette_size(palette: &Palette, area: Rect) -> (u16, u16) {
    let listed = palette.matches().len().max(3) as u16;
    (80, (listed + 4).min(area.height.saturating_sub(4)).min(20))
}

/// The lines of the palette's list that are seen, from the first one at the top of its box on.
fn seen(palette: &Palette, inside: Rect) -> (usize, usize) {
    let height = usize::from(inside.height.saturating_sub(2));
    let count = palette.matches().len();
    (first_visible(palette.selected.min(count.saturating_sub(1)), count, height), height)
}

/// The line of the palette's list at a cell.
pub fn choice_at(palette: &Palette, area: Rect, column: u16, row: u16) -> Option<usize> {
    let inside = inner(placed(area, palette_size(palette, area)));
    if palette.error.is_some() || !inside.contains(Position { x: column, y: row }) {
        return None;
    }
    let (first, _) = seen(palette, inside);
    let line = usize::from(row.checked_sub(inside.y + 2)?);
    Some(first + line).filter(|at| *at < palette.matches().len())
}

fn palette(palette: &Palette, screen: Screen, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let inside = dialog(area, palette_size(palette, area), "command", buffer, theme);
    let text = palette.line.text();
    let (before, rest) =
        text.split_at(text.char_indices().nth(palette.line.cursor()).map_or(text.len(), |(at, _)| at));
    let line = Line::from(vec![
        span(":", Role::Key, theme),
        span(before.to_owned(), Role::Strong, theme),
        span("█", Role::Focused, theme),
        span(rest.to_owned(), Role::Strong, theme),
    ]);
    write(inside, 0, &line, buffer);
    if let Some(error) = &palette.error {
        paragraph(inside, 1, error, Role::Bad, buffer, theme);
        return;
    }
    let matches = palette.matches();
    if matches.is_empty() {
        write(inside, 2, &Line::from(span("no such command", Role::Dim, theme)), buffer);
        return;
    }
    let selected = palette.selected.min(matches.len() - 1);
    let (first, height) = seen(palette, inside);
    let listed = matches.iter().skip(first).take(height);
    let longest = listed.map(|choice| choice.name.len() + choice.argument.len() + 2).max();
    let names =
        if usize::from(inside.width) < 2 * NAME + NAME { longest.unwrap_or(NAME).min(NAME) } else { NAME };
    for (row, (at, choice)) in matches.iter().enumerate().skip(first).take(height).enumerate() {
        let name = format!("{} {}", choice.name, choice.argument);
        let key = key_of(choice.name, screen, theme);
        let room = usize::from(inside.width).saturating_sub(names + 1 + key.width());
        let help = format::cut(choice.help, room);
        let spans = vec![span(format!("{name:<names$}"), Role::Strong, theme), span(help, Role::Text, theme)];
        write(inside, row as u16 + 2, &Line::from(spans), buffer);
        write_right(inside, row as u16 + 2, &Line::from(span(key, Role::Key, theme)), buffer);
        if at == selected {
            let place = Rect { y: inside.y + row as u16 + 2, height: 1, ..inside };
            buffer.set_style(place, theme.style(Role::Selected));
        }
    }
}

/// Columns of a command in the palette.
const NAME: usize = 22;

/// The key of the action of that name, on that screen or anywhere; empty when it has none.
fn key_of(name: &str, screen: Screen, theme: &Theme) -> String {
    let context = match screen {
        Screen::Train => Context::Train,
        Screen::State => Context::State,
        Screen::Setup => Context::Setup,
        Screen::Runs => Context::Runs,
    };
    let about = ACTIONS.iter().find(|about| about.name == name);
    let key = about.and_then(|about| theme.keys.first(about.action, context));
    key.map(|key| key.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{palette::choices, recorded},
        ui::{keymap::BINDINGS, keys::Keymap, keys::Keys},
    };

    #[test]
    fn the_palette_shows_every_action_with_the_key_that_holds() {
        let theme = Theme::default();
        for about in ACTIONS {
            let bound = BINDINGS.iter().find(|binding| binding.action.about().name == about.name);
            let shown = key_of(about.name, Screen::Train, &theme);
            assert_eq!(shown.is_empty(), bound.is_none(), "{}", about.name);
            if about.action != Action::Palette {
                assert!(choices().any(|choice| choice.name == about.name), "{}", about.name);
            }
        }
        for screen in Screen::ALL {
            for choice in choices() {
                let key = key_of(choice.name, screen, &theme);
                let used = NAME + choice.help.width() + 1 + key.width();
                assert!(used <= 76, "{} {key}: {used}", choice.name);
            }
        }
    }

    #[test]
    fn a_question_shows_the_keys_that_hold_and_its_lines_can_be_clicked() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.overlay = Overlay::Quit;
        let change = crate::ui::keys::Change {
            place: None,
            action: Action::Detach,
            keys: vec!["F7".parse().unwrap()],
            line: 1,
        };
        let keys = Keys::of(Keymap::default().with(&[change]).unwrap());
        let theme = Theme { keys, ..Theme::default() };
        for (width, height) in [(80, 24), (120, 40), (41, 12)] {
            let area = Rect::new(0, 0, width, height);
            let mut buffer = Buffer::empty(area);
            draw(&state, &theme, area, &mut buffer);
            let buttons = buttons(&state, area);
            assert_eq!(buttons.len(), 3);
            let row = |place: Rect| -> String {
                (place.left()..place.right()).map(|x| buffer[(x, place.y)].symbol().to_owned()).collect()
            };
            for ((place, action), (key, word)) in
                buttons.into_iter().zip([("F7", "the run goes on"), ("s", "stop"), ("Esc", "cancel")])
            {
                let text = row(place);
                assert!(text.trim_start().starts_with(key) && text.contains(word), "{action:?}: {text}");
            }
        }
    }
}
