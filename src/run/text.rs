//! Figures as text, the same on every page and in every table. Sizes are 1024-based and written so.

/// `512 B`, `1.50 KiB`, `17.1 MiB`, `2.25 GiB`: three digits are enough to compare by.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (value, unit) = scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
    format!("{} {unit}", three_digits(value))
}

/// The value in the unit that it takes three digits in, each unit `base` of the one before.
fn scaled(mut value: f64, base: f64, units: &[&'static str]) -> (f64, &'static str) {
    let mut at = 0;
    // What would round to 1000 or more is a bigger unit's.
    while at + 1 < units.len() && value >= 999.5 {
        value /= base;
        at += 1;
    }
    (value, units.get(at).copied().unwrap_or_default())
}

/// Size that may be unknown.
pub fn bytes_or_dash(bytes_known: Option<u64>) -> String {
    bytes_known.map_or_else(dash, bytes)
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A whole number with its thousands apart: `115,072`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds as `0.42 s`, `12.3 s`, `4m 05s`, `2h 03m`, `3d 04h`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return dash();
    }
    if seconds < 59.95 {
        return if seconds < 9.995 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") };
    }
    let whole = seconds.round() as u64;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86400);
    match (hours, days) {
        (0, _) => format!("{minutes}m {:02}s", whole % 60),
        (_, 0) => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

/// A loss with four decimals; what is not finite by its name.
pub fn loss(value: f64) -> String {
    match crate::protocol::number::word(value) {
        Some(word) => word.to_owned(),
        None => format!("{value:.4}"),
    }
}

/// A loss that may be unknown.
pub fn loss_or_dash(value: Option<f64>) -> String {
    value.map_or_else(dash, loss)
}

/// A number of any size with four digits: `0.001234`, `1.000e-30`, `12.35`.
pub fn number(value: f64) -> String {
    if let Some(word) = crate::protocol::number::word(value) {
        return word.to_owned();
    }
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&size) {
        let before = size.log10().floor() as i32;
        format!("{value:.*}", usize::try_from(3 - before).unwrap_or(0))
    } else {
        format!("{value:.3e}")
    }
}

/// Tokens a second: `9,120`, or `3.42` when there are few.
pub fn rate(value: f64) -> String {
    match crate::protocol::number::word(value) {
        Some(word) => word.to_owned(),
        None if value.abs() < 99.95 => three_digits(value),
        None => count(value.round().max(0.0) as u64),
    }
}

/// Operations a second: `3.92 GFLOP/s`. Units are 1000-based.
pub fn flops(value: f64) -> String {
    if let Some(word) = crate::protocol::number::word(value) {
        return word.to_owned();
    }
    let (value, unit) = scaled(value, 1000.0, &["", "k", "M", "G", "T", "P", "E"]);
    format!("{} {unit}FLOP/s", three_digits(value))
}

/// A share as percent: `9.1 %`, `0.04 %`.
pub fn percent(share: f64) -> String {
    match crate::protocol::number::word(share) {
        Some(word) => word.to_owned(),
        None => format!("{} %", three_digits(100.0 * share)),
    }
}

/// Energy: `950 J`, `12.3 kJ`. Units are 1000-based.
pub fn joules(value: f64) -> String {
    let (value, unit) = scaled(value, 1000.0, &["", "k", "M", "G"]);
    format!("{} {unit}J", three_digits(value))
}

/// A shape as `[64, 192]`; `[]` is a number.
pub fn shape(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// What stands where nothing is known.
pub fn dash() -> String {
    "-".to_owned()
}

/// Whether a character does something to a terminal instead of standing on it: it controls it, or turns the direction of
/// the text behind it.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text that cannot move the cursor, break a table or turn a line round: every harmful character becomes a space.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { ' ' } else { c }).collect()
}

/// The same for several lines: they stay lines, and their columns.
pub fn plain_lines(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect()
}

/// The text as one word of a shell's line.
pub fn shell_word(text: &str) -> String {
    let text = plain(text);
    let safe = |c: char| c.is_alphanumeric() || "_-./=,:@%+".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// JSON that does nothing to a terminal and says the same: harmful characters are escaped. White space between values
/// stays as it is.
pub fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmful(c) && c != '\n' {
            // JSON has none of them outside of strings, and all of them are below U+10000.
            plain += &format!("\\u{:04x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_with_three_digits() {
        let all = [0, 1023, 1024, 1536, 1_022_976, 1_047_552, 17_930_000, 5 << 30, u64::MAX].map(bytes);
        assert_eq!(
            all,
            [
                "0 B",
                "1023 B",
                "1.00 KiB",
                "1.50 KiB",
                "999 KiB",
                "1.00 MiB",
                "17.1 MiB",
                "5.00 GiB",
                "16384 PiB"
            ]
        );
    }

    #[test]
    fn counts_durations_and_rates_are_short_and_exact_enough() {
        assert_eq!(
            [0, 999, 1000, 115_072, 65_783_042].map(count),
            ["0", "999", "1,000", "115,072", "65,783,042"]
        );
        let all = [0.0, 0.417, 12.34, 59.97, 245.0, 7380.0, 273_600.0, f64::NAN].map(duration);
        assert_eq!(all, ["0.00 s", "0.42 s", "12.3 s", "1m 00s", "4m 05s", "2h 03m", "3d 04h", "-"]);
        assert_eq!([3.42, 99.96, 9120.4, f64::INFINITY].map(rate), ["3.42", "100", "9,120", "inf"]);
    }

    #[test]
    fn speeds_shares_and_energies_have_three_digits() {
        let all = [0.0, 786_432.0, 3.92e9, 9.996e11, 4.5e14, f64::NAN].map(flops);
        let expected = ["0.00 FLOP/s", "786 kFLOP/s", "3.92 GFLOP/s", "1.00 TFLOP/s", "450 TFLOP/s", "nan"];
        assert_eq!(all, expected);
        assert_eq!([0.0912, 0.000_41, 1.2].map(percent), ["9.12 %", "0.04 %", "120 %"]);
        assert_eq!([2.5, 950.0, 12_345.0].map(joules), ["2.50 J", "950 J", "12.3 kJ"]);
    }

    #[test]
    fn numbers_of_any_size_have_four_digits() {
        let all = [0.0, 1.0, -12.345_67, 0.001_234_5, 1e-30, 123_456.0, f64::NAN].map(number);
        assert_eq!(all, ["0", "1.000", "-12.35", "0.001234", "1.000e-30", "1.235e5", "nan"]);
        assert_eq!([2.0, f64::NEG_INFINITY].map(loss), ["2.0000", "-inf"]);
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(plain("a\u{1b}[31m\nb\tc"), "a [31m b c");
        assert_eq!(plain("a\u{9b}31m\u{7}b\u{202e}c\u{2066}d\u{7f}"), "a 31m b c d ");
        assert_eq!(plain("日本 öé 👩\u{200d}🚀"), "日本 öé 👩\u{200d}🚀");
        assert_eq!(plain_lines("a\tb\n\u{1b}c\r"), "a\tb\n c ");
        let text = "x\u{1b}\u{9b}\u{202e}\u{7f}\ny";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let safe = plain_json(&json);
        assert!(!safe.chars().any(|c| is_harmful(c) && c != '\n'), "{safe}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), [text]);
    }
}
