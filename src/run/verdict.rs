//! The verdict of a comparison as one sentence.

use super::{
    compare::{Figures, Verdict},
    text::{self, bytes, loss, rate},
};

/// The sentence: what the figures say, what they are, and what the reader must know before believing them.
pub fn sentence(verdict: &Verdict) -> String {
    match &verdict.figures[..] {
        [first, second] => pair(verdict, first, second),
        _ => several(verdict),
    }
}

/// The sentence about two runs.
fn pair(verdict: &Verdict, first: &Figures, second: &Figures) -> String {
    let mut parts = Vec::new();
    if let (Some(ratio), Some(a), Some(b)) = (verdict.memory_ratio, first.memory_bytes, second.memory_bytes) {
        parts.push(format!(
            "needs {ratio:.2}x the memory ({} against {}, {})",
            bytes(b),
            bytes(a),
            verdict.memory_source
        ));
    }
    parts.push(match (verdict.loss_difference, first.loss, second.loss) {
        (Some(difference), Some(a), Some(b)) => {
            let by = match loss(difference.abs()).as_str() {
                "0.0000" => "has the same loss to four decimals".to_owned(),
                size if difference < 0.0 => format!("is {size} lower in loss"),
                size => format!("is {size} higher in loss"),
            };
            format!("{by} ({} against {}, {})", loss(b), loss(a), verdict.loss_source)
        }
        (None, Some(a), Some(b)) => {
            format!("has a loss of {} against {} ({})", loss(b), loss(a), verdict.loss_source)
        }
        _ => format!("cannot be compared in loss ({})", verdict.loss_source),
    });
    if let (Some(ratio), Some(a), Some(b)) =
        (verdict.speed_ratio, first.tokens_per_second, second.tokens_per_second)
    {
        parts.push(format!("trains at {ratio:.2}x the speed ({} against {} tokens/s)", rate(b), rate(a)));
    }
    format!(
        "Against {}, {} {}; {}.",
        first.label,
        second.label,
        enumerate(&parts),
        verdict.caveats.join("; ")
    )
}

/// The sentence about three runs and more.
fn several(verdict: &Verdict) -> String {
    let figures = &verdict.figures;
    let least = |value: &dyn Fn(&Figures) -> Option<f64>| {
        figures
            .iter()
            .filter_map(|f| Some((value(f).filter(|value| !value.is_nan())?, f)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, figures)| figures)
    };
    let mut parts = Vec::new();
    match least(&|f| f.loss) {
        Some(best) => parts.push(format!(
            "{} has the lowest loss ({}, {})",
            best.label,
            text::loss_or_dash(best.loss),
            verdict.loss_source
        )),
        None => parts.push(format!("losses cannot be compared ({})", verdict.loss_source)),
    }
    if let Some(best) = least(&|f| f.memory_bytes.map(|bytes| bytes as f64)) {
        let memory = text::bytes_or_dash(best.memory_bytes);
        parts.push(format!("{} needs the least memory ({memory}, {})", best.label, verdict.memory_source));
    }
    if let Some(best) = least(&|f| f.tokens_per_second.map(|speed| -speed)) {
        let speed = best.tokens_per_second.map_or_else(text::dash, rate);
        parts.push(format!("{} is the fastest ({speed} tokens/s)", best.label));
    }
    format!("Of {} runs, {}; {}.", figures.len(), enumerate(&parts), verdict.caveats.join("; "))
}

/// `a`, `a and b`, `a, b and c`.
fn enumerate(parts: &[String]) -> String {
    match parts {
        [start @ .., last] if !start.is_empty() => format!("{} and {last}", start.join(", ")),
        _ => parts.concat(),
    }
}
