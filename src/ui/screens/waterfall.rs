//! The ledger as a waterfall: each category begins where the one before it ends, up to the measured peak; and what is
//! left of the device.

use ratatui::{buffer::Buffer, layout::Rect, text::Line};

use super::memory::{self, categories};
use crate::{
    app::{State, room::on_gpu, run::RunView},
    protocol::{Host, Ledger},
    run::record::Peaks,
    ui::{
        format,
        theme::{Colours, Role, Theme},
        widgets::{gauge, span, stacked, write, write_right},
    },
};

/// Columns of a sign and the longest name, and of a figure without and with its share.
const LABEL: usize = 18;
const FIGURE: [usize; 2] = [10, 16];
/// Rows of the categories with the bar above and their total below.
pub const ROWS: u16 = 7;
/// Least width in which the rest is told in more words.
const WORDS: usize = 60;
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

/// What lies between the ledger's total and the measured peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    /// What it is, in few and in more words.
    short: &'static str,
    long: &'static str,
    /// The peak, and what measured it.
    peak: u64,
    source: &'static str,
}

/// Held against what is measured nearest to the tensors: on the processor libtorch's own allocator tells nothing, there it
/// is the whole process.
fn remainder(view: &RunView, ledger: &Ledger) -> Option<Rest> {
    let rest = |peak, source, short, long| Rest { short, long, peak, source };
    let gpu = view.header.as_ref().is_some_and(|header| on_gpu(&header.device));
    let rest = match view.peaks {
        Peaks { gpu_allocated: Some(peak), .. } => {
            rest(peak, "GPU tensors", "rest: temporary", "rest: temporary tensors")
        }
        _ if gpu => return None,
        Peaks { allocator: Some(peak), .. } => {
            rest(peak, "allocator", "rest: data, temp", "rest: data, temporary tensors")
        }
        Peaks { host_rss: Some(peak), .. } => {
            rest(peak, "RSS", "rest: process", "rest: process, libraries, pool")
        }
        _ => return None,
    };
    let over = rest.peak < ledger.total_bytes_estimated;
    Some(if over { Rest { short: "over-estimated", long: "over-estimated", ..rest } } else { rest })
}

/// Draws the categories and their total; returns the rows used. With one row more the remainder, with two the peak that it
/// leads to, too.
pub fn draw(
    view: &RunView,
    ledger: &Ledger,
    theme: &Theme,
    area: Rect,
    buffer: &mut Buffer,
    more: u16,
) -> u16 {
    let parts = categories(ledger);
    let total = ledger.total_bytes_estimated;
    let width = usize::from(area.width);
    let wide = width >= 48;
    let bar: Vec<_> = parts.iter().map(|(_, bytes, role, letter)| (*bytes, *role, *letter)).collect();
    write(area, 0, &Line::from(stacked(&bar, total, width, theme)), buffer);
    let mut sum = 0;
    let mut steps: Vec<Step> = Vec::with_capacity(5);
    for (name, bytes, role, letter) in parts {
        let from = sum;
        sum += bytes;
        steps.push(Step { name, from, to: sum, role, letter, estimated: letter == '~' });
    }
    let rest = remainder(view, ledger).filter(|_| more > 0);
    let whole = sum.max(total).max(rest.map_or(0, |rest| rest.peak)).max(1);
    let told = rest.map_or("", |rest| if width >= WORDS { rest.long } else { rest.short });
    let label = LABEL.max(told.len() + 3);
    let cells = width.saturating_sub(label + FIGURE[usize::from(wide)]);
    let letters = theme.ascii || theme.colours == Colours::None;
    let step = |row: u16, step: &Step, buffer: &mut Buffer| {
        let Step { name, from, to, role, letter, .. } = *step;
        let sign = if letters {
            letter
        } else if letter == '?' {
            '□'
        } else {
            '■'
        };
        let mut spans = vec![
            span(format!("{sign} "), role, theme),
            span(format!("{name:<names$}", names = label - 2), Role::Text, theme),
        ];
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
    };
    let share = |bytes: u64| Some(format::percent(bytes as f64, total as f64));
    let figure = |row: u16, text: String, share: Option<String>, buffer: &mut Buffer| {
        let share = if wide { format!("  {:>4}", share.unwrap_or_default()) } else { String::new() };
        write_right(area, row, &Line::from(span(format!("{text}{share}"), Role::Strong, theme)), buffer);
    };
    let mut row = 1;
    for part in &steps {
        let bytes = part.to - part.from;
        let mark = if part.estimated { "~" } else { "" };
        step(row, part, buffer);
        let told = memory::told(view, part.name, bytes, mark);
        let share = share(bytes).filter(|_| told != "n/a");
        figure(row, told, share, buffer);
        row += 1;
    }
    write(area, row, &Line::from(span("  total", Role::Dim, theme)), buffer);
    figure(row, memory::total(view, ledger), share(total), buffer);
    row += 1;
    let Some(Rest { peak, source, .. }) = rest else { return row };
    // What is added to the total or taken from it, and what that makes.
    let (from, to) = (total.min(peak), total.max(peak));
    step(row, &Step { name: told, from, to, role: Role::Dim, letter: '?', estimated: true }, buffer);
    let sign = if peak < total { "-" } else { "" };
    figure(row, format!("~{sign}{}", format::bytes(to - from)), None, buffer);
    row += 1;
    if more < 2 {
        return row;
    }
    let names = [format!("= peak, {source}"), "= peak".to_owned()];
    let name = format::first_fitting(&names, width.saturating_sub(FIGURE[usize::from(wide)]));
    write(area, row, &Line::from(span(name, Role::Dim, theme)), buffer);
    figure(row, format::bytes(peak), None, buffer);
    row + 1
}

