//! One parameter in two runs: second moments averaged the same way, on one scale, and what else both keep.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    app::{State, tensors::Opened},
    protocol::{StateDetail, Strip},
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{heat_cell, heat_steps, paragraph, span, write},
    },
};

/// Two strips of the same thing.
struct Pair<'a> {
    what: String,
    ours: &'a Strip,
    theirs: &'a Strip,
}

/// Draws what both runs keep of the parameter.
pub fn draw(
    state: &State,
    opened: &Opened,
    detail: &StateDetail,
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let say = |text: &str, role: Role, buffer: &mut Buffer| {
        paragraph(area, 0, text, role, buffer, theme);
    };
    let Some(beside) = &state.tensors.beside else {
        let text = "no run to hold it against: b takes a marked one or the next, :beside-run RUN any";
        return say(text, Role::Dim, buffer);
    };
    let other = match &beside.detail {
        None => return say(&format!("reading the last checkpoint of {}", beside.name), Role::Dim, buffer),
        Some(Err(problem)) => return say(problem, Role::Bad, buffer),
        Some(Ok(other)) => other,
    };
    let ours = state.watching.as_ref().map_or("this run", |run| &run.name);
    let names = [(ours, detail), (beside.name.as_str(), &**other)];
    for (row, (letter, (name, detail))) in (0..).zip(["A", "B"].into_iter().zip(names)) {
        let name = format!("{letter} {}", format::elide(name, 30));
        let (update, bytes) = (format::count(detail.update), format::count(detail.tensor.bytes()));
        let texts = [
            format!("  {} after update {update}, {bytes} bytes of state", kept(detail)),
            format!("  at {update}, {bytes} bytes of state"),
            format!("  at {update}"),
        ];
        let room = usize::from(area.width).saturating_sub(name.width());
        let text = format::first_fitting(&texts, room).to_owned();
        let line = vec![span(name, Role::Run(row), theme), span(text, Role::Dim, theme)];
        write(area, row as u16, &Line::from(line), buffer);
    }
    // Where every line counts the strips begin at once, and what is said of them is on a larger screen.
    let roomy = area.height > 7;
    let mut row = if roomy { 3 } else { 2 };
    if detail.tensor.shape != other.tensor.shape {
        let text = format!(
            "the shapes differ: {} and {}",
            format::shape(&detail.tensor.shape),
            format::shape(&other.tensor.shape)
        );
        paragraph(area, row, &text, Role::Warning, buffer, theme);
        return;
    }
    let pairs = pairs(detail, other);
    if pairs.is_empty() {
        let text = "the two optimizers keep nothing of it that means the same";
        paragraph(area, row, text, Role::Dim, buffer, theme);
        return;
    }
    for pair in &pairs {
        if row >= area.height {
            return;
        }
        row = draw_pair(pair, opened.cursor, roomy, theme, area, row, buffer) + u16::from(roomy);
    }
}

/// The state tensors by name.
fn kept(detail: &StateDetail) -> String {
    let names: Vec<&str> = detail
        .tensor
        .state
        .iter()
        .filter(|(_, s)| !s.shape.is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    if names.is_empty() { "no state".to_owned() } else { names.join(", ") }
}

/// What means the same in both: the second moment by row, by column and by element, then tensors of the same name.
fn pairs<'a>(ours: &'a StateDetail, theirs: &'a StateDetail) -> Vec<Pair<'a>> {
    let mut all: Vec<Pair<'a>> = ["row", "column", "element"]
        .into_iter()
        .filter_map(|axis| {
            let (ours, theirs) = (second_moment(ours, axis)?, second_moment(theirs, axis)?);
            let source = if ours.name == theirs.name {
                ours.name.clone()
            } else {
                format!("{} and {}", ours.name, theirs.name)
            };
            Some(Pair { what: format!("second moment by {axis} ({source})"), ours, theirs })
        })
        .collect();
    for strip in &ours.strips {
        let used = all.iter().any(|pair| std::ptr::eq(pair.ours, strip));
        let same = theirs.strips.iter().find(|other| other.name == strip.name && other.axis == strip.axis);
        if let (false, Some(same)) = (used, same) {
            let axis = strip.axis.split(';').next().unwrap_or_default();
            all.push(Pair { what: format!("{} by {axis}", strip.name), ours: strip, theirs: same });
        }
    }
    all.retain(|pair| pair.ours.values.len() == pair.theirs.values.len() && !pair.ours.values.is_empty());
    all
}

/// The second moment averaged over that axis, whatever form it is kept in.
fn second_moment<'a>(detail: &'a StateDetail, axis: &str) -> Option<&'a Strip> {
    let factor = match axis {
        "row" => Some("exp_avg_sq_row"),
        "column" => Some("exp_avg_sq_col"),
        _ => None,
    };
    detail.strips.iter().find(|strip| {
        let whole = matches!(&*strip.name, "exp_avg_sq" | "state2") && strip.axis.starts_with(axis);
        whole || factor == Some(&*strip.name)
    })
}

