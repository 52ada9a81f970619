//! The texts that a language model wrote and those that people did, on pages and for TensorBoard.

use std::fmt::Write as _;

use super::escape;
use crate::{
    protocol::TextSample,
    run::text::{count, plain_lines},
};

/// The section of a page in Markdown.
pub fn markdown(sample: &TextSample) -> String {
    let mut page = format!(
        "The held-out text begins:\n\n{}\nAfter update {} the model goes on:\n",
        fenced(&sample.prompt),
        count(sample.update)
    );
    for text in &sample.texts {
        let _ = write!(page, "\n{}, {} tokens:\n\n{}", text.manner(), count(text.tokens), fenced(&text.text));
    }
    page
}

/// What a run is called and what somebody wrote down about it, as a page in Markdown.
pub fn label(id: &str, name: &str, note: Option<&str>) -> String {
    let mut page = format!("Run:\n\n{}\nCalled:\n\n{}", fenced(id), fenced(name));
    if let Some(note) = note {
        let _ = write!(page, "\nNote:\n\n{}", fenced(note));
    }
    page
}

/// Plain lines for a terminal.
pub fn lines(sample: &TextSample) -> String {
    let mut page = format!(
        "text after update {}, which goes on with the beginning of the held-out text:\n  | {}\n",
        count(sample.update),
        plain_lines(&sample.prompt).replace('\n', "\n  | ")
    );
    for text in &sample.texts {
        let written = plain_lines(&text.text).replace('\n', "\n  > ");
        let _ = writeln!(page, "{}:\n  > {written}", text.manner());
    }
    page
}

/// The section of a page for a browser: the newest first.
pub fn html<'a>(samples: impl Iterator<Item = &'a TextSample>) -> String {
    let mut page = String::new();
    for (at, sample) in samples.enumerate() {
        if at == 0 {
            let prompt = escape::lines(&sample.prompt);
            let _ = writeln!(page, "<p class=\"faint\">The held-out text begins:</p>\n<pre>{prompt}</pre>");
        }
        let open = if at == 0 { " open=\"open\"" } else { "" };
        let update = count(sample.update);
        let _ = writeln!(page, "<details{open}><summary>After update {update} the model goes on</summary>");
        for text in &sample.texts {
            let (manner, tokens) = (text.manner(), count(text.tokens));
            let written = escape::lines(&text.text);
            let _ = writeln!(page, "<p class=\"faint\">{manner}, {tokens} tokens</p>\n<pre>{written}</pre>");
        }
        page += "</details>\n";
    }
    page
}

/// A block of code that nothing in the text can end.
fn fenced(text: &str) -> String {
    let text = plain_lines(text);
    let mut longest = 2;
    let mut ticks = 0;
    for sign in text.chars() {
        ticks = if sign == '`' { ticks + 1 } else { 0 };
        longest = longest.max(ticks);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}text\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Continuation;

    fn hostile() -> TextSample {
        let text = "a\n````\n# b\u{1b}[31m</pre><script>".to_owned();
        TextSample {
            update: 1200,
            prompt: "The sun".into(),
            texts: vec![
                Continuation { temperature: 0.0, tokens: 9, text: text.clone() },
                Continuation { temperature: 0.8, tokens: 9, text },
            ],
            ..TextSample::default()
        }
    }

    #[test]
    fn a_text_cannot_leave_its_block() {
        let page = markdown(&hostile());
        let fences: Vec<_> = page.lines().filter(|line| line.starts_with("`````")).collect();
        assert_eq!(fences, ["`````text", "`````", "`````text", "`````"]);
        assert!(page.contains("update 1,200") && page.contains("temperature 0.8, 9 tokens"), "{page}");
        assert!(!page.contains('\u{1b}'));
        let shown = lines(&hostile());
        assert!(shown.contains("greedy:\n  > a\n  > ````\n  > # b [31m"), "{shown}");
        let page = html([&hostile()].into_iter());
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
        assert_eq!(page.matches("</pre>").count(), 3);
    }
}
