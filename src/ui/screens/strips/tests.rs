use super::*;

#[test]
fn a_parameter_that_cannot_be_read_says_why_and_shows_its_history_all_the_same() {
    use crate::app::{Msg, action::Action, action::Screen, recorded};
    let mut state = recorded::watching(Screen::State, "adamw");
    state.update(Msg::Action(Action::Open));
    let seen = |state: &State| {
        let area = Rect::new(0, 0, 60, 14);
        let mut buffer = Buffer::empty(area);
        draw(state, &Theme::default(), area, &mut buffer);
        let row = |y| (0..60).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..14).map(row).collect::<Vec<String>>().join("\n")
    };
    assert!(seen(&state).contains("reading its state"), "{}", seen(&state));
    state.tensors.opened.as_mut().unwrap().problem = Some("it has no checkpoint".into());
    let text = seen(&state);
    assert!(text.contains("it has no checkpoint") && !text.contains("reading"), "{text}");
    state.tensors.opened.as_mut().unwrap().view = View::History;
    let text = seen(&state);
    assert!(text.contains("it has no checkpoint") && text.contains("rms"), "{text}");
    state.tensors.opened.as_mut().unwrap().problem = None;
    state.update(Msg::Replaying { speed: 1.0 });
    assert!(seen(&state).contains("holds no values of it"), "{}", seen(&state));
}

#[test]
fn a_long_strip_is_averaged_into_the_cells_there_are() {
    assert_eq!(fit(&[1.0, 3.0, -5.0, 7.0], 2), [2.0, 6.0]);
    assert_eq!(fit(&[1.0, 2.0], 8), [1.0, 2.0]);
    assert_eq!(fit(&[1.0, 2.0, 3.0], 2), [1.5, 3.0]);
}

fn factor(name: &str, length: u64, values: Vec<f64>) -> Strip {
    Strip { name: name.into(), axis: "element; 2 to a cell".into(), length, values }
}

fn told(strip: &Strip, told: bool, width: usize) -> String {
    let line = head(strip, told, width, &Theme::default());
    line.spans.iter().map(|span| span.content.as_ref()).collect()
}

#[test]
fn groups_are_counted_as_groups_and_their_members_are_named() {
    let strip = factor("exp_avg_sq_col", 5, vec![1e-30, 2e-4, 3e-4]);
    let text = told(&strip, true, 200);
    assert_eq!(
        text,
        "exp_avg_sq_col 5 values by element, 3 groups of 2  groups min 1.00e-30  max 3.00e-4  1 group never touched"
    );
    let narrow = told(&strip, true, 78);
    assert!(narrow.ends_with("1 group never touched") && !narrow.contains("min"), "{narrow}");
    let at: Vec<_> = (0..4).filter_map(|at| value_at(&strip, at)).collect();
    assert_eq!(at, ["[0-1] mean 1.00e-30", "[2-3] mean 2.00e-4", "[4] 3.00e-4"]);
    assert_eq!((group(&strip), group(&factor("m", 258, vec![0.0; 129]))), (2, 2));

    let each = Strip { axis: "element".into(), ..factor("exp_avg_sq_row", 2, vec![1e-30, 2e-4]) };
    assert_eq!(value_at(&each, 1).unwrap(), "[1] 2.00e-4");
    assert!(told(&each, false, 200).ends_with("max 2.00e-4  1 never touched"));
}

#[test]
fn rows_that_the_figure_counts_are_not_counted_a_second_time() {
    let strip = factor("exp_avg_sq_row", 4, vec![1e-30, 2e-4]);
    assert!(told(&strip, false, 200).contains("1 group never touched"));
    assert!(!told(&strip, true, 200).contains("never touched"));
}

#[test]
fn a_power_of_ten_lies_in_its_own_decade() {
    let below = f64::from(f32::from_bits(1e-30_f32.to_bits() - 3));
    assert!(below < 1e-30 && below.log10().floor() == -31.0);
    assert_eq!([below, 1e-30, 9.9e-31, 1.0, 2e-4].map(decade), [-30, -30, -31, 0, -4]);
}
