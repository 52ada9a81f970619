//! Colours by role. Nothing is said by colour alone: without colours bold, dim and reversed remain, and every
//! line, bar and state has its own sign.

use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier, Style},
};

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    /// None: `NO_COLOR` is set.
    None,
    /// The terminal's own sixteen.
    #[default]
    Sixteen,
    True,
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Text,
    /// Labels, axes, units.
    Dim,
    /// Values that matter.
    Strong,
    Title,
    Border,
    Focused,
    /// The selected row.
    Selected,
    Good,
    Warning,
    Bad,
    Raw,
    Smooth,
    Validation,
    Rate,
    /// Something that has not happened yet.
    Future,
    Parameters,
    Gradients,
    Accumulation,
    Optimizer,
    Activations,
    Key,
    /// One of several runs in one chart.
    Run(usize),
    /// A step of a heat strip, 0 to 8.
    Heat(u8),
}

/// The look of the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Theme {
    pub colours: Colours,
    /// Only ASCII characters.
    pub ascii: bool,
}

impl Theme {
    /// Reads off the environment what the terminal can do; `variable` looks one up.
    pub fn detect(ascii: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let colours = if set("NO_COLOR") || variable("TERM").as_deref() == Some("dumb") {
            Colours::None
        } else if variable("COLORTERM").is_some_and(|v| v.contains("truecolor") || v.contains("24bit")) {
            Colours::True
        } else {
            Colours::Sixteen
        };
        Self { colours, ascii }
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        let plain = Style::default();
        let modifier = match role {
            Role::Strong | Role::Title | Role::Focused | Role::Key | Role::Bad | Role::Warning => {
                Modifier::BOLD
            }
            Role::Dim | Role::Border | Role::Future => {
                // Dim on top of a grey cannot be read on many terminals.
                if self.colours == Colours::None { Modifier::DIM } else { Modifier::empty() }
            }
            Role::Selected => Modifier::REVERSED,
            Role::Smooth => Modifier::BOLD,
            _ => Modifier::empty(),
        };
        let style = plain.add_modifier(modifier);
        match self.colour(role) {
            Some(colour) => style.fg(colour),
            None => style,
        }
    }

    fn colour(&self, role: Role) -> Option<Color> {
        let (sixteen, (r, g, b)) = match role {
            Role::Text | Role::Strong | Role::Selected => return None,
            Role::Dim => (Color::DarkGray, (128, 132, 145)),
            Role::Border => (Color::DarkGray, (88, 92, 110)),
            Role::Title => (Color::Cyan, (122, 190, 215)),
            Role::Focused => (Color::Cyan, (86, 182, 222)),
            Role::Good => (Color::Green, (110, 185, 110)),
            Role::Warning => (Color::Yellow, (222, 165, 60)),
            Role::Bad => (Color::Red, (228, 86, 86)),
            Role::Raw => (Color::DarkGray, (96, 112, 142)),
            Role::Smooth => (Color::Cyan, (70, 175, 225)),
            Role::Validation => (Color::Yellow, (232, 170, 64)),
            Role::Rate => (Color::Magenta, (190, 130, 220)),
            Role::Future => (Color::DarkGray, (120, 100, 140)),
            Role::Parameters => (Color::Blue, (88, 140, 230)),
            Role::Gradients => (Color::Cyan, (64, 178, 178)),
            Role::Accumulation => (Color::Green, (118, 176, 92)),
            Role::Optimizer => (Color::Magenta, (205, 110, 190)),
            Role::Activations => (Color::Yellow, (214, 160, 72)),
            Role::Key => (Color::Cyan, (122, 190, 215)),
            Role::Run(at) => match at % 6 {
                0 => (Color::Cyan, (70, 175, 225)),
                1 => (Color::Yellow, (232, 170, 64)),
                2 => (Color::Magenta, (205, 120, 200)),
                3 => (Color::Green, (118, 184, 100)),
                4 => (Color::Red, (228, 100, 90)),
                _ => (Color::Blue, (110, 140, 235)),
            },
            Role::Heat(step) => {
                let sixteen = match step {
                    0 | 1 => Color::DarkGray,
                    2 | 3 => Color::Blue,
                    4 | 5 => Color::Cyan,
                    6 | 7 => Color::Yellow,
                    _ => Color::Red,
                };
                (sixteen, HEAT[usize::from(step.min(8))])
            }
        };
        match self.colours {
            Colours::None => None,
            Colours::Sixteen => Some(sixteen),
            Colours::True => Some(Color::Rgb(r, g, b)),
        }
    }

    /// Replaces drawn signs by ASCII ones where only ASCII is wanted; other text stays as it is.
    pub fn simplify(&self, buffer: &mut Buffer) {
        if !self.ascii {
            return;
        }
        for cell in &mut buffer.content {
            let plain = match cell.symbol() {
                "│" | "┆" | "┊" | "▏" | "┃" => "|",
                "─" | "╌" | "━" | "┄" => "-",
                "╭" | "╮" | "╰" | "╯" | "┌" | "┐" | "└" | "┘" | "┤" | "┬" | "┴" | "├" | "┼" => {
                    "+"
                }
                "█" | "▉" | "▓" | "■" => "#",
                "▒" => "=",
                "░" | "□" => ".",
                "●" | "◆" | "•" => "*",
                "○" | "◇" => "o",
                "▶" | "→" | "›" => ">",
                "◀" | "←" | "‹" => "<",
                "▲" | "↑" => "^",
                "▼" | "↓" => "v",
                "…" => "~",
                "·" | "×" => ".",
                "‖" => "=",
                "✓" => "+",
                "✗" => "x",
                "⊗" => "x",
                "°" => " ",
                _ => continue,
            };
            cell.set_symbol(plain);
        }
    }
}

/// From dark to bright, even steps that also work in greys.
const HEAT: [(u8, u8, u8); 9] = [
    (52, 40, 92),
    (68, 58, 130),
    (62, 82, 160),
    (48, 108, 168),
    (38, 136, 160),
    (48, 164, 136),
    (110, 190, 96),
    (190, 206, 70),
    (246, 222, 90),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_is_obeyed_and_empty_does_not_count() {
        let look = |pairs: &'static [(&str, &str)]| {
            Theme::detect(false, |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(look(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]).colours, Colours::None);
        assert_eq!(look(&[("NO_COLOR", ""), ("COLORTERM", "truecolor")]).colours, Colours::True);
        assert_eq!(look(&[("TERM", "xterm-256color")]).colours, Colours::Sixteen);
        let style = look(&[("NO_COLOR", "1")]).style(Role::Bad);
        assert!(style.fg.is_none() && style.add_modifier.contains(Modifier::BOLD));
    }
}
