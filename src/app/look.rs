//! How the screens look: the names that a person may ask for. What they stand for is the business of drawing.

use std::str::FromStr;

/// The one of that name; else which names there are.
fn by_name<T: Copy>(all: &[T], as_str: fn(T) -> &'static str, what: &str, text: &str) -> Result<T, String> {
    all.iter().copied().find(|one| as_str(*one) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| as_str(*one)).collect();
        format!("no {what} `{text}`: there are {}", names.join(", "))
    })
}

/// A set of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThemeName {
    #[default]
    Dark,
    Light,
    HighContrast,
    ColourBlind,
    Monochrome,
}

impl ThemeName {
    /// Every theme, in the order of the key that steps through them.
    pub const ALL: [Self; 5] =
        [Self::Dark, Self::Light, Self::HighContrast, Self::ColourBlind, Self::Monochrome];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::HighContrast => "high-contrast",
            Self::ColourBlind => "colour-blind",
            Self::Monochrome => "monochrome",
        }
    }

    /// The next one, round and round.
    pub const fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }
}

impl FromStr for ThemeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(&Self::ALL, Self::as_str, "theme", text)
    }
}

/// The signs that the screens are drawn with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Signs {
    /// Everything, curves in braille.
    #[default]
    Braille,
    /// Lines and blocks that every font of a console has.
    Blocks,
    Ascii,
}

impl Signs {
    /// Every set of signs, the richest first.
    pub const ALL: [Self; 3] = [Self::Braille, Self::Blocks, Self::Ascii];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Braille => "braille",
            Self::Blocks => "blocks",
            Self::Ascii => "ascii",
        }
    }
}

impl FromStr for Signs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(&Self::ALL, Self::as_str, "signs", text)
    }
}

/// How somebody who looks elsewhere is told that a run has ended, failed or warned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Call {
    /// Not at all.
    #[default]
    None,
    /// The terminal's bell.
    Bell,
    /// A notice on the desktop, by the terminal's OSC 9.
    Osc9,
}

impl Call {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::None, Self::Bell, Self::Osc9];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bell => "bell",
            Self::Osc9 => "osc9",
        }
    }
}

impl FromStr for Call {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(&Self::ALL, Self::as_str, "notice", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_a_wrong_one_is_told_the_right_ones() {
        for name in ThemeName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        for signs in Signs::ALL {
            assert_eq!(signs.as_str().parse(), Ok(signs));
        }
        for call in Call::ALL {
            assert_eq!(call.as_str().parse(), Ok(call));
        }
        assert!("beep".parse::<Call>().unwrap_err().contains("bell"));
        assert!("blue".parse::<ThemeName>().unwrap_err().contains("light"));
        let mut seen = vec![ThemeName::Dark];
        while seen.last().map(|name| name.next()) != Some(ThemeName::Dark) {
            seen.push(seen[seen.len() - 1].next());
        }
        assert_eq!(seen, ThemeName::ALL);
    }
}
