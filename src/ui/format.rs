//! Every number on a screen as text.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A number in three or four significant digits: `2.341`, `0.03120`, `1.20e-5`; words for what is no number.
pub fn number(value: f64) -> String {
    if let Some(word) = crate::protocol::number::word(value) {
        return word.to_owned();
    }
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (1e-2..1e5).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        format!("{value:.digits$}")
    } else {
        format!("{value:.2e}")
    }
}

/// A loss: four decimals below 100.
pub fn loss(value: f64) -> String {
    if value.is_finite() && value.abs() < 100.0 { format!("{value:.4}") } else { number(value) }
}

/// A learning rate and its like: `3e-3`, `1.25e-4`, `0`.
pub fn rate(value: f64) -> String {
    if let Some(word) = crate::protocol::number::word(value) {
        return word.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.2e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    format!("{mantissa}e{exponent}")
}

/// A count with separators: `1,384,448`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count in few characters: `512`, `12.3K`, `4.5M`.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return number(value);
    }
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e12 => (value / 1e12, "T"),
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "K"),
        _ => (value, ""),
    };
    if unit.is_empty() {
        return format!("{scaled:.0}");
    }
    let text = format!("{scaled:.1}");
    format!("{}{unit}", text.trim_end_matches(".0"))
}

/// Bytes in units of 1024: `0 B`, `14.8 KiB`, `1.32 GiB`.
pub fn bytes(value: u64) -> String {
    let mut scaled = value as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled < 1023.95 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    match unit {
        "B" => format!("{value} B"),
        _ if scaled < 9.995 => format!("{scaled:.2} {unit}"),
        _ if scaled < 99.95 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.0} {unit}"),
    }
}

/// Seconds as `0:48`, `12:05`, `1:02:03`, `3d 04:05`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "-".to_owned();
    }
    let whole = seconds.round() as u64;
    let (days, hours, minutes, seconds) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}d {hours:02}:{minutes:02}"),
    }
}

/// A share in percent without decimals.
pub fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 && part.is_finite() { format!("{:.0}%", 100.0 * part / whole) } else { "-".to_owned() }
}

/// A number near one in two decimals, others as [`number`].
pub fn figure(value: f64) -> String {
    if (0.1..100.0).contains(&value.abs()) { format!("{value:.2}") } else { number(value) }
}

/// A share in percent: `84.2%`, of less than one percent with two significant digits.
pub fn share(value: f64) -> String {
    if !value.is_finite() {
        return number(value);
    }
    let percent = 100.0 * value;
    match percent.abs() {
        size if size >= 0.995 || size == 0.0 => format!("{percent:.1}%"),
        size if size >= 0.001 => format!("{percent:.*}%", (1 - size.log10().floor() as i32).max(0) as usize),
        _ => format!("{}%", rate(percent)),
    }
}

/// A shape: `64x192`; a number has none.
pub fn shape(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "number".to_owned();
    }
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// The label of a tick, with the decimals that its distance to the next one asks for.
pub fn tick(value: f64, step: f64) -> String {
    let size = value.abs().max(step.abs());
    if size >= 1e5 || (size < 1e-2 && size > 0.0) {
        return rate(if value.abs() < step.abs() * 1e-9 { 0.0 } else { value });
    }
    let digits = (-step.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.digits$}")
}

/// A setting as the form shows it: very small and very large numbers with an exponent, alone or in a pair.
pub fn setting(text: &str) -> String {
    if let Some(pair) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let parts: Vec<String> = pair.split(',').map(|part| setting(part.trim())).collect();
        return format!("[{}]", parts.join(", "));
    }
    match text.parse::<f64>() {
        Ok(value) if value != 0.0 && text.contains('.') && !(1e-3..1e7).contains(&value.abs()) => {
            // The shortest form that reads back as the same number.
            format!("{value:e}")
        }
        _ => text.to_owned(),
    }
}

/// The start of a text that takes at most `width` columns.
fn start(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, sign) in text.char_indices() {
        used += sign.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// The end of a text that takes at most `width` columns.
fn end(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, sign) in text.char_indices().rev() {
        used += sign.width().unwrap_or(0);
        if used > width {
            return &text[at + sign.len_utf8()..];
        }
    }
    text
}

/// A text in at most `width` columns; its end is kept and its middle left out.
pub fn elide(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    if width <= 1 {
        return start(text, width).to_owned();
    }
    let tail = (width - 1) * 2 / 3;
    let head = width - 1 - tail;
    format!("{}…{}", start(text, head), end(text, tail))
}

/// The first of these texts that has room in `width` columns; the last one when none has.
pub fn first_fitting<T: AsRef<str>>(texts: &[T], width: usize) -> &str {
    let fits = texts.iter().find(|text| text.as_ref().width() <= width);
    fits.or(texts.last()).map_or("", AsRef::as_ref)
}

/// A text in at most `width` columns, cut at its end.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mark = if width > 0 { "…" } else { "" };
    format!("{}{mark}", start(text, width.saturating_sub(1)))
}

/// A text in exactly `width` columns, however wide its signs are: cut in its middle or filled with blanks.
pub fn fill(text: &str, width: usize) -> String {
    let mut text = elide(text, width);
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(text.width())));
    text
}

