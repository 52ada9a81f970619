//! The ledger as a waterfall: each category begins where the one before it ends, up to the measured peak; and what is
//! left of the device.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use super::memory::{self, categories};
use crate::{
    app::{State, run::RunView},
    protocol::{Host, Ledger},
    ui::{
        format,
        theme::{Colours, Role, Theme},
        widgets::{gauge, span, stacked, write, write_right},
    },
};

/// Columns of a sign and the longest name, and of a figure without and with its share.
const LABEL: usize = 18;
const FIGURE: [usize; 2] = [10, 16];
/// Fewest cells a waterfall is drawn in.
const LEAST: usize = 8;

/// One step of the waterfall.
struct Step {
    name: &'static str,
    from: u64,
    to: u64,
    role: Role,
    letter: char,
    estimated: bool,
}

/// What lies between the ledger's total and the measured peak, and whether the peak is the larger one.
fn remainder(view: &RunView, ledger: &Ledger) -> Option<(&'static str, u64, u64)> {
    let peaks = view.peaks();
    let total = ledger.total_bytes_estimated;
    match (peaks.gpu_allocated, peaks.allocator) {
        (Some(peak), _) if peak >= total => Some(("rest: temporary", total, peak)),
        (None, Some(peak)) if peak >= total => Some(("rest: data, temp", total, peak)),
        (Some(peak), _) | (None, Some(peak)) => Some(("over-estimated", peak, total)),
        (None, None) => None,
    }
}

/// Draws the categories; returns the rows used. `full` adds the remainder.
pub fn draw(
    view: &RunView,
    ledger: &Ledger,
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
    full: bool,
) -> u16 {
    let parts = categories(ledger);
    let total = ledger.total_bytes_estimated;
    let width = usize::from(area.width);
    let wide = width >= 48;
    let bar: Vec<_> = parts.iter().map(|(_, bytes, role, letter)| (*bytes, *role, *letter)).collect();
    write(area, 0, &Line::from(stacked(&bar, total, width, theme)), buffer);
    let mut sum = 0;
    let mut steps: Vec<Step> = Vec::with_capacity(6);
    for (name, bytes, role, letter) in parts {
        let from = sum;
        sum += bytes;
        steps.push(Step { name, from, to: sum, role, letter, estimated: letter == '~' });
    }
    let rest = remainder(view, ledger).filter(|_| full);
    steps.extend(rest.map(|(name, from, to)| Step {
        name,
        from,
        to,
        role: Role::Dim,
        letter: '?',
        estimated: true,
    }));
    let whole = steps.iter().map(|step| step.to).max().unwrap_or(0).max(1);
    let cells = width.saturating_sub(LABEL + FIGURE[usize::from(wide)]);
    let letters = theme.ascii || theme.colours == Colours::None;
    let mut row = 1;
    for Step { name, from, to, role, letter, estimated } in steps {
        let sign = if letters {
            letter
        } else if letter == '?' {
            '□'
        } else {
            '■'
        };
        let mut spans =
            vec![span(format!("{sign} "), role, theme), span(format!("{name:<16}"), Role::Text, theme)];
        if cells >= LEAST {
            let at = |bytes: u64| (bytes as f64 / whole as f64 * cells as f64).round() as usize;
            // What is there is seen, however little it is.
            let start = at(from).min(cells - 1);
            let length = at(to).saturating_sub(start).max(usize::from(to > from));
            let fill = if letters { letter } else { '█' };
            spans.push(span(" ".repeat(start), Role::Text, theme));
            spans.push(span(fill.to_string().repeat(length), role, theme));
        }
        write(area, row, &Line::from(spans), buffer);
        let mark = if estimated { "~" } else { "" };
        figure(
            &memory::told(view, name, to - from, mark),
            to - from,
            total,
            wide,
            (area, row),
            theme,
            buffer,
        );
        row += 1;
    }
    write(area, row, &Line::from(span("  total", Role::Dim, theme)), buffer);
    figure(&memory::total(view, ledger), total, total, wide, (area, row), theme, buffer);
    row + 1
}

