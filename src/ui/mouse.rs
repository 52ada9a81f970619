//! What the mouse asks for: a click presses what it hits, the wheel scrolls or zooms what it is over.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

use super::{Hit, footer, help, hit_with, layout, overlay, render, screens::fork, theme::Theme};
use crate::app::{
    Msg, State,
    action::Action,
    focus::{Context, Overlay, Panel},
    tensors::Column,
};

/// Lines of the help that one notch of the wheel moves.
const NOTCH: usize = 3;

/// What a movement or a press of the mouse on a screen of that size asks for, one after another.
pub fn messages(state: &State, theme: &Theme, area: Rect, event: MouseEvent) -> Vec<Msg> {
    let (x, y) = (event.column, event.row);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => click(state, theme, area, x, y),
        MouseEventKind::ScrollUp => wheel(state, theme, area, x, y, true),
        MouseEventKind::ScrollDown => wheel(state, theme, area, x, y, false),
        MouseEventKind::Drag(MouseButton::Left) if state.overlay == Overlay::None => {
            match hit_with(state, &theme.keys, area, x, y) {
                Some(Hit::Chart { panel, update }) => vec![Msg::Point { panel, update }],
                _ => Vec::new(),
            }
        }
        MouseEventKind::ScrollLeft | MouseEventKind::ScrollRight if state.overlay == Overlay::None => {
            let earlier = event.kind == MouseEventKind::ScrollLeft;
            match hit_with(state, &theme.keys, area, x, y) {
                Some(Hit::Chart { .. }) => {
                    vec![Msg::Action(if earlier { Action::Earlier } else { Action::Later })]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn click(state: &State, theme: &Theme, area: Rect, x: u16, y: u16) -> Vec<Msg> {
    let at = Position { x, y };
    if layout::is_tiny(area) {
        // A question takes the whole of a small screen: its heading, then a line for each answer.
        let asked = overlay::asked(state);
        let choice = asked.zip(y.checked_sub(1)).and_then(|(asked, line)| {
            asked.answers.get(usize::from(line)).map(|answer| Msg::Action(answer.action))
        });
        return choice.into_iter().collect();
    }
    if layout::footer(area).contains(at) {
        let hints = footer::hints(state, theme, layout::footer(area));
        let hint = hints.into_iter().find(|(place, _)| place.contains(at));
        return hint.and_then(|(_, hint)| hint.msg).into_iter().collect();
    }
    if state.overlay != Overlay::None {
        return over(state, area, at);
    }
    match hit_with(state, &theme.keys, area, x, y) {
        Some(Hit::Tab(screen)) => vec![Msg::Tab(screen)],
        Some(Hit::Chart { panel, update }) => vec![Msg::Point { panel, update }],
        Some(Hit::Head(order)) => vec![Msg::SortBy(order)],
        Some(Hit::Panel { panel, row }) => match (head(state, theme, area, panel, at), row) {
            (Some(msg), _) => vec![msg],
            (None, Some(row)) => pressed(state, panel, row),
            (None, None) => vec![Msg::Click { panel, row: None }],
        },
        None => Vec::new(),
    }
}

/// A click while something lies over the screen.
fn over(state: &State, area: Rect, at: Position) -> Vec<Msg> {
    let inside = overlay::place(state, area).is_some_and(|place| place.contains(at));
    let msg = match &state.overlay {
        Overlay::Palette(palette) if inside => overlay::choice_at(palette, area, at.x, at.y).map(Msg::Choose),
        Overlay::Palette(_) => Some(Msg::Cancel),
        Overlay::Fork(choice) if inside => fork::row_at(choice, area, at)
            .map(|row| if row == choice.selected { Msg::Action(Action::Fork) } else { Msg::Choose(row) }),
        Overlay::Help { .. } | Overlay::Check(_) | Overlay::Samples { .. } if inside => None,
        _ if !inside => Some(Msg::Action(Action::Back)),
        _ => {
            let button = overlay::buttons(state, area).into_iter().find(|(place, _)| place.contains(at));
            button.map(|(_, action)| Msg::Action(action))
        }
    };
    msg.into_iter().collect()
}

/// A click on a row: selects it, and once it is selected opens or edits it.
fn pressed(state: &State, panel: Panel, row: usize) -> Vec<Msg> {
    let select = Msg::Click { panel, row: Some(row) };
    let selected = state.panel() == panel
        && match panel {
            Panel::Tensors => state.tensors.opened.is_none() && state.tensors.selected == row,
            Panel::Form => state.form.cursor() == row,
            Panel::List => state.runs.selected == row,
            _ => false,
        };
    match panel {
        // What is being typed there is typed on.
        Panel::Form if selected && state.form.editing.is_some() => Vec::new(),
        Panel::Form if selected => vec![Msg::Action(Action::Edit)],
        Panel::Tensors | Panel::List if selected && state.context() != Context::Text => {
            vec![Msg::Action(Action::Open)]
        }
        _ => vec![select],
    }
}

/// The head of a column at a cell of a table's first line, as it stands on the glass.
fn head(state: &State, theme: &Theme, area: Rect, panel: Panel, at: Position) -> Option<Msg> {
    let (_, place) = layout::panels(state, area).into_iter().find(|(shown, _)| *shown == panel)?;
    if at.y != place.y + 1 || (panel == Panel::Tensors && state.tensors.opened.is_some()) {
        return None;
    }
    let mut glass = Buffer::empty(area);
    render(state, theme, area, &mut glass);
    let line: Vec<char> = (place.left()..place.right())
        .map(|x| glass[(x, at.y)].symbol().chars().next().unwrap_or(' '))
        .collect();
    let column = usize::from(at.x - place.x);
    let here = |name: &str| stands_at(&line, name, column);
    match panel {
        Panel::Tensors => {
            // What is lost has a name of its own with each kind of state.
            let lost = [("factor err", Column::Error), ("8-bit err", Column::Error)];
            let names = Column::ALL.into_iter().map(|column| (column.as_str(), column)).chain(lost);
            longest(names, here).map(Msg::Sort)
        }
        _ => None,
    }
}

fn longest<T>(names: impl Iterator<Item = (&'static str, T)>, here: impl Fn(&str) -> bool) -> Option<T> {
    names.filter(|(name, _)| here(name)).max_by_key(|(name, _)| name.len()).map(|(_, item)| item)
}

/// Whether a name stands in the line as words of its own, over that column.
fn stands_at(line: &[char], name: &str, column: usize) -> bool {
    let name: Vec<char> = name.chars().collect();
    let blank = |at: Option<usize>| at.and_then(|at| line.get(at)).is_none_or(|sign| !sign.is_alphanumeric());
    line.windows(name.len()).enumerate().any(|(at, window)| {
        let end = at + name.len();
        window == name && (at..end).contains(&column) && blank(at.checked_sub(1)) && blank(Some(end))
    })
}

fn wheel(state: &State, theme: &Theme, area: Rect, x: u16, y: u16, up: bool) -> Vec<Msg> {
    let action = if up { Action::Up } else { Action::Down };
    match &state.overlay {
        Overlay::None => {}
        Overlay::Help { scroll } => {
            let mut line = *scroll;
            for _ in 0..NOTCH {
                line = help::moved(state, theme, area, line, action).unwrap_or(line);
            }
            return vec![Msg::HelpTo(line)];
        }
        Overlay::Palette(_) | Overlay::Fork(_) | Overlay::Samples { .. } => return vec![Msg::Action(action)],
        _ => return Vec::new(),
    }
    // What is being typed stays.
    if state.context() == Context::Text {
        return Vec::new();
    }
    match hit_with(state, &theme.keys, area, x, y) {
        Some(Hit::Chart { panel, update }) => vec![Msg::ZoomAt { panel, update, closer: up }],
        // The wheel scrolls what it is over.
        Some(Hit::Panel { panel, .. }) => vec![Msg::Click { panel, row: None }, Msg::Action(action)],
        Some(Hit::Head(_)) => vec![Msg::Click { panel: Panel::List, row: None }, Msg::Action(action)],
        Some(Hit::Tab(_)) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, palette::Palette, recorded, runs::Order};
    use crossterm::event::KeyModifiers;

    const AREA: Rect = Rect { x: 0, y: 0, width: 120, height: 40 };

    fn mouse(state: &mut State, kind: MouseEventKind, column: u16, row: u16) -> usize {
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let all = messages(state, &Theme::default(), AREA, event);
        let count = all.len();
        all.into_iter().for_each(|msg| drop(state.update(msg)));
        count
    }

    /// Where a text stands on the screen, below the tabs and the frame under them.
    fn find(state: &State, text: &str) -> (u16, u16) {
        let mut buffer = Buffer::empty(AREA);
        render(state, &Theme::default(), AREA, &mut buffer);
        let wanted: Vec<char> = text.chars().collect();
        for y in 2..AREA.height {
            let row: Vec<char> =
                (0..AREA.width).map(|x| buffer[(x, y)].symbol().chars().next().unwrap_or(' ')).collect();
            if let Some(x) = row.windows(wanted.len()).position(|window| window == wanted) {
                return (x as u16, y);
            }
        }
        panic!("{text} is not on the screen");
    }

    fn click(state: &mut State, text: &str) -> usize {
        let (x, y) = find(state, text);
        mouse(state, MouseEventKind::Down(MouseButton::Left), x, y)
    }

    #[test]
    fn the_heads_of_both_tables_sort_and_sort_the_other_way_round() {
        let mut state = recorded::watching(Screen::State, "adafactor");
        for (name, column) in [("rms", Column::Rms), ("bytes", Column::Bytes), ("state ", Column::State)] {
            click(&mut state, name);
            assert_eq!(state.tensors.sort, column);
        }
        let before = state.tensors.reverse;
        click(&mut state, "state▲");
        assert_eq!((state.tensors.sort, state.tensors.reverse), (Column::State, !before));
        let mut state = recorded::watching(Screen::Runs, "adamw");
        for (name, order) in
            [("val loss", Order::ValLoss), ("state mem", Order::StateBytes), ("name ", Order::Name)]
        {
            click(&mut state, name);
            assert_eq!((state.runs.order, state.runs.reverse), (order, false), "{name}");
        }
        click(&mut state, "name ");
        assert!(state.runs.reverse);
    }

    #[test]
    fn a_row_is_selected_by_one_click_and_opened_by_the_next() {
        let mut state = recorded::watching(Screen::State, "adafactor");
        let (x, y) = find(&state, "exp_avg_sq_row");
        for _ in 0..2 {
            assert!(state.tensors.opened.is_none());
            mouse(&mut state, MouseEventKind::Down(MouseButton::Left), x, y);
        }
        assert!(state.tensors.opened.is_some());
        let mut state = recorded::watching(Screen::Setup, "adamw");
        click(&mut state, "accumulate ");
        assert_eq!(state.form.field().unwrap().key, "train.accumulate");
        click(&mut state, "accumulate ");
        assert!(state.form.editing.is_some());
        let typed = state.form.editing.clone();
        click(&mut state, "accumulate ");
        let (x, y) = find(&state, "accumulate ");
        mouse(&mut state, MouseEventKind::ScrollDown, x, y);
        assert_eq!(state.form.editing, typed, "what is typed stays");
    }

    #[test]
    fn the_keys_at_the_bottom_and_the_answers_of_a_question_are_pressed() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        click(&mut state, "help ");
        assert!(matches!(state.overlay, Overlay::Help { .. }));
        let line = |state: &State| match state.overlay {
            Overlay::Help { scroll } => scroll,
            _ => panic!("no help"),
        };
        mouse(&mut state, MouseEventKind::ScrollDown, 60, 20);
        assert_eq!(line(&state), NOTCH);
        mouse(&mut state, MouseEventKind::ScrollUp, 60, 20);
        assert_eq!(line(&state), 0);
        mouse(&mut state, MouseEventKind::Down(MouseButton::Left), 1, 20);
        assert_eq!(state.overlay, Overlay::None, "a click beside it closes it");
        click(&mut state, "quit ");
        assert_eq!(state.overlay, Overlay::Quit);
        click(&mut state, "cancel");
        assert_eq!(state.overlay, Overlay::None);
        click(&mut state, "quit ");
        let (x, y) = find(&state, "detach");
        let event = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: x,
            row: y,
            modifiers: KeyModifiers::NONE,
        };
        let asked = messages(&state, &Theme::default(), AREA, event);
        assert!(matches!(asked[..], [Msg::Action(Action::Detach)]), "{asked:?}");
    }

    #[test]
    fn a_line_of_the_palette_is_done_or_put_into_the_line() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.overlay = Overlay::Palette(Palette::default());
        click(&mut state, "the Runs screen");
        assert_eq!(state.screen, Screen::Runs);
        state.overlay = Overlay::Palette(Palette::default());
        mouse(&mut state, MouseEventKind::ScrollDown, 60, 20);
        assert!(matches!(&state.overlay, Overlay::Palette(palette) if palette.selected == 1));
        if let Overlay::Palette(palette) = &mut state.overlay {
            "export".chars().for_each(|c| palette.line.input(crate::app::input::Input::Char(c)));
        }
        click(&mut state, "write the run");
        assert!(matches!(&state.overlay, Overlay::Palette(palette) if palette.line.text() == "export "));
        click(&mut state, "one row an update");
        assert_eq!(state.overlay, Overlay::None);
    }

    #[test]
    fn the_wheel_over_a_list_moves_in_it_and_over_a_chart_zooms() {
        let mut state = recorded::watching(Screen::Runs, "adamw");
        let (x, y) = find(&state, "nano-adafactor");
        mouse(&mut state, MouseEventKind::ScrollDown, x, y);
        assert_eq!(state.runs.selected, 1);
        let mut state = recorded::watching(Screen::Train, "adamw");
        mouse(&mut state, MouseEventKind::ScrollUp, 38, 12);
        assert!(state.plot.shown((1, 300)).is_some());
        let before = state.plot;
        mouse(&mut state, MouseEventKind::ScrollLeft, 38, 12);
        assert_ne!(state.plot, before);
        mouse(&mut state, MouseEventKind::Drag(MouseButton::Left), 30, 12);
        assert!(state.plot.cursor.is_some());
    }
}
