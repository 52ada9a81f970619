use super::*;
use crate::app::recorded;

#[test]
fn marks_and_selection_stay_with_their_runs_when_the_list_changes() {
    let mut runs = Runs::default();
    runs.load(recorded::run_rows());
    runs.step(1);
    runs.mark().unwrap();
    let id = runs.selected_id().unwrap();
    let mut more = recorded::run_rows();
    more.insert(0, RunRow { id: "20270101T000000-new".into(), ..more[0].clone() });
    runs.load(more);
    assert_eq!(runs.selected_id().unwrap(), id);
    assert_eq!(runs.marked, vec![id]);
    runs.load(Vec::new());
    assert!(runs.marked.is_empty() && runs.selected_id().is_none());
}

#[test]
fn the_newest_run_is_selected_until_somebody_chooses() {
    let (mut runs, rows) = (Runs::default(), recorded::run_rows());
    runs.load(rows[1..].to_vec());
    runs.load(rows.clone());
    assert_eq!(runs.selected_id().unwrap(), rows[0].id);
}

#[test]
fn the_list_is_ordered_by_any_column_and_filtered() {
    let mut runs = Runs::default();
    runs.load(recorded::run_rows());
    runs.step(1);
    let id = runs.selected_id().unwrap();
    let mut seen = Vec::new();
    for _ in Order::ALL {
        runs.order_step(true);
        assert_eq!(runs.selected_id().unwrap(), id, "the selection stays with its run");
        seen.push(runs.order);
        let losses: Vec<f64> = runs.rows.iter().filter_map(|row| row.val_loss).collect();
        assert!(runs.order != Order::ValLoss || losses.is_sorted(), "{losses:?}");
    }
    assert_eq!((seen.len(), seen.last()), (Order::ALL.len(), Some(&Order::Newest)));
    (runs.order, runs.reverse) = (Order::StateBytes, true);
    runs.arrange();
    assert!(runs.rows.iter().map(|row| row.state_bytes).is_sorted_by(|a, b| a >= b));
    runs.filter = TextLine::new("*ADAF*");
    runs.arrange();
    assert_eq!(runs.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["nano-adafactor"]);
    assert_eq!(runs.all.len(), 3);
}

#[test]
fn a_second_click_on_a_column_turns_the_order_round() {
    let mut runs = Runs::default();
    runs.load(recorded::run_rows());
    runs.sort_by(Order::Updates);
    assert_eq!((runs.order, runs.reverse, runs.rows[2].update), (Order::Updates, false, 212));
    runs.sort_by(Order::Updates);
    assert_eq!((runs.reverse, runs.rows[0].update), (true, 212));
    runs.sort_by(Order::Batch);
    assert!(!runs.reverse, "another column begins with the best");
}

#[test]
fn curves_are_aligned_where_a_run_was_forked_or_another_was_forked_from_it() {
    let mut rows = recorded::run_rows();
    let run = rows[2].id.clone();
    rows[0].forked_from = Some(Lineage { run, update: 200, tokens: 200 * 512, time: 200.0 });
    let mut runs = Runs::default();
    runs.load(rows.clone());
    let point = |runs: &Runs, at: usize| runs.fork_point(&runs.all[at]).map(|place| place.update);
    runs.marked = rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!([0, 1, 2].map(|at| point(&runs, at)), [Some(200), None, Some(200)]);
    runs.marked.remove(0);
    assert_eq!(point(&runs, 2), None, "the fork is not shown");
}

#[test]
fn the_front_is_what_nothing_else_beats_in_both() {
    let points = [(2.0, 2.0), (1.0, 3.0), (3.0, 2.5), (4.0, 1.0), (1.0, 4.0), (0.5, f64::NAN), (2.0, 2.0)];
    assert_eq!(pareto(&points), [1, 0, 3]);
    assert!(pareto(&[]).is_empty());
}

#[test]
fn marking_twice_takes_the_mark_away_and_the_number_is_bounded() {
    let mut runs = Runs::default();
    let row = recorded::run_rows().remove(0);
    runs.load((0..8).map(|i| RunRow { id: format!("r{i}"), ..row.clone() }).collect());
    runs.mark().unwrap();
    runs.mark().unwrap();
    assert!(runs.marked.is_empty());
    for _ in 0..MOST_MARKED {
        runs.mark().unwrap();
        runs.step(1);
    }
    assert!(runs.mark().unwrap_err().contains("6 runs"));
}

#[test]
fn curves_are_read_off_events() {
    let curves = Curves::of(&recorded::demo(120));
    assert_eq!(curves.loss.len(), 120);
    assert!(!curves.val.is_empty());
}
