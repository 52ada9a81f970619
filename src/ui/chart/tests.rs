use super::*;

fn line(points: &[(f64, f64)]) -> Line {
    Line { points: points.to_vec(), style: Style::default(), stroke: Stroke::Solid, plain: '*' }
}

fn drawn(chart: &Chart, width: u16, height: u16, ascii: bool) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    chart.draw(area, &mut buffer, &Theme { ascii, ..Theme::default() });
    (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect()).collect()
}

#[test]
fn a_rising_line_goes_from_the_bottom_left_to_the_top_right() {
    let chart = Chart { lines: vec![line(&[(0.0, 0.0), (10.0, 10.0)])], ..Chart::default() };
    let rows = drawn(&chart, 40, 10, true);
    assert!(rows[0].trim_end().ends_with('*'), "{rows:#?}");
    assert!(rows[8].contains("*") && rows[8].find('*') < rows[0].find('*'));
    assert!(rows[9].contains('0') && rows[9].contains("10"));
}

#[test]
fn nothing_that_is_no_number_is_drawn_and_the_line_breaks_there() {
    let points = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0), (3.0, f64::INFINITY), (f64::NAN, 2.0), (4.0, 1.0)];
    let chart = Chart { lines: vec![line(&points)], ..Chart::default() };
    let stars: usize = drawn(&chart, 60, 12, true).iter().map(|row| row.matches('*').count()).sum();
    assert_eq!(stars, 3, "three points that touch no other");
    for log_y in [false, true] {
        let chart = Chart {
            lines: vec![line(&[(0.0, f64::NAN), (1.0, -1.0), (2.0, 0.0)])],
            log_y,
            ..Chart::default()
        };
        drawn(&chart, 30, 8, false);
    }
}

#[test]
fn without_a_point_it_says_so() {
    let chart = Chart { lines: vec![line(&[(0.0, f64::NAN)])], empty: "no loss yet", ..Chart::default() };
    assert!(drawn(&chart, 30, 8, false)[4].contains("no loss yet"));
}

#[test]
fn a_logarithmic_axis_has_even_decades() {
    let points: Vec<(f64, f64)> = (0..=40).map(|i| (f64::from(i), 10f64.powf(f64::from(i) / 10.0))).collect();
    let chart = Chart { lines: vec![line(&points)], log_y: true, ..Chart::default() };
    let rows = drawn(&chart, 60, 17, true);
    let columns: Vec<usize> = rows[..16].iter().filter_map(|row| row.find('*')).collect();
    assert!(columns.windows(2).all(|pair| pair[0] > pair[1]), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("100")), "{rows:#?}");
}

#[test]
fn no_size_is_too_small() {
    let chart = Chart { lines: vec![line(&[(0.0, 1.0), (1.0, 2.0)])], empty: "-", ..Chart::default() };
    for width in 0..30 {
        for height in 0..12 {
            drawn(&chart, width, height, false);
        }
    }
}

#[test]
fn a_gap_is_marked_and_the_cursor_is_a_line() {
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, f64::NAN), (4.0, 2.0), (5.0, 1.0)];
    let style = Style::default();
    let mut chart = Chart { lines: vec![line(&points)], cursor: Some((2.0, style)), ..Chart::default() };
    let bars = |rows: &[String]| rows.iter().filter(|row| row.matches('│').count() > 1).count();
    let rows = drawn(&chart, 40, 10, false);
    assert!(bars(&rows) >= 6 && !rows.concat().contains('✗'), "{rows:#?}");
    (chart.gaps, chart.cursor) = (Some(style), Some((9.0, style)));
    let rows = drawn(&chart, 40, 10, false);
    assert!(bars(&rows) == 0 && rows[8].contains('✗'), "{rows:#?}");
}

#[test]
fn a_logarithmic_x_axis_has_even_decades_and_is_read_back() {
    let points: Vec<(f64, f64)> = (1..=1000).map(|i| (f64::from(i), f64::from(i).log10())).collect();
    let chart = Chart { lines: vec![line(&points)], log_x: true, ..Chart::default() };
    let rows = drawn(&chart, 64, 17, true);
    let ends: Vec<usize> = rows[..16].iter().filter_map(|row| row.find('*')).collect();
    let steps: Vec<usize> = ends.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).collect();
    assert!(steps.iter().all(|step| (2..=6).contains(step)), "a straight line: {rows:#?}");
    let area = Rect::new(0, 0, 64, 17);
    let (left, right) = (chart.x_at(area, 5, 3), chart.x_at(area, 63, 3));
    assert!(left.is_some_and(|x| x < 2.0) && right.is_some_and(|x| (x - 1000.0).abs() < 1e-6));
    assert_eq!((chart.x_at(area, 0, 3), chart.x_at(area, 5, 16)), (None, None), "not on the axes");
}

#[test]
fn letters_lie_over_points_and_never_over_one_another() {
    let sign = |x, y, sign| Line { stroke: Stroke::Points(sign), plain: 'o', ..line(&[(x, y)]) };
    let chart = Chart {
        lines: vec![
            line(&[(0.0, 0.0), (10.0, 10.0)]),
            sign(5.0, 5.0, 'A'),
            sign(5.0, 5.0, 'B'),
            sign(5.0, 5.0, '●'),
            sign(10.0, 10.0, 'C'),
            sign(10.0, 10.0, 'D'),
            sign(10.0, 10.0, 'E'),
        ],
        ..Chart::default()
    };
    for ascii in [false, true] {
        let rows = drawn(&chart, 40, 11, ascii);
        let all = rows.concat();
        assert!(all.contains("AB"), "{rows:#?}");
        assert!(rows[0].ends_with("EDC"), "at the edge to the left: {rows:#?}");
        assert!(!all.contains('●'), "{rows:#?}");
    }
}

#[test]
fn between_two_updates_there_is_no_tick() {
    let chart = Chart { lines: vec![line(&[(1.0, 5.0), (2.0, 4.0)])], ..Chart::default() };
    let axis = |chart: &Chart| drawn(chart, 80, 12, false)[11].clone();
    let labels = axis(&chart);
    assert_eq!(labels.split_whitespace().collect::<Vec<_>>(), ["1", "2"]);
    let chart = Chart { x_has_fractions: true, ..chart };
    assert!(axis(&chart).contains("1.2"), "{}", axis(&chart));
}
