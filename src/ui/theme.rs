//! Colours by role. Nothing is said by colour alone: without colours bold, dim and reversed remain, and every
//! line, bar and state has its own sign.

use ratatui::{
    buffer::Buffer,
    style::{Color, Modifier, Style},
};

use super::{colours, keys::Keys};
use crate::app::look::{Signs, ThemeName};

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
    /// Blocks instead of braille, and no sign that a console's font lacks.
    pub blocks: bool,
    pub name: ThemeName,
    /// The keys that the screens tell of.
    pub keys: Keys,
}

impl Theme {
    /// Reads off the environment what the terminal can do; `variable` looks one up. `ascii` asks for ASCII whatever it says.
    pub fn detect(ascii: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let colours = if set("NO_COLOR") || variable("TERM").as_deref() == Some("dumb") {
            Colours::None
        } else if variable("COLORTERM").is_some_and(|v| v.contains("truecolor") || v.contains("24bit")) {
            Colours::True
        } else {
            Colours::Sixteen
        };
        Self { colours, ..Self::default() }.drawn_with(if ascii { Signs::Ascii } else { signs(variable) })
    }

    /// The same with that set of signs.
    pub fn drawn_with(self, signs: Signs) -> Self {
        Self { ascii: signs == Signs::Ascii, blocks: signs == Signs::Blocks, ..self }
    }

    /// The same terminal with the colours of that name.
    pub fn named(self, name: ThemeName) -> Self {
        let colours = if name == ThemeName::Monochrome { Colours::None } else { self.colours };
        Self { name, colours, ..self }
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
        if self.colours == Colours::None {
            return None;
        }
        let ink = colours::palette(self.name).ink(role)?;
        let (r, g, b) = ink.exact;
        Some(if self.colours == Colours::True { Color::Rgb(r, g, b) } else { ink.sixteen })
    }

    /// Replaces drawn signs by plainer ones where those are wanted; other text stays as it is.
    pub fn simplify(&self, buffer: &mut Buffer) {
        if self.blocks {
            return in_blocks(buffer);
        }
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
                "█" | "▉" | "▓" | "■" | "▀" | "▄" => "#",
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
                "\u{fffd}" => "?",
                _ => continue,
            };
            cell.set_symbol(plain);
        }
    }
}

/// The signs that the environment asks for: a variable of ours, else what the locale and the terminal can show.
fn signs(variable: impl Fn(&str) -> Option<String>) -> Signs {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(signs) = variable(SIGNS).and_then(|name| name.parse().ok()) {
        return signs;
    }
    // The first of these that is set decides, as in every program.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let utf8 = |locale: &str| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    let terminal = variable("TERM").unwrap_or_default();
    if locale.is_some_and(|locale| !utf8(&locale)) || terminal.starts_with("vt") || terminal == "dumb" {
        Signs::Ascii
    } else if terminal.starts_with("linux") {
        Signs::Blocks
    } else {
        Signs::Braille
    }
}

/// Whether the environment tells of a light background, as `COLORFGBG` does in some terminals: the number behind its last
/// semicolon is the background's colour of sixteen.
pub fn is_light(variable: impl Fn(&str) -> Option<String>) -> bool {
    let background =
        variable("COLORFGBG").and_then(|pair| pair.rsplit(';').next()?.trim().parse::<u8>().ok());
    matches!(background, Some(7 | 15))
}

/// The variable that names the signs to draw with.
pub const SIGNS: &str = "TUI_TRAIN_SIGNS";
/// The variable that names the theme.
pub const THEME: &str = "TUI_TRAIN_THEME";

/// Dots in the upper half of a braille sign; the others are in the lower.
const UPPER: u32 = 0x01 | 0x08 | 0x02 | 0x10;

fn in_blocks(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let sign = cell.symbol().chars().next().unwrap_or(' ');
        let plain = match sign {
            '\u{2800}'..='\u{28ff}' => {
                let dots = sign as u32 - 0x2800;
                match (dots & UPPER != 0, dots & !UPPER != 0) {
                    (true, true) => "█",
                    (true, false) => "▀",
                    (false, true) => "▄",
                    (false, false) => " ",
                }
            }
            '┊' | '┆' | '▏' | '┃' => "│",
            '━' | '╌' | '┄' => "─",
            '╭' | '┏' => "┌",
            '╮' | '┓' => "┐",
            '╰' | '┗' => "└",
            '╯' | '┛' => "┘",
            '▉' => "█",
            '●' | '◆' => "■",
            '○' | '◇' => "o",
            '▶' | '›' => ">",
            '◀' | '‹' => "<",
            '▲' => "^",
            '▼' => "v",
            '…' => "~",
            '‖' => "=",
            '✓' => "+",
            '✗' | '⊗' => "x",
            _ => continue,
        };
        cell.set_symbol(plain);
    }
}

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

    #[test]
    fn a_light_background_is_told_by_the_terminal() {
        let light = |pair: &'static str| is_light(|name| (name == "COLORFGBG").then(|| pair.to_owned()));
        assert!(light("0;15") && light("0;default;7"));
        assert!(!light("15;0") && !light("") && !light("15;default") && !is_light(|_| None));
    }

    #[test]
    fn the_signs_follow_the_locale_the_terminal_and_above_all_the_variable() {
        let look = |pairs: &'static [(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            let theme = Theme::detect(false, find);
            (theme.ascii, theme.blocks)
        };
        let (ascii, blocks, braille) = ((true, false), (false, true), (false, false));
        assert_eq!(look(&[("TERM", "xterm")]), braille);
        assert_eq!(look(&[("LANG", "en_GB.UTF-8"), ("TERM", "tmux-256color")]), braille);
        assert_eq!(look(&[("LANG", "de_DE.utf8"), ("LC_ALL", "POSIX")]), ascii);
        assert_eq!(look(&[("LANG", "de_DE.ISO-8859-1")]), ascii);
        assert_eq!(look(&[("LANG", "C.UTF-8"), ("TERM", "linux")]), blocks);
        assert_eq!(look(&[("TERM", "vt100")]), ascii);
        assert_eq!(look(&[("LANG", "C"), (SIGNS, "blocks")]), blocks);
        assert!(Theme::detect(true, |_| None).ascii);
    }

    #[test]
    fn a_theme_takes_the_colours_that_are_offered() {
        let full = Theme { colours: Colours::True, ..Theme::default() };
        for name in ThemeName::ALL {
            let colour = full.named(name).style(Role::Bad).fg;
            assert_eq!(colour.is_none(), name == ThemeName::Monochrome, "{}", name.as_str());
            assert!(Theme { colours: Colours::None, ..full }.named(name).style(Role::Bad).fg.is_none());
            let sixteen = Theme::default().named(name).style(Role::Bad).fg;
            assert!(!matches!(sixteen, Some(Color::Rgb(..) | Color::Indexed(_))), "{}", name.as_str());
        }
        assert_eq!(full.named(ThemeName::Monochrome).named(ThemeName::Dark).colours, Colours::None);
    }
}
