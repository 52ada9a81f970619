//! What the record says of an opened parameter: the RMS of its state and how far updates moved it.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    text::Line,
};

use crate::{
    app::{
        State,
        series::{Series, XAxis},
        tensors::Opened,
    },
    ui::{
        chart::{Chart, Line as Curve, Stroke},
        legend::letter,
        theme::{Role, Theme},
        widgets::{span, write},
    },
};

/// Characters of the lines in ASCII.
const PLAIN: [char; 6] = ['*', '+', 'o', 'x', '#', '%'];

/// Rows of a chart with its title.
const LEAST: u16 = 5;

/// Draws both charts.
pub fn draw(state: &State, opened: &Opened, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    let history = &opened.history;
    // Where two charts would both show nothing there is one.
    let share = if area.height < 2 * LEAST { 0 } else { 2 };
    let [above, below] = Layout::vertical([Constraint::Fill(3), Constraint::Fill(share)]).areas(area);
    // A recording that is played has not come to its end yet.
    let done = state.view().done() as f64;
    let points = |series: &Series| -> Vec<(f64, f64)> {
        series.points(XAxis::Update).into_iter().filter(|point| point.0 <= done).collect()
    };
    let curve = |at: usize, series: &Series| Curve {
        points: points(series),
        style: theme.style(Role::Run(at)),
        stroke: Stroke::Solid,
        plain: PLAIN[at % PLAIN.len()],
    };
    let mut heading =
        vec![span(if area.width < 60 { "rms, log  " } else { "rms by update, log  " }, Role::Title, theme)];
    for (at, name) in history.rms.keys().enumerate() {
        heading.push(span(format!("{} {name}  ", letter(at)), Role::Run(at), theme));
    }
    let empty = if history.loaded { "the record says nothing of it yet" } else { "reading the record" };
    let mut lines: Vec<Curve> =
        history.rms.values().enumerate().map(|(at, series)| curve(at, series)).collect();
    // The letter at the end of each line tells them apart without colours.
    let ends: Vec<Curve> = (0..).zip(&lines).filter_map(|(at, line)| line.ended_by(letter(at))).collect();
    lines.extend(ends);
    panel(Line::from(heading), Chart { lines, log_y: true, empty, ..Chart::default() }, theme, above, buffer);
    let heading = Line::from(span(
        "update/param: rms of the update over that of the parameter, log",
        Role::Title,
        theme,
    ));
    let lines = vec![curve(0, &history.update_ratio)];
    panel(heading, Chart { lines, log_y: true, empty, ..Chart::default() }, theme, below, buffer);
}

fn panel(heading: Line<'_>, chart: Chart, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    write(area, 0, &heading, buffer);
    let inside = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(1), ..area };
    chart.draw(inside, buffer, theme);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{action::Screen, recorded, series::Place};

    #[test]
    fn every_line_ends_in_the_letter_of_its_state() {
        let state = recorded::watching(Screen::State, "adamw8bit");
        let mut opened = Opened::new("a");
        for (at, name) in ["absmax1", "absmax2", "state1", "state2"].into_iter().enumerate() {
            let mut series = Series::default();
            // The first two are the same number all along.
            let size = at.max(1) as f64;
            for update in 1..=300 {
                let place = Place { update, tokens: 512 * update, time: update as f64 };
                series.push(place, size / update as f64);
            }
            opened.history.rms.insert(name.into(), series);
        }
        let area = Rect::new(0, 0, 90, 24);
        for theme in [Theme::default(), Theme { ascii: true, ..Theme::default() }] {
            let mut buffer = Buffer::empty(area);
            draw(&state, &opened, &theme, area, &mut buffer);
            let row =
                |y: u16| (0..area.width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
            assert!(row(0).contains("A absmax1  B absmax2  C state1  D state2"), "{}", row(0));
            let ends: String = (1..14).map(row).collect();
            for letter in ['A', 'B', 'C', 'D'] {
                assert_eq!(ends.matches(letter).count(), 1, "{letter}: {ends}");
            }
        }
    }
}
