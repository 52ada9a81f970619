//! Which panel has the focus on each screen, and which overlay lies over it.

use super::{action::Screen, check::Check, fork::Choice, palette::Palette};

/// A part of a screen that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    Loss,
    Schedule,
    Gradient,
    Speed,
    Memory,
    Journal,
    Tensors,
    Form,
    Plan,
    List,
    Curves,
    Compare,
}

impl Screen {
    /// Its panels in the order of Tab.
    pub const fn panels(self) -> &'static [Panel] {
        match self {
            Self::Train => {
                &[Panel::Loss, Panel::Schedule, Panel::Gradient, Panel::Speed, Panel::Memory, Panel::Journal]
            }
            Self::State => &[Panel::Tensors],
            Self::Setup => &[Panel::Form, Panel::Plan],
            Self::Runs => &[Panel::List, Panel::Curves, Panel::Compare],
        }
    }
}

/// The focus of each screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Focus {
    at: [usize; 4],
    /// The focused panel fills the screen.
    pub zoomed: bool,
}

impl Focus {
    /// The focused panel of that screen.
    pub fn panel(&self, screen: Screen) -> Panel {
        let panels = screen.panels();
        panels[self.at[screen as usize].min(panels.len() - 1)]
    }

    /// Moves to the next panel, or the one before.
    pub fn step(&mut self, screen: Screen, forward: bool) {
        let count = screen.panels().len();
        let at = &mut self.at[screen as usize];
        *at = if forward { *at + 1 } else { *at + count - 1 } % count;
    }

    /// Focuses that panel if the screen has it.
    pub fn set(&mut self, screen: Screen, panel: Panel) {
        if let Some(at) = screen.panels().iter().position(|known| *known == panel) {
            self.at[screen as usize] = at;
        }
    }
}

/// What lies over the screen; there is one at most.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Overlay {
    #[default]
    None,
    Help {
        scroll: usize,
    },
    Palette(Palette),
    /// A run is live: what becomes of it?
    Quit,
    /// A run is live: start another beside it?
    StartBeside,
    /// This run is to leave the queue: really?
    Unqueue {
        id: String,
        name: String,
    },
    /// Move this run to the trash?
    Delete {
        run: String,
        name: String,
    },
    /// From which checkpoint of this run?
    Fork(Choice),
    /// A check of accumulation, running or ended.
    Check(Check),
    /// The texts that the model wrote: so many before the newest, scrolled by so many lines.
    Samples {
        back: usize,
        scroll: usize,
    },
}

/// Where a key is looked up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    Global,
    Train,
    State,
    Setup,
    Runs,
    Help,
    Quit,
    StartBeside,
    Unqueue,
    Delete,
    Fork,
    Check,
    Samples,
    /// A line of text is being typed.
    Text,
    Palette,
}
