//! The memory panel: the ledger counted from shapes, and what was measured, each with its source.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use super::{curves::corner_first, waterfall};
use crate::{
    app::{State, focus::Panel, run::RunView},
    config::Arch,
    protocol::{Host, Ledger},
    run::record::Peaks,
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{frame, paragraph, span, title, write, write_right},
    },
};

/// Lines it needs to show everything without a GPU.
const HEIGHT: u16 = 19;

/// Lines it needs to show everything that this run tells, and a line between what is counted and what is measured.
pub fn height(view: &RunView) -> u16 {
    let Some(host) = view.host.as_ref().filter(|host| host.gpu_allocated.is_some()) else { return HEIGHT };
    let ledger = view.header.as_ref().map(|header| header.ledger.clone()).unwrap_or_default();
    let rows = rows(host, view.peaks, &ledger);
    let totals = [host.gpu_device_total.is_some(), host.gpu_retries > Some(0), !load(host).is_empty()];
    let shown = rows.len() + totals.into_iter().filter(|shown| *shown).count();
    // Frame, ledger with remainder, peak and limit, the line between, and the heading; what is measured; the processor; a note of two lines.
    2 + waterfall::ROWS + 3 + 2 + shown as u16 + 1 + if host.gpu_note.is_some() { 2 } else { 0 }
}

/// Name, bytes, colour and letter of each category.
pub fn categories(ledger: &Ledger) -> [(&'static str, u64, Role, char); 5] {
    [
        ("parameters", ledger.parameter_bytes, Role::Parameters, 'P'),
        ("gradients", ledger.gradient_bytes, Role::Gradients, 'G'),
        ("accumulation", ledger.accumulation_bytes, Role::Accumulation, 'A'),
        ("optimizer state", ledger.state_bytes, Role::Optimizer, 'O'),
        ("activations", ledger.activation_bytes_estimated, Role::Activations, '~'),
    ]
}

/// Whether so many bytes of a category are a count: what the passes of a model keep that is not built in, no shape tells,
/// and a loop of its own tells its parameters at most.
fn is_counted(view: &RunView, name: &str, bytes: u64) -> bool {
    match view.header.as_ref().map(|header| header.config.model.arch) {
        Some(Arch::Own) => name != "activations",
        Some(Arch::Loop) => match name {
            "parameters" => bytes > 0,
            "gradients" | "accumulation" | "optimizer state" | "activations" => false,
            _ => true,
        },
        _ => true,
    }
}

/// The bytes of a category with its mark, or that nobody counts them.
pub fn told(view: &RunView, name: &str, bytes: u64, mark: &str) -> String {
    if is_counted(view, name, bytes) { format!("{mark}{}", format::bytes(bytes)) } else { "n/a".to_owned() }
}

/// All categories together; what nobody counts comes on top.
pub fn total(view: &RunView, ledger: &Ledger) -> String {
    let whole = categories(ledger).iter().all(|(name, bytes, ..)| is_counted(view, name, *bytes));
    format!("{}{}", if whole { "~" } else { "> " }, format::bytes(ledger.total_bytes_estimated))
}

/// Draws the panel.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let view = state.view();
    let focused = state.panel() == Panel::Memory;
    let mut heading = title("memory", focused, theme);
    heading.push_span(span("exact, ~ estimated ", Role::Dim, theme));
    let inside = frame(heading, focused, area, buffer, theme);
    let Some(header) = &view.header else {
        write(inside, 0, &Line::from(span("no ledger yet", Role::Dim, theme)), buffer);
        return;
    };
    // With room for everything: the remainder, the peak, the part of the device, and a line between counted and measured.
    // With less, as much of that as leaves room for what each source tells.
    let full = area.height >= height(view);
    let spare = if full { 3 } else { spare(view, &header.ledger, inside.height) };
    let more = match spare {
        0 => 0,
        1 | 2 => 1,
        _ => 2,
    };
    let mut row = waterfall::draw(view, &header.ledger, theme, inside, buffer, more);
    let limit = waterfall::limit(state, view);
    if let Some(limit) = limit {
        corner_first(area, &limit.told(), theme, buffer);
        if spare >= 2 {
            waterfall::bar(limit, theme, inside, row, buffer);
            row += 1;
        }
    }
    let row = if full { row + 1 } else { row };
    measured(
        view,
        &header.ledger,
        theme,
        Rect { y: inside.y + row.min(inside.height), height: inside.height.saturating_sub(row), ..inside },
        buffer,
    );
}