/// A device's memory, and the most of it that was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub total: u64,
    pub used: u64,
    /// By whom that is.
    pub by: By,
}

/// Whose memory is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Of all that use the GPU.
    Gpu,
    /// Of all that runs on this machine.
    Machine,
    /// Of the run's process alone: what others hold is not known.
    Process,
}

impl Limit {
    /// Bytes left at the peak; nothing where it is not known what others hold.
    pub fn headroom(self) -> Option<u64> {
        (self.by != By::Process).then(|| self.total.saturating_sub(self.used))
    }

    /// What there is to say of it at the edge of the panel, the longest first.
    pub fn told(self) -> [String; 3] {
        let all = format::bytes(self.total);
        match self.headroom().map(format::bytes) {
            Some(left) => [
                format!(" headroom {left} of {all} "),
                format!(" headroom {left} "),
                format!(" {left} free "),
            ],
            None => {
                let used = format::bytes(self.used);
                let text = format!("process {used} of {all} ");
                [format!(" this {text}"), format!(" {text}"), format!(" {used} of {all} ")]
            }
        }
    }
}

/// The limit of the device that trains: of the GPU or of this machine with what others hold of it; where that is not
/// known, of this machine, with the run's own part.
pub fn limit(state: &State, view: &RunView) -> Option<Limit> {
    let peaks = view.peaks;
    let none = Host::default();
    let host = view.host.as_ref().unwrap_or(&none);
    if host.gpu_allocated.is_some() || peaks.gpu_allocated.is_some() {
        let total = host.gpu_device_total?;
        let now = host.gpu_device_used;
        let others = now.zip(host.gpu_process_used).and_then(|(all, own)| all.checked_sub(own));
        // While it trains, what others once held says nothing of what is free.
        let told = peaks.gpu_device.filter(|_| view.ended.is_some());
        let at_peak = others.zip(peaks.gpu_process).map(|(others, own)| others + own);
        return Some(Limit { total, used: at_peak.max(now).max(told)?, by: By::Gpu });
    }
    let own = peaks.host_rss?;
    if let Some(machine) = state.machine() {
        // What is in use now, and what the run gave up of its peak and may take again.
        let given_up = own.saturating_sub(host.host_rss.unwrap_or(own));
        let used = machine.total.saturating_sub(machine.free).saturating_add(given_up);
        return Some(Limit { total: machine.total, used: used.max(own), by: By::Machine });
    }
    Some(Limit { total: state.options.host_memory?, used: own, by: By::Process })
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
    let name = match limit.by {
        By::Gpu => "device's peak ",
        By::Machine => "machine's peak ",
        By::Process => "this process ",
    };
    let cells = usize::from(area.width).saturating_sub(text.chars().count() + name.len());
    let mut spans = vec![span(name, Role::Dim, theme)];
    spans.extend(gauge(share, cells, theme, role));
    spans.push(span(text, Role::Text, theme));
    write(area, row, &Line::from(spans), buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{Msg, action::Screen, recorded, room::Room},
        config::DeviceName,
        protocol::Event,
    };

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
        assert_eq!(later.headroom().unwrap() / mib, 24 * 1024 - 1590);
    }

    #[test]
    fn on_a_processor_the_limit_is_the_machines() {
        // A run that has ended: what others held then is not known.
        let mut state = recorded::short();
        let found = limit(&state, &state.run).unwrap();
        let own = state.run.peaks.host_rss.unwrap();
        assert_eq!(found, Limit { total: 16 << 30, used: own, by: By::Process });
        assert_eq!(found.headroom(), None, "which is no headroom");
        assert!(found.told()[0].starts_with(" this process 31.0 MiB of 16.0 GiB"), "{:?}", found.told());
        state.options.host_memory = None;
        assert_eq!(limit(&state, &state.run), None, "nothing is said of a limit nobody knows");
    }

    #[test]
    fn the_headroom_of_a_machine_leaves_out_what_others_hold() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let mib = 1024 * 1024;
        let own = state.run.peaks.host_rss.unwrap();
        if let Some(host) = &mut state.run.host {
            host.host_rss = Some(own - 5 * mib);
        }
        let room = Some(Room { total: 16 << 30, free: 3 << 30 });
        state.update(Msg::Room { asked: DeviceName::Flex, device: DeviceName::Flex, room });
        let found = limit(&state, &state.run).unwrap();
        assert_eq!(found, Limit { total: 16 << 30, used: (13 << 30) + 5 * mib, by: By::Machine });
        assert_eq!(found.headroom(), Some((3 << 30) - 5 * mib), "it may take again what it gave up");
    }

    #[test]
    fn the_steps_end_at_the_peak_or_say_that_the_estimate_is_above_it() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let mut ledger = state.run.header.as_ref().unwrap().ledger.clone();
        let peak = state.run.peaks.allocator.unwrap();
        let told = |state: &State, ledger: &Ledger| {
            remainder(&state.run, ledger).map(|rest| (rest.short, rest.peak, rest.source))
        };
        ledger.total_bytes_estimated = peak - 10;
        assert_eq!(told(&state, &ledger), Some(("rest: data, temp", peak, "allocator")));
        ledger.total_bytes_estimated = peak + 10;
        assert_eq!(told(&state, &ledger), Some(("over-estimated", peak, "allocator")));
        assert_eq!(remainder(&RunView::default(), &ledger), None);
        // libtorch on the processor: its allocator tells nothing, the process does.
        state.run = without_allocator(&state.run, "libtorch-cpu");
        let rss = state.run.peaks.host_rss.unwrap();
        assert_eq!(told(&state, &ledger), Some(("rest: process", rss, "RSS")));
        // On a GPU the process says nothing of the tensors.
        state.run = without_allocator(&state.run, "libtorch-cuda:0");
        assert_eq!(told(&state, &ledger), None);
    }

    /// The same run on another device, of which the allocator in this program tells nothing.
    fn without_allocator(view: &RunView, device: &str) -> RunView {
        let mut header = view.header.clone().unwrap();
        header.device = device.into();
        let mut other = RunView::default();
        other.apply(&Event::Header(header));
        let host = view.host.clone().unwrap();
        other.apply(&Event::Host(Host { allocator: None, allocator_peak: None, ..host }));
        other
    }

    #[test]
    fn the_column_adds_up() {
        let state = recorded::watching(Screen::Train, "adamw");
        let ledger = &state.run.header.as_ref().unwrap().ledger;
        let drawn = |view: &RunView, ledger: &Ledger, (width, more): (u16, u16)| -> Vec<String> {
            let area = Rect::new(0, 0, width, 12);
            let mut buffer = Buffer::empty(area);
            let rows = draw(view, ledger, &Theme::default(), area, &mut buffer, more);
            let row = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
            (0..rows).map(row).collect()
        };
        let rows = drawn(&state.run, ledger, (40, 2));
        let at = |rows: &[String], name: &str| rows.iter().position(|row| row.contains(name)).unwrap();
        let (total, rest, peak) =
            (at(&rows, "total"), at(&rows, "rest: data"), at(&rows, "= peak, allocator"));
        assert_eq!((total, rest, peak, rows.len()), (6, 7, 8, 9), "{rows:#?}");
        assert!(rows[peak].ends_with("14.0 MiB"), "{rows:#?}");
        assert_eq!(drawn(&state.run, ledger, (31, 1)).len(), 8);
        assert_eq!(drawn(&state.run, ledger, (31, 0)).len(), usize::from(ROWS));
        // An estimate above the peak is taken back.
        let mut high = ledger.clone();
        high.activation_bytes_estimated += 1 << 20;
        high.total_bytes_estimated += 1 << 20;
        let rows = drawn(&state.run, &high, (60, 2));
        assert!(rows[7].contains("over-estimated") && rows[7].contains("~-"), "{rows:#?}");
        // The rest of a process is named in whole where there is room.
        let libtorch = without_allocator(&state.run, "libtorch-cpu");
        let rows = drawn(&libtorch, ledger, (78, 2));
        assert!(rows[7].contains("rest: process, libraries, pool"), "{rows:#?}");
        assert!(rows[8].contains("= peak, RSS"), "{rows:#?}");
    }
}
