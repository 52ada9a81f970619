//! What is said to the terminal besides what is drawn: its clipboard, its bell, a notice on the desktop, its title.
//!
//! Inside tmux and screen such a sequence is eaten unless it is wrapped so that it is passed on.

use std::fmt::Write as _;

use crate::{
    app::{State, look::Call},
    run::text::plain,
};

/// Most bytes of a text that is copied: what terminals take.
pub const MOST: usize = 48 * 1024;
/// Bytes that screen passes on at once.
const PIECE: usize = 240;

/// What stands between the program and the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Between {
    #[default]
    Nothing,
    Tmux,
    Screen,
}

impl Between {
    /// Reads off the environment what there is; `variable` looks one up.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let terminal = variable("TERM").unwrap_or_default();
        // Inside tmux inside screen the inner one is what hears it first.
        if set("TMUX") || terminal.starts_with("tmux") {
            Self::Tmux
        } else if set("STY") || terminal.starts_with("screen") {
            Self::Screen
        } else {
            Self::Nothing
        }
    }

    /// The sequence so that it reaches the terminal.
    fn pass(self, sequence: &str) -> String {
        match self {
            Self::Nothing => sequence.to_owned(),
            Self::Tmux => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")),
            Self::Screen => {
                let mut passed = String::new();
                // All of it is ASCII.
                for piece in sequence.as_bytes().chunks(PIECE) {
                    let _ = write!(passed, "\x1bP{}\x1b\\", String::from_utf8_lossy(piece));
                }
                passed
            }
        }
    }

    /// What gives a text to the terminal's clipboard; nothing when it is too long for one.
    pub fn copy(self, text: &str) -> Option<String> {
        if text.len() > MOST {
            return None;
        }
        let sequence = format!("\x1b]52;c;{}\x07", base64(text.as_bytes()));
        let passed = self.pass(&sequence);
        // tmux takes it itself, too, where it is set to: then it is in its own buffer, and in the terminal's clipboard.
        Some(if self == Self::Tmux { sequence + &passed } else { passed })
    }

    /// What calls somebody who looks elsewhere.
    pub fn call(self, call: Call, text: &str) -> Option<String> {
        match call {
            Call::None => None,
            Call::Bell => Some("\x07".to_owned()),
            // The name in front keeps the text from being taken for something else that OSC 9 can say.
            Call::Osc9 => Some(self.pass(&format!("\x1b]9;tui-train: {}\x07", ascii(text)))),
        }
    }
}

/// What is said to the terminal of one session.
#[derive(Debug)]
pub struct Outside {
    between: Between,
    call: Call,
    /// The window's title; nothing when it is not to have one of ours.
    titled: Option<String>,
    /// What is still to be said.
    waiting: Vec<String>,
}

impl Outside {
    /// As it was asked for, through what the environment tells of.
    pub fn new(call: Call, title: bool) -> Self {
        let between = Between::detect(|name| std::env::var(name).ok());
        Self { between, call, titled: title.then(String::new), waiting: Vec::new() }
    }

    /// Gives a text to the terminal's clipboard. Returns what to tell of it, and whether it is an error.
    pub fn copy(&mut self, what: &str, text: &str) -> (String, bool) {
        let Some(sequence) = self.between.copy(text) else {
            return (format!("{what} is longer than the {MOST} bytes that terminals take: not copied"), true);
        };
        self.waiting.push(sequence);
        let way = match self.between {
            Between::Nothing => "",
            Between::Tmux => " (tmux passes it on with set-clipboard on)",
            Between::Screen => " (through screen)",
        };
        (format!("copied {what}: {text}{way}"), false)
    }

    /// Calls somebody who looks elsewhere, if that was asked for.
    pub fn call(&mut self, text: &str) {
        self.waiting.extend(self.between.call(self.call, text));
    }

    /// Somebody else had the terminal, and may have given the window another title.
    pub fn forget(&mut self) {
        self.titled = self.titled.take().map(|_| String::new());
    }

    /// What is to be said now, with the title that tells what is watched and how it stands when that has changed.
    pub fn take(&mut self, state: &State) -> Vec<String> {
        if let Some(titled) = &mut self.titled {
            let now = match (&state.watching, state.status()) {
                (Some(run), Some(status)) => {
                    format!("{}: {} - tui-train", run.name, status.as_str().replace('_', " "))
                }
                _ => "tui-train".to_owned(),
            };
            if *titled != now {
                self.waiting.push(title(&now));
                *titled = now;
            }
        }
        std::mem::take(&mut self.waiting)
    }
}

/// What gives the window a title.
fn title(text: &str) -> String {
    format!("\x1b]2;{}\x07", plain(text))
}

/// What keeps the title that the window had, and what gives it back.
pub const KEEP_TITLE: &str = "\x1b[22;2t";
/// See [`KEEP_TITLE`].
pub const OLD_TITLE: &str = "\x1b[23;2t";

/// A text that is passed on in pieces must not have a sign torn in two.
fn ascii(text: &str) -> String {
    plain(text).chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            if at > three.len() {
                text.push('=');
            } else {
                text.push(char::from(SIGNS[(bits >> (18 - 6 * at) & 63) as usize]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_its_standard() {
        for (text, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }

    #[test]
    fn what_stands_between_is_read_off_the_environment() {
        let between = |pairs: &'static [(&str, &str)]| {
            Between::detect(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(between(&[("TERM", "xterm-256color")]), Between::Nothing);
        assert_eq!(
            between(&[("TERM", "screen-256color"), ("TMUX", "/tmp/tmux-0/default,1,0")]),
            Between::Tmux
        );
        assert_eq!(between(&[("TERM", "tmux-256color")]), Between::Tmux);
        assert_eq!(between(&[("TERM", "screen"), ("STY", "1.tty")]), Between::Screen);
    }

    #[test]
    fn a_copy_reaches_the_terminal_through_tmux_and_screen() {
        let plain = "\x1b]52;c;Mi41\x07";
        assert_eq!(Between::Nothing.copy("2.5").unwrap(), plain);
        let tmux = Between::Tmux.copy("2.5").unwrap();
        assert_eq!(tmux, format!("{plain}\x1bPtmux;\x1b{plain}\x1b\\"));
        let long = "x".repeat(1000);
        let screen = Between::Screen.copy(&long).unwrap();
        let pieces: String =
            screen.split("\x1b\\").map(|piece| piece.strip_prefix("\x1bP").unwrap_or(piece)).collect();
        assert_eq!(pieces, Between::Nothing.copy(&long).unwrap());
        assert!(screen.split("\x1b\\").all(|piece| piece.len() <= PIECE + 2));
        assert!(Between::Nothing.copy(&"x".repeat(MOST)).is_some());
        assert_eq!(Between::Nothing.copy(&"x".repeat(MOST + 1)), None);
    }

    #[test]
    fn a_call_cannot_carry_a_sequence_of_its_own() {
        assert_eq!(Between::Nothing.call(Call::None, "done"), None);
        assert_eq!(Between::Tmux.call(Call::Bell, "done").unwrap(), "\x07");
        let told = Between::Nothing.call(Call::Osc9, "a\x1b]0;b\x07日").unwrap();
        assert_eq!(told, "\x1b]9;tui-train: a ]0;b ?\x07");
        assert_eq!(title("a\x07b"), "\x1b]2;a b\x07");
    }
}
