//! One line of text being typed.

/// A key that belongs to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Char(char),
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    /// Empties the line.
    Clear,
}

/// A line with a cursor, counted in characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextLine {
    text: String,
    cursor: usize,
}

impl TextLine {
    /// A line with the cursor at its end.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let cursor = text.chars().count();
        Self { text, cursor }
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Characters left of the cursor.
    pub const fn cursor(&self) -> usize {
        self.cursor
    }

    /// Applies one key.
    pub fn input(&mut self, input: Input) {
        let length = self.text.chars().count();
        match input {
            Input::Char(c) if c.is_control() => {}
            Input::Char(c) => {
                self.text.insert(self.byte(self.cursor), c);
                self.cursor += 1;
            }
            Input::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.byte(self.cursor));
            }
            Input::Delete if self.cursor < length => {
                self.text.remove(self.byte(self.cursor));
            }
            Input::Backspace | Input::Delete => {}
            Input::Left => self.cursor = self.cursor.saturating_sub(1),
            Input::Right => self.cursor = (self.cursor + 1).min(length),
            Input::Home => self.cursor = 0,
            Input::End => self.cursor = length,
            Input::Clear => *self = Self::default(),
        }
    }

    fn byte(&self, character: usize) -> usize {
        self.text.char_indices().nth(character).map_or(self.text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_in_and_out_at_the_cursor() {
        let mut line = TextLine::new("1e-3");
        for input in [Input::Left, Input::Backspace, Input::Char('+'), Input::End, Input::Char('ü')] {
            line.input(input);
        }
        assert_eq!(line.text(), "1e+3ü");
        [Input::Backspace, Input::Home, Input::Delete].into_iter().for_each(|input| line.input(input));
        assert_eq!((line.text(), line.cursor()), ("e+3", 0));
        line.input(Input::Clear);
        line.input(Input::Backspace);
        assert_eq!(line.text(), "");
    }
}
