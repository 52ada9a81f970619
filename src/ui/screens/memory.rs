//! The memory panel: the ledger counted from shapes, and what was measured, each with its source.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use crate::{
    app::{State, focus::Panel, run::RunView},
    protocol::{Host, Ledger},
    ui::{
        format,
        theme::{Role, Theme},
        widgets::{frame, paragraph, span, stacked, title, write, write_right},
    },
};

/// Lines it needs to show everything without a GPU.
pub const HEIGHT: u16 = 15;

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
    let wide = inside.width >= 48;
    let row = ledger(&header.ledger, theme, inside, buffer, wide);
    let row = if area.height >= HEIGHT + 2 { row + 1 } else { row };
    measured(
        view,
        theme,
        Rect { y: inside.y + row.min(inside.height), height: inside.height.saturating_sub(row), ..inside },
        buffer,
    );
}

/// The categories with a bar; returns the rows used.
fn ledger(ledger: &Ledger, theme: &Theme, area: Rect, buffer: &mut Buffer, wide: bool) -> u16 {
    let parts = categories(ledger);
    let total = ledger.total_bytes_estimated;
    let bar: Vec<_> = parts.iter().map(|(_, bytes, role, letter)| (*bytes, *role, *letter)).collect();
    write(area, 0, &Line::from(stacked(&bar, total, usize::from(area.width), theme)), buffer);
    let mut row = 1;
    for (name, bytes, role, letter) in parts {
        let estimated = letter == '~';
        let sign =
            if theme.ascii || theme.colours == crate::ui::theme::Colours::None { letter } else { '■' };
        let label = Line::from(vec![span(format!("{sign} "), role, theme), span(name, Role::Text, theme)]);
        write(area, row, &label, buffer);
        let mark = if estimated { "~" } else { "" };
        let mut value = format!("{mark}{}", format::bytes(bytes));
        if wide {
            value.push_str(&format!("  {:>4}", format::percent(bytes as f64, total as f64)));
        }
        write_right(area, row, &Line::from(span(value, Role::Strong, theme)), buffer);
        row += 1;
    }
    write(area, row, &Line::from(span("  total", Role::Dim, theme)), buffer);
    let mut value = format!("~{}", format::bytes(total));
    if wide {
        value.push_str("  100%");
    }
    write_right(area, row, &Line::from(span(value, Role::Strong, theme)), buffer);
    row + 1
}

/// What the worker measured, and where each figure comes from.
fn measured(view: &RunView, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let peaks = view.peaks();
    if view.host.is_none() && !peaks.any() {
        write(area, 0, &Line::from(span("no measurement yet", Role::Dim, theme)), buffer);
        return;
    }
    let none = Host::default();
    let host = view.host.as_ref().unwrap_or(&none);
    let mut row = 0;
    let mut line = |name: &str, now: String, most: Option<String>, role: Role, buffer: &mut Buffer| {
        let figures = format!("{now:>10} {:>9}", most.unwrap_or_default());
        write(area, row, &Line::from(span(name.to_owned(), Role::Dim, theme)), buffer);
        write_right(area, row, &Line::from(span(figures, role, theme)), buffer);
        row += 1;
    };
    // Of a run that has ended nothing is measured now: what stands there is its last reading.
    let now = if view.ended.is_some() { "last" } else { "now" };
    line("measured", now.into(), Some("peak".into()), Role::Dim, buffer);
    for (name, now, peak) in [
        ("allocator", host.allocator, peaks.allocator),
        ("RSS (OS)", host.host_rss, peaks.rss),
        ("GPU process", host.gpu_process_used, peaks.gpu_process),
        ("GPU device", host.gpu_device_used, peaks.gpu_device),
    ] {
        if now.is_some() || peak.is_some() {
            let now = now.map_or_else(|| "-".to_owned(), format::bytes);
            line(name, now, peak.map(format::bytes), Role::Text, buffer);
        }
    }
    let mut line = |name: &str, value: String, buffer: &mut Buffer| {
        write(area, row, &Line::from(span(name.to_owned(), Role::Dim, theme)), buffer);
        write_right(area, row, &Line::from(span(value, Role::Text, theme)), buffer);
        row += 1;
    };
    if let Some(total) = host.gpu_device_total {
        line("GPU holds", format::bytes(total), buffer);
    }
    let mut load = Vec::new();
    load.extend(host.gpu_utilization.map(|percent| format!("{percent}%")));
    load.extend(host.gpu_temperature.map(|degrees| format!("{degrees} °C")));
    load.extend(host.gpu_power.map(|watts| format!("{} W", format::short(watts))));
    if !load.is_empty() {
        line("GPU by NVML", load.join("  "), buffer);
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