/// Rows left of so many beside the ledger, the heading of what is measured, and what each source tells.
fn spare(view: &RunView, ledger: &Ledger, height: u16) -> u16 {
    let none = Host::default();
    let rows = rows(view.host.as_ref().unwrap_or(&none), view.peaks, ledger);
    let told = rows.iter().filter(|row| matches!(row, Row::Told { .. })).count() as u16;
    height.saturating_sub(waterfall::ROWS + 1 + told)
}

/// What the worker measured, and where each figure comes from.
fn measured(view: &RunView, ledger: &Ledger, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let peaks = view.peaks;
    if view.host.is_none() && !peaks.any() {
        write(area, 0, &Line::from(span("no measurement yet", Role::Dim, theme)), buffer);
        return;
    }
    let none = Host::default();
    let host = view.host.as_ref().unwrap_or(&none);
    let mut row = 0;
    let mut line = |name: &str, figures: String, role: Role, buffer: &mut Buffer| {
        write(area, row, &Line::from(span(name.to_owned(), Role::Dim, theme)), buffer);
        write_right(area, row, &Line::from(span(figures, role, theme)), buffer);
        row += 1;
    };
    let pair = |now: &str, most: &str| format!("{now:>10} {most:>9}");
    // Of a run that has ended nothing is measured now: what stands there is its last reading.
    let now = if view.ended.is_some() { "last" } else { "now" };
    line("measured", pair(now, "peak"), Role::Dim, buffer);
    let mut rows = rows(host, peaks, ledger);
    if rows.len() >= usize::from(area.height) {
        // Little room: what is told, and what lies between when the panel is zoomed.
        rows.retain(|row| matches!(row, Row::Told { .. }));
    }
    for row in rows {
        match row {
            Row::Told { name, now, peak } => {
                let now = now.map_or_else(|| "-".to_owned(), format::bytes);
                let peak = peak.map(format::bytes).unwrap_or_default();
                line(name, pair(&now, &peak), Role::Text, buffer);
            }
            Row::Between { short, long, bytes, at_peak } => {
                let when = if at_peak { "peak" } else { now };
                let names = [long, short].map(|name| format!("{name} ({when})"));
                let value = format::bytes(bytes);
                let fits = names[0].len() + value.len() < usize::from(area.width);
                line(&names[usize::from(!fits)], value, Role::Dim, buffer);
            }
        }
    }
    if let Some(total) = host.gpu_device_total {
        line("GPU holds", format::bytes(total), Role::Text, buffer);
    }
    if let Some(retries) = host.gpu_retries.filter(|retries| *retries > 0) {
        line("pool was full", format!("{retries} times"), Role::Text, buffer);
    }
    let load = load(host);
    if !load.is_empty() {
        line("GPU by NVML", load.join("  "), Role::Text, buffer);
    }
    if let Some(note) = &host.gpu_note {
        let lines = format::wrap(note, usize::from(area.width)).len() as u16;
        if row + lines < area.height {
            row = paragraph(area, row, note, Role::Dim, buffer, theme);
        } else {
            // Little room: one line, and the whole sentence when the panel is zoomed.
            let text = format::cut(note, usize::from(area.width));
            write(area, row, &Line::from(span(text, Role::Dim, theme)), buffer);
            row += 1;
        }
    }
    if let Some(percent) = host.cpu_percent {
        write(area, row, &Line::from(span("CPU", Role::Dim, theme)), buffer);
        let value = format::percent(percent, 100.0);
        write_right(area, row, &Line::from(span(value, Role::Text, theme)), buffer);
    }
}

/// What the GPU is doing, as NVML tells.
fn load(host: &Host) -> Vec<String> {
    let mut load = Vec::new();
    load.extend(host.gpu_utilization.map(|percent| format!("{percent}%")));
    load.extend(host.gpu_temperature.map(|degrees| format!("{degrees} °C")));
    load.extend(host.gpu_power.map(|watts| format!("{} W", format::short(watts))));
    load
}

/// A line of measured bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// As its source tells it.
    Told { name: &'static str, now: Option<u64>, peak: Option<u64> },
    /// What one source has more than the one before it, and what that is.
    Between { short: &'static str, long: &'static str, bytes: u64, at_peak: bool },
}

