//! Up, down and sideways in what has the focus: lists, forms, charts, strips, and what lies over them.

use super::{
    Effect, State,
    action::Screen,
    focus::{Overlay, Panel},
};

/// Lines of the help.
pub(crate) const HELP_LINES: usize = 163;

impl State {
    pub(super) fn page(&self) -> isize {
        isize::from(i16::try_from(self.size.1.saturating_sub(8)).unwrap_or(i16::MAX)).max(1)
    }

    pub(super) fn step(&mut self, by: isize) -> Vec<Effect> {
        let moved = |at: usize, most: usize| at.saturating_add_signed(by).min(most);
        match &mut self.overlay {
            Overlay::Help { scroll } => {
                let shown = usize::from(self.size.1.saturating_sub(4));
                *scroll = moved(*scroll, HELP_LINES.saturating_sub(shown));
                return Vec::new();
            }
            Overlay::Palette(palette) => {
                palette.selected = moved(palette.selected, palette.matches().len().saturating_sub(1));
                return Vec::new();
            }
            Overlay::Fork(choice) => {
                choice.selected = moved(choice.selected, choice.updates.len().saturating_sub(1));
                return Vec::new();
            }
            Overlay::Samples { .. } => {
                self.scroll_samples(by);
                return Vec::new();
            }
            Overlay::Quit
            | Overlay::StartBeside
            | Overlay::Unqueue { .. }
            | Overlay::Delete { .. }
            | Overlay::Check(_) => return Vec::new(),
            Overlay::None => {}
        }
        match self.panel() {
            // The newest line is at the bottom: up goes back in time.
            Panel::Journal => {
                let most = self.run.journal.len().saturating_sub(1);
                self.journal_scroll =
                    self.journal_scroll.saturating_add_signed(by.saturating_neg()).min(most);
            }
            Panel::Tensors if self.tensors.opened.is_none() => self.tensors.step(by),
            Panel::Tensors => self.strip_cursor(by),
            Panel::Form => self.form.step(by),
            Panel::List | Panel::Curves => {
                self.runs.step(by);
                return self.missing_curves();
            }
            Panel::Compare => {
                let lines = self.runs.comparison.as_ref().map_or(0, |compared| {
                    compared.differences.len() * (compared.runs.len() + 1) + compared.verdict.len() / 24
                });
                let long = |text: &String| text.len() / 24 + 1;
                let notes: usize =
                    self.runs.shown().iter().filter_map(|row| row.note.as_ref()).map(long).sum();
                self.runs.scroll = moved(self.runs.scroll, lines + notes);
            }
            Panel::Loss | Panel::Schedule | Panel::Gradient | Panel::Speed => {
                self.replot(|plot, made| match by {
                    1 | -1 => plot.zoom(by < 0, made),
                    _ if by <= isize::MIN / 2 => plot.point(0, made),
                    _ if by >= isize::MAX / 2 => plot.point(u64::MAX, made),
                    _ => plot.scroll(by > 0, made),
                });
            }
            Panel::Memory | Panel::Plan => {}
        }
        Vec::new()
    }

    pub(super) fn sideways(&mut self, forward: bool) {
        if matches!(self.overlay, Overlay::Samples { .. }) {
            return self.next_sample(forward);
        }
        match self.screen {
            // What is shown there follows from the form.
            Screen::Setup if self.panel() == Panel::Plan => {
                self.say("{key:focus-next} goes back to the fields", false);
            }
            Screen::Setup => {
                if !self.form.cycle(forward) {
                    self.say("press {key:edit} to edit this field", false);
                }
            }
            Screen::State => self.strip_cursor(if forward { 1 } else { -1 }),
            Screen::Train => self.replot(|plot, made| plot.step(forward, made)),
            Screen::Runs => {}
        }
    }

    fn strip_cursor(&mut self, by: isize) {
        if let Some(opened) = &mut self.tensors.opened {
            let longest = opened
                .detail
                .as_ref()
                .map_or(0, |detail| detail.strips.iter().map(|strip| strip.values.len()).max().unwrap_or(0));
            opened.cursor = opened.cursor.saturating_add_signed(by).min(longest.saturating_sub(1));
        }
    }
}
