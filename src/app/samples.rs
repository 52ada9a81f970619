//! Looking through the texts that the model wrote.

use super::{State, focus::Overlay};

impl State {
    /// The newest text, over the screen; closed when it is open.
    pub(super) fn show_samples(&mut self) {
        self.overlay = match self.overlay {
            Overlay::Samples { .. } => Overlay::None,
            _ => Overlay::Samples { back: 0, scroll: 0 },
        };
    }

    /// The text before, or the one after. What was chosen stays while newer ones come.
    pub(super) fn next_sample(&mut self, later: bool) {
        let most = self.view().samples.len().saturating_sub(1);
        if let Overlay::Samples { back, scroll } = &mut self.overlay {
            *back = if later { back.saturating_sub(1) } else { (*back + 1).min(most) };
            *scroll = 0;
        }
    }

    /// Lines of the shown text, up or down; drawing stops at its end.
    pub(super) fn scroll_samples(&mut self, by: isize) {
        if let Overlay::Samples { back, scroll } = &mut self.overlay {
            let sample = self.frozen.as_deref().unwrap_or(&self.run).samples.iter().rev().nth(*back);
            // No line is shorter than a character.
            let most = sample.map_or(0, |sample| {
                sample.prompt.len() + sample.texts.iter().map(|text| text.text.len() + 3).sum::<usize>()
            });
            *scroll = scroll.saturating_add_signed(by).min(most);
        }
    }

    /// Another text was written: the one that is looked at stays.
    pub(super) fn sample_came(&mut self) {
        let (frozen, most) = (self.frozen.is_some(), self.run.samples.len().saturating_sub(1));
        if let Overlay::Samples { back, .. } = &mut self.overlay
            && *back > 0
            && !frozen
        {
            *back = (*back + 1).min(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        app::{Msg, action::Action, action::Screen, focus::Overlay, recorded},
        protocol::{Continuation, Event, TextSample},
    };

    fn wrote(update: u64) -> Msg {
        let texts = vec![Continuation { temperature: 0.0, tokens: 3, text: "a sun".into() }];
        Msg::Events(vec![Event::Sample(TextSample { update, texts, ..TextSample::default() })])
    }

    #[test]
    fn earlier_texts_are_reached_and_stay_while_newer_ones_come() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        state.run.samples.clear();
        for update in [50, 100, 150] {
            state.update(wrote(update));
        }
        let mut press = |action| {
            state.update(Msg::Action(action));
            match state.overlay {
                Overlay::Samples { back, .. } => state.run.samples.iter().rev().nth(back).map(|of| of.update),
                _ => None,
            }
        };
        assert_eq!(press(Action::Samples), Some(150));
        assert_eq!(press(Action::Left), Some(100));
        assert_eq!(press(Action::Left), Some(50));
        assert_eq!(press(Action::Left), Some(50));
        assert_eq!(press(Action::Right), Some(100));
        state.update(wrote(200));
        assert_eq!(state.overlay, Overlay::Samples { back: 2, scroll: 0 }, "still that of update 100");
        state.update(Msg::Action(Action::Down));
        assert_eq!(state.overlay, Overlay::Samples { back: 2, scroll: 1 });
        state.update(Msg::Action(Action::Back));
        assert_eq!(state.overlay, Overlay::None);
    }
}