/// What was measured. On a GPU from the inside out: tensors, libtorch's pool, the process, the device.
fn rows(host: &Host, peaks: Peaks, ledger: &Ledger) -> Vec<Row> {
    let told = |name, now: Option<u64>, peak: Option<u64>| {
        (now.is_some() || peak.is_some()).then_some(Row::Told { name, now, peak })
    };
    // Two sources that were read at different moments may disagree: then nothing is said of the difference.
    let between = |short, long, more: Option<u64>, less: Option<u64>, at_peak| {
        let bytes = more?.checked_sub(less?)?;
        Some(Row::Between { short, long, bytes, at_peak })
    };
    let counted =
        ledger.parameter_bytes + ledger.gradient_bytes + ledger.accumulation_bytes + ledger.state_bytes;
    let processor =
        [told("allocator", host.allocator, peaks.allocator), told("RSS (OS)", host.host_rss, peaks.host_rss)];
    let gpu = [
        told("GPU tensors", host.gpu_allocated, peaks.gpu_allocated),
        between(
            " activations",
            " beyond the ledger: activations, temporaries",
            peaks.gpu_allocated,
            Some(counted),
            true,
        ),
        told("GPU pool", host.gpu_reserved, peaks.gpu_reserved),
        between(" not in use", " pool not in use", host.gpu_reserved, host.gpu_allocated, false),
        told("GPU process", host.gpu_process_used, peaks.gpu_process),
        between(
            " context etc.",
            " context, libraries, workspaces",
            host.gpu_process_used,
            host.gpu_reserved,
            false,
        ),
        told("GPU device", host.gpu_device_used, peaks.gpu_device),
    ];
    // Where tensors are on the GPU, it comes first.
    let on_gpu = host.gpu_allocated.is_some() || peaks.gpu_allocated.is_some();
    let both = if on_gpu { [&gpu[..], &processor] } else { [&processor[..], &gpu] };
    both.concat().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, recorded};

    #[test]
    fn a_small_panel_has_the_remainder_and_the_limit_too() {
        let drawn = |state: &State, height: u16| -> String {
            // As wide as on a screen of 80 columns.
            let area = Rect::new(0, 0, 33, height);
            let mut buffer = Buffer::empty(area);
            draw(state, &Theme::default(), area, &mut buffer);
            area.positions().map(|at| buffer[at].symbol().to_owned()).collect()
        };
        let state = recorded::watching(Screen::Train, "adamw");
        // As high as on one of 24 lines.
        let text = drawn(&state, 14);
        for part in ["total", "rest: data, temp", "machine's peak", "allocator", "RSS (OS)", "headroom"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = drawn(&state, 13);
        assert!(text.contains("rest: data, temp") && text.contains("RSS (OS)"), "{text}");
        let text = drawn(&state, 12);
        assert!(!text.contains("rest: data") && text.contains("RSS (OS)"), "what is measured stays: {text}");
        assert!(drawn(&state, HEIGHT).contains("= peak, allocator"));
        assert!(drawn(&state, HEIGHT).contains("CPU"));
    }

    #[test]
    fn what_lies_between_two_sources_is_their_difference_or_nothing() {
        let ledger = Ledger { parameter_bytes: 10, gradient_bytes: 10, state_bytes: 20, ..Ledger::default() };
        let mut host = Host {
            gpu_allocated: Some(50),
            gpu_reserved: Some(80),
            gpu_process_used: Some(300),
            ..Host::default()
        };
        let peaks = Peaks { gpu_allocated: Some(70), gpu_reserved: Some(80), ..Peaks::default() };
        let differences = |host: &Host, peaks| -> Vec<(&str, u64)> {
            let bytes = |row| match row {
                Row::Between { short, bytes, .. } => Some((short, bytes)),
                Row::Told { .. } => None,
            };
            rows(host, peaks, &ledger).into_iter().filter_map(bytes).collect()
        };
        assert_eq!(
            differences(&host, peaks),
            [(" activations", 30), (" not in use", 30), (" context etc.", 220)]
        );
        // In a container the process is not told; the first reading comes before there is a tensor.
        host.gpu_process_used = None;
        assert_eq!(differences(&host, Peaks::default()), [(" not in use", 30)]);
        host.gpu_process_used = Some(60);
        assert_eq!(differences(&host, Peaks { gpu_allocated: Some(39), ..peaks }), [(" not in use", 30)]);
        assert!(
            differences(&Host { gpu_process_used: Some(9), ..Host::default() }, Peaks::default()).is_empty()
        );
    }
}