/// A text in lines of at most `width` columns, broken at spaces where there are any.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for mut word in text.split_whitespace() {
        let used = line.width();
        if used > 0 && used + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        while word.width() > width {
            let first = word.chars().next().map_or(1, char::len_utf8);
            // A sign that is wider than the line stands alone in one.
            let taken = start(word, width).len().max(first);
            lines.push(word[..taken].to_owned());
            word = &word[taken..];
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A parameter's name without what every name shares.
pub fn tensor_name(name: &str) -> &str {
    let common = ["model.", "distilbert.transformer.", "distilbert.", "transformer."];
    let name = common.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    name.strip_suffix(".weight").unwrap_or(name)
}

/// A parameter's name in at most `width` columns. What tells one from another is the number of its layer and its end:
/// what stands before the number goes first, then the middle.
pub fn elide_name(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    let mut before = 0;
    for segment in name.split('.') {
        let rest = name.get(before + segment.len() + 1..).unwrap_or_default();
        if before > 0 && !rest.is_empty() && segment.parse::<u32>().is_ok() {
            let number = format!("…{segment}.");
            let (room, length) = (width.saturating_sub(number.chars().count()), rest.chars().count());
            if length <= room {
                return number + rest;
            }
            if room > 1 {
                let end: String = rest.chars().skip(length + 1 - room).collect();
                return format!("{number}…{end}");
            }
            break;
        }
        before += segment.len() + 1;
    }
    elide(name, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_wide_signs_takes_the_columns_that_it_is_given() {
        for name in ["demo", "", "日本語の実験", "e\u{301}a\u{308}", "ｗｉｄｅ", "👩‍👩‍👧‍👦 family"]
        {
            for width in [0, 1, 2, 5, 14, 32] {
                assert_eq!(fill(name, width).width(), width, "{name} in {width}");
            }
        }
        assert_eq!(fill("日本語", 5), "日…語");
    }

    #[test]
    fn numbers_are_short_and_say_what_they_are() {
        let table = [
            (number(2.341_234), "2.341"),
            (number(0.031_2), "0.03120"),
            (number(1.2e-5), "1.20e-5"),
            (number(f64::NAN), "nan"),
            (number(f64::NEG_INFINITY), "-inf"),
            (loss(2.3), "2.3000"),
            (rate(3e-3), "3e-3"),
            (rate(1.25e-4), "1.25e-4"),
            (rate(0.1), "1e-1"),
            (count(1_384_448), "1,384,448"),
            (count(12), "12"),
            (short(12_345.0), "12.3K"),
            (short(9_912.0), "9912"),
            (short(307_200.0), "307.2K"),
            (bytes(0), "0 B"),
            (bytes(918_096), "897 KiB"),
            (bytes(15_204), "14.8 KiB"),
            (bytes(1 << 30), "1.00 GiB"),
            (bytes(1_048_575), "1.00 MiB"),
            (duration(48.2), "0:48"),
            (duration(3723.0), "1:02:03"),
            (duration(f64::NAN), "-"),
            (percent(1.0, 3.0), "33%"),
            (figure(0.314), "0.31"),
            (figure(0.0312), "0.03120"),
            (share(0.842), "84.2%"),
            (share(1.0), "100.0%"),
            (share(0.004), "0.40%"),
            (share(1e-7), "1e-5%"),
            (shape(&[64, 192]), "64x192"),
            (tick(0.25, 0.05), "0.25"),
            (tick(300.0, 100.0), "300"),
            (tick(0.0, 1e-3), "0"),
        ];
        for (ours, expected) in table {
            assert_eq!(ours, expected);
        }
    }

    #[test]
    fn settings_keep_their_value() {
        for (text, expected) in [
            ("0.00000001", "1e-8"),
            ("[0.000000000000000000000000000001, 0.001]", "[1e-30, 0.001]"),
            ("0.003", "0.003"),
            ("0.0", "0.0"),
            ("stories", "stories"),
            ("123456789", "123456789"),
            ("0.00000123456", "1.23456e-6"),
            ("[0.9, 0.999]", "[0.9, 0.999]"),
        ] {
            assert_eq!(setting(text), expected);
        }
    }

    #[test]
    fn texts_are_cut_to_their_width() {
        assert_eq!(elide("layers.0.self_attn.q_proj", 12), "laye…_q_proj".replace("_q", ".q"));
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        // Some signs take two columns, some none.
        assert_eq!(elide("日本語の実験ラン", 9), "日…ラン");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(wrap("日本語の実験", 5), ["日本", "語の", "実験"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
        for width in 0..20 {
            for text in ["日本語の実験・長い名前", "e\u{301}a\u{308}o", "👩\u{200d}👧 family", "naïve"]
            {
                assert!(elide(text, width).width() <= width && cut(text, width).width() <= width, "{text}");
            }
            assert!(elide("a text to be cut", width).chars().count() <= width);
            assert!(elide_name("layer.10.output_layer_norm.bias", width).chars().count() <= width);
        }
    }

    #[test]
    fn the_name_of_every_parameter_is_told_from_the_others_in_little_room() {
        for preset in ["llama-nano", "distilbert-nano"] {
            let setting = format!("model.preset={preset}");
            let config = crate::app::recorded::config(&[&setting, "model.num_hidden_layers=12"]);
            let parameters = crate::ledger::parameters(&config.model);
            let shown: std::collections::BTreeSet<String> =
                parameters.iter().map(|parameter| elide_name(tensor_name(&parameter.name), 24)).collect();
            assert_eq!(shown.len(), parameters.len(), "{preset}: {shown:?}");
        }
        let name = "distilbert.transformer.layer.10.attention.k_lin.bias";
        assert_eq!(tensor_name(name), "layer.10.attention.k_lin.bias");
        assert_eq!(elide_name(tensor_name(name), 29), "layer.10.attention.k_lin.bias");
        assert_eq!(elide_name(tensor_name(name), 24), "…10.attention.k_lin.bias");
        assert_eq!(elide_name(tensor_name(name), 20), "…10.…tion.k_lin.bias");
        assert_eq!(elide_name("embeddings.word", 10), elide("embeddings.word", 10), "no layer, no number");
    }
}