fn figure(
    text: &str,
    bytes: u64,
    total: u64,
    wide: bool,
    (area, row): (Rect, u16),
    theme: &Theme,
    buffer: &mut Buffer,
) {
    let share = if wide && text != "n/a" {
        format!("  {:>4}", format::percent(bytes as f64, total as f64))
    } else {
        String::new()
    };
    write_right(area, row, &Line::from(span(format!("{text}{share}"), Role::Strong, theme)), buffer);
}

/// A device's memory, and the most of it that was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub total: u64,
    pub used: u64,
}

impl Limit {
    /// Bytes left at the peak.
    pub const fn headroom(self) -> u64 {
        self.total.saturating_sub(self.used)
    }
}

/// The limit of the device that trains: of the GPU with what others hold of it, else of this machine, of which the run's
/// own part is known.
pub fn limit(state: &State, view: &RunView) -> Option<Limit> {
    let peaks = view.peaks();
    let none = Host::default();
    let host = view.host.as_ref().unwrap_or(&none);
    if host.gpu_allocated.is_some() || peaks.gpu_allocated.is_some() {
        let total = host.gpu_device_total?;
        let now = host.gpu_device_used;
        let others = now.zip(host.gpu_process_used).and_then(|(all, own)| all.checked_sub(own));
        let at_peak = others.zip(peaks.gpu_process).map(|(others, own)| others + own);
        return Some(Limit { total, used: at_peak.max(now).max(peaks.gpu_device)? });
    }
    Some(Limit { total: state.options.host_memory?, used: peaks.rss? })
}

/// The peak as a part of the device, in one row.
pub fn bar(limit: Limit, theme: &Theme, area: Rect, row: u16, buffer: &mut Buffer) {
    let share = limit.used as f64 / limit.total.max(1) as f64;
    let role = match share {
        share if share >= 0.95 => Role::Bad,
        share if share >= 0.8 => Role::Warning,
        _ => Role::Good,
    };
    let text = format!(" {}", format::bytes(limit.used));
    let name = "device's peak ";
    let cells = usize::from(area.width).saturating_sub(text.chars().count() + name.len());
    let mut spans = vec![span(name, Role::Dim, theme)];
    spans.extend(gauge(share, cells, theme, role));
    spans.push(span(text, Role::Text, theme));
    write(area, row, &Line::from(spans), buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, recorded};

    #[test]
    fn the_headroom_of_a_gpu_leaves_out_what_others_hold() {
        let mut state = recorded::on_gpu();
        let mib = 1024 * 1024;
        let limit = limit(&state, &state.run).unwrap();
        assert_eq!((limit.total / mib, limit.used / mib), (24 * 1024, 1290));
        if let Some(host) = &mut state.run.host {
            host.gpu_process_used = Some(34 * mib);
        }
        let later = super::limit(&state, &state.run).unwrap();
        assert_eq!(later.used / mib, 1290 - 34 + 334, "others hold more now, the run's peak was before");
        assert_eq!(later.headroom() / mib, 24 * 1024 - 1590);
    }

    #[test]
    fn on_a_processor_the_limit_is_the_machines() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let found = limit(&state, &state.run).unwrap();
        assert_eq!((found.total, found.used), (16 << 30, state.run.peaks().rss.unwrap()));
        state.options.host_memory = None;
        assert_eq!(limit(&state, &state.run), None, "nothing is said of a limit nobody knows");
    }

    #[test]
    fn the_steps_end_at_the_peak_or_say_that_the_estimate_is_above_it() {
        let state = recorded::watching(Screen::Train, "adamw");
        let mut ledger = state.run.header.as_ref().unwrap().ledger.clone();
        let peak = state.run.peaks().allocator.unwrap();
        ledger.total_bytes_estimated = peak - 10;
        assert_eq!(remainder(&state.run, &ledger), Some(("rest: data, temp", peak - 10, peak)));
        ledger.total_bytes_estimated = peak + 10;
        assert_eq!(remainder(&state.run, &ledger), Some(("over-estimated", peak, peak + 10)));
        assert_eq!(remainder(&RunView::default(), &ledger), None);
    }
}
