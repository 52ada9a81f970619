//! Where everything lies. Drawing and the mouse read the same map.
//!
//! ```text
//! tabs ....................................... run, status
//! progress and figures (Train)
//! panels
//! keys, or a notice
//! ```

use ratatui::layout::{Constraint, Layout, Rect};

use super::keys::Keymap;
use crate::app::{
    State,
    action::{Action, Screen},
    focus::{Context, Panel},
};

/// The smallest screen that can be drawn on.
pub const MIN_WIDTH: u16 = 40;
/// The smallest screen that can be drawn on.
pub const MIN_HEIGHT: u16 = 10;

/// Whether there is no room for panels.
pub const fn is_tiny(area: Rect) -> bool {
    area.width < MIN_WIDTH || area.height < MIN_HEIGHT
}

/// One tab of the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    /// None: the name of the program.
    pub screen: Option<Screen>,
    pub text: String,
    pub place: Rect,
}

/// The line of tabs.
pub const fn header(area: Rect) -> Rect {
    Rect { height: 1, ..area }
}

/// The line of keys.
pub const fn footer(area: Rect) -> Rect {
    Rect { y: area.y + area.height - 1, height: 1, ..area }
}

/// The lines of progress below the header on the Train screen.
pub fn status(state: &State, area: Rect) -> Rect {
    let height = if state.screen == Screen::Train { 2 } else { 0 };
    Rect { y: area.y + 1, height: height.min(area.height.saturating_sub(2)), ..area }
}

/// The tabs and where they are.
pub fn tabs(area: Rect, open: Screen, keys: &Keymap) -> Vec<Tab> {
    let mut tabs = Vec::with_capacity(5);
    let mut x = area.x;
    let mut add = |screen: Option<Screen>, text: String| {
        let width = text.chars().count() as u16;
        let place = Rect { x, width, ..area }.intersection(area);
        x = x.saturating_add(width);
        tabs.push(Tab { screen, text, place });
    };
    if area.width >= 60 {
        add(None, " tui-train ".to_owned());
    }
    for screen in Screen::ALL {
        let key = keys.first(Action::Show(screen), Context::Global).map(|key| key.to_string());
        // Where there is little room only the open tab has a name.
        let name = if area.width >= 50 || screen == open { screen.as_str() } else { "" };
        let key = key.unwrap_or_else(|| screen.as_str()[..1].to_owned());
        add(Some(screen), format!(" {key} {name}").trim_end().to_owned() + " ");
    }
    tabs
}

fn body(state: &State, area: Rect) -> Rect {
    let top = 1 + status(state, area).height;
    Rect { y: area.y + top, height: area.height.saturating_sub(top + 1), ..area }
}

/// Whether only one panel has room.
pub fn compact(area: Rect) -> bool {
    area.width < 70 || area.height < 20
}

/// The panels that are shown and where.
pub fn panels(state: &State, area: Rect) -> Vec<(Panel, Rect)> {
    let body = body(state, area);
    let focused = state.panel();
    if state.focus.zoomed || compact(area) {
        return vec![(focused, body)];
    }
    match state.screen {
        Screen::Train => train(focused, super::screens::memory::height(state.view()), body),
        Screen::State => vec![(Panel::Tensors, body)],
        Screen::Setup => {
            let share = if body.width >= 110 { 50 } else { 54 };
            let [form, plan] =
                Layout::horizontal([Constraint::Percentage(share), Constraint::Fill(1)]).areas(body);
            vec![(Panel::Form, form), (Panel::Plan, plan)]
        }
        Screen::Runs => {
            let rows = (state.runs.rows.len() as u16 + 3).clamp(6, body.height / 3);
            let [list, rest] = Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(body);
            let [curves, compare] =
                Layout::horizontal([Constraint::Percentage(54), Constraint::Fill(1)]).areas(rest);
            vec![(Panel::List, list), (Panel::Curves, curves), (Panel::Compare, compare)]
        }
    }
}

fn train(focused: Panel, memory: u16, body: Rect) -> Vec<(Panel, Rect)> {
    let right = if body.width >= 110 { (body.width * 36 / 100).min(64) } else { 33 };
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(right)]).areas(body);
    let [loss, below] = Layout::vertical([Constraint::Percentage(62), Constraint::Fill(1)]).areas(left);
    let memory = memory.min(body.height.saturating_sub(6));
    let [memory, journal] = Layout::vertical([Constraint::Length(memory), Constraint::Fill(1)]).areas(right);
    let mut panels = vec![(Panel::Loss, loss)];
    let small = [Panel::Schedule, Panel::Gradient, Panel::Speed];
    let room = usize::from(left.width / 34).clamp(1, 3);
    if room == 1 {
        // One of the three at a time: the one with the focus.
        panels.push((if small.contains(&focused) { focused } else { Panel::Schedule }, below));
    } else {
        let first = if room == 2 && focused == Panel::Speed { 1 } else { 0 };
        let areas = Layout::horizontal(vec![Constraint::Fill(1); room]).split(below);
        panels.extend(small.into_iter().skip(first).zip(areas.iter().copied()));
    }
    panels.extend([(Panel::Memory, memory), (Panel::Journal, journal)]);
    panels
}
