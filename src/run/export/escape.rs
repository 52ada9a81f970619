//! Text from a run inside XML and HTML, where none of it may become markup.

use crate::run::text;

/// The text as it may stand between tags and in quoted attributes. Characters that do something instead of being read are
/// blanks, as on a terminal.
pub fn markup(from: &str) -> String {
    lines(&text::plain(from))
}

/// The same with its line breaks.
pub fn lines(from: &str) -> String {
    let mut safe = String::with_capacity(from.len());
    for c in from.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' => safe.push('\n'),
            // XML has no way to write these.
            '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            c if text::is_harmful(c) => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup_and_everything_parses() {
        let all: String = (0..=0x2100_u32).chain(0xfff0..=0xffff).filter_map(char::from_u32).collect();
        for text in [markup(&all), lines(&all)] {
            let page = format!("<a b=\"{text}\" c='{text}'>{text}</a>");
            let parsed = roxmltree::Document::parse(&page).unwrap();
            assert_eq!(parsed.descendants().filter(roxmltree::Node::is_element).count(), 1);
        }
        assert_eq!(markup("</a><script>\n'x'&\u{1b}"), "&lt;/a&gt;&lt;script&gt; &#39;x&#39;&amp; ");
    }
}