fn draw_pair(
    pair: &Pair<'_>,
    cursor: usize,
    roomy: bool,
    theme: &Theme,
    area: Rect,
    row: u16,
    buffer: &mut Buffer,
) -> u16 {
    let (ours, theirs) = (&pair.ours.values, &pair.theirs.values);
    // The names of the tensors go first.
    let what = [pair.what.as_str(), pair.what.split(" (").next().unwrap_or_default()];
    let what = format::first_fitting(&what, usize::from(area.width).saturating_sub(1));
    let mut heading = Line::from(span(format!("{what} "), Role::Optimizer, theme));
    let alike = likeness(ours, theirs);
    let fits = !roomy || heading.width() + alike.chars().count() < usize::from(area.width);
    if fits && roomy {
        heading.push_span(span(format!(" {alike}"), Role::Text, theme));
    }
    write(area, row, &heading, buffer);
    // Where there is little room it has a line of its own.
    let row = if fits { row } else { row + 1 };
    if !fits {
        write(area, row, &Line::from(span(alike, Role::Text, theme)), buffer);
    }
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let group = ours.len().div_ceil(width).max(1);
    let mean = |part: &[f64]| part.iter().map(|value| value.abs()).sum::<f64>() / part.len() as f64;
    let shown: Vec<f64> = ours.chunks(group).chain(theirs.chunks(group)).map(mean).collect();
    // One scale for both, or shades would not compare.
    let steps = heat_steps(&shown);
    let cells = steps.len() / 2;
    let cell = (width / cells.max(1)).clamp(1, 4);
    for (line, (letter, steps)) in ["A", "B"].into_iter().zip(steps.chunks(cells.max(1))).enumerate() {
        let mut spans: Vec<Span<'_>> = vec![span(format!("{letter} "), Role::Run(line), theme)];
        spans.extend(steps.iter().map(|step| {
            let (sign, style) = heat_cell(*step, theme);
            Span::styled(sign.repeat(cell), style)
        }));
        write(area, row + 1 + line as u16, &Line::from(spans), buffer);
    }
    let at = cursor.min(ours.len() - 1);
    let text = format!(
        "▲ [{at}] A {} B {}{}",
        format::number(ours[at]),
        format::number(theirs[at]),
        ratio(theirs[at], ours[at]).map_or_else(String::new, |ratio| format!(", B/A {ratio}")),
    );
    let start = (2 + at / group * cell).min(usize::from(area.width).saturating_sub(text.chars().count()));
    let label = format!("{}{text}", " ".repeat(start));
    write(area, row + 3, &Line::from(span(label, Role::Strong, theme)), buffer);
    row + 4
}

fn ratio(over: f64, under: f64) -> Option<String> {
    let ratio = over / under;
    ratio.is_finite().then(|| format!("{}x", format::figure(ratio)))
}

/// How alike two strips are: the ratio of their means, and the correlation of the logarithms of what is above zero in
/// both. An average that started at zero is still too small by a factor; the correlation does not see it.
fn likeness(ours: &[f64], theirs: &[f64]) -> String {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut parts = Vec::new();
    if let Some(ratio) = ratio(mean(theirs), mean(ours)) {
        parts.push(format!("means B/A {ratio}"));
    }
    let logs: Vec<(f64, f64)> = ours
        .iter()
        .zip(theirs)
        .filter(|(a, b)| **a > 0.0 && **b > 0.0 && a.is_finite() && b.is_finite())
        .map(|(a, b)| (a.ln(), b.ln()))
        .collect();
    if let Some(correlation) = correlation(&logs) {
        parts.push(format!("correlation of logarithms {correlation:.2} (n {})", logs.len()));
    }
    parts.join(", ")
}

/// Pearson's; nothing of fewer than three pairs or where one side does not vary.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), pair| (a + pair.0 / n, b + pair.1 / n));
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let (x, y) = (pair.0 - a, pair.1 - b);
        both += x * y;
        first += x * x;
        second += y * y;
    }
    (pairs.len() > 2 && first > 0.0 && second > 0.0).then(|| both / (first * second).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recorded;

    const NAME: &str = "model.layers.0.self_attn.q_proj.weight";

    /// AdamW's moments as a run gives them: averaged by row and by column.
    fn adamw() -> StateDetail {
        let mut detail = recorded::detail("adamw", NAME);
        let strips = detail.strips.clone();
        detail.strips = strips
            .into_iter()
            .flat_map(|strip| {
                ["row, mean |x|", "column, mean |x|"].map(|axis| Strip { axis: axis.into(), ..strip.clone() })
            })
            .collect();
        detail
    }

    #[test]
    fn row_means_of_factors_stand_beside_row_means_of_the_whole_moment() {
        let (ours, theirs) = (adamw(), recorded::detail("adafactor", NAME));
        let found: Vec<String> = pairs(&ours, &theirs).into_iter().map(|pair| pair.what).collect();
        assert_eq!(
            found,
            [
                "second moment by row (exp_avg_sq and exp_avg_sq_row)",
                "second moment by column (exp_avg_sq and exp_avg_sq_col)"
            ]
        );
        // The same optimizer: first moments, too.
        assert_eq!(pairs(&ours, &ours).len(), 4);
        let nothing = recorded::detail("sgd", NAME);
        assert!(pairs(&ours, &nothing).is_empty());
    }

    #[test]
    fn likeness_is_told_in_numbers() {
        let ours = [1e-6, 1e-4, 1e-5, 0.0];
        let text = likeness(&ours, &ours.map(|value| 3.0 * value));
        assert!(text.contains("means B/A 3") && text.contains("1.00 (n 3)"), "{text}");
        assert_eq!(correlation(&[(1.0, 2.0), (2.0, 1.0), (3.0, 0.0)]), Some(-1.0));
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 1.0), (1.0, 0.0)]), None);
    }
}
