//! What the table shows, and in which order.

use super::*;
use crate::app::recorded;

fn table(optimizer: &str) -> Tensors {
    let mut table = Tensors::default();
    table.merge(recorded::state_report(optimizer, 50), "log");
    table
}

#[test]
fn a_parameter_has_a_line_for_every_state_tensor() {
    let table = table("adafactor");
    let lines = table.lines();
    let q_proj: Vec<_> = lines
        .iter()
        .filter(|line| line.parameter.name == "model.layers.0.self_attn.q_proj.weight")
        .filter_map(|line| line.state.map(|(name, _)| name))
        .collect();
    assert_eq!(q_proj, ["exp_avg_sq_col", "exp_avg_sq_row"]);
}

#[test]
fn an_optimizer_without_state_still_lists_its_parameters() {
    let table = table("sgd");
    assert_eq!(table.lines().len(), 20);
    assert!(table.lines().iter().all(|line| line.state.is_none()));
}

#[test]
fn the_filter_takes_text_and_globs() {
    let mut table = table("adamw");
    let count = |table: &mut Tensors, text: &str| {
        table.filter = TextLine::new(text);
        table.lines().len()
    };
    assert_eq!(count(&mut table, "Q_PROJ"), 4);
    assert_eq!(count(&mut table, "*layers.1*proj.weight"), 14);
    assert_eq!(count(&mut table, "nothing"), 0);
    count(&mut table, "[a");
    assert!(table.filter_error().unwrap().contains("glob"));
}

#[test]
fn sorting_by_a_number_puts_the_largest_first() {
    let mut table = table("adamw");
    while table.sort != Column::Rms {
        table.sort_step(true);
    }
    let rms: Vec<f64> = table
        .lines()
        .iter()
        .filter_map(|line| line.state.and_then(|(_, state)| state.stats).map(|stats| stats.rms))
        .collect();
    assert!(rms.len() > 10 && rms.windows(2).all(|pair| pair[0] >= pair[1]));
}

#[test]
fn layers_are_groups_that_can_be_folded_and_order_holds_within_them() {
    assert_eq!(layer("model.layers.11.mlp.up_proj.weight"), "model.layers.11");
    assert_eq!((layer("model.norm.weight"), layer("weight")), ("model.norm", "weight"));
    let mut table = table("adafactor");
    let flat = table.lines().len();
    table.grouped = true;
    let layers: Vec<String> =
        table.lines().iter().filter_map(|line| line.group.map(|group| group.layer.to_owned())).collect();
    assert_eq!(layers, ["model.embed_tokens", "model.layers.0", "model.layers.1", "model.norm"]);
    assert_eq!(table.lines().len(), flat + layers.len());
    let told = |table: &Tensors, pick: fn(&Group<'_>) -> u64| -> u64 {
        table.lines().iter().filter_map(|line| line.group.as_ref().map(pick)).sum()
    };
    let report = table.report.clone().unwrap();
    assert_eq!(told(&table, |group| group.bytes), report.bytes(), "with the counters of updates");
    assert_eq!(report.bytes(), 12_448);
    assert_eq!(told(&table, |group| group.elements), report.elements());
    while table.sort != Column::Rms {
        table.sort_step(true);
    }
    let lines = table.lines();
    let within = lines.split(|line| line.group.is_some()).map(|part| {
        part.iter().filter_map(|line| line.state.and_then(|(_, state)| state.stats)).map(|stats| stats.rms)
    });
    assert!(within.clone().all(|part| part.is_sorted_by(|a, b| a >= b)));
    assert_eq!(within.map(Iterator::count).sum::<usize>(), flat);
    assert!(
        !{
            table.selected = 1;
            table.fold()
        },
        "a tensor's line"
    );
    table.selected = 0;
    assert!(table.fold());
    let folded = table.lines();
    assert!(folded[0].group.unwrap().folded && folded[1].group.is_some());
    assert!(table.fold() && table.lines().len() == flat + layers.len());
}

#[test]
fn how_far_an_rms_has_come_is_told_after_the_next_update() {
    let mut table = table("adamw");
    assert!(!table.columns().contains(&Column::Change));
    let mut next = recorded::state_report("adamw", 51);
    for tensor in &mut next.tensors {
        tensor.state.values_mut().filter_map(|state| state.stats.as_mut()).for_each(|stats| stats.rms *= 1.5);
    }
    table.merge(next.clone(), "live");
    // The same update again changes nothing.
    table.merge(next, "live");
    assert!(table.columns().contains(&Column::Change));
    assert!(table.lines().iter().all(|line| (line.change().unwrap() - 0.5).abs() < 1e-9));
}

#[test]
fn a_table_of_thousands_of_tensors_is_put_in_order_without_delay() {
    let mut table = table("adamw");
    let report = table.report.as_mut().unwrap();
    let some = report.tensors.clone();
    report.tensors = (0..4000)
        .map(|at| TensorState { name: format!("model.layers.{at}.weight"), ..some[at % some.len()].clone() })
        .collect();
    let newest = StateReport { update: 60, ..report.clone() };
    let start = std::time::Instant::now();
    table.merge(newest, "log");
    for column in Column::ALL {
        table.sort = column;
        assert_eq!(table.lines().len(), 8000);
    }
    // A debug build on a busy machine; quadratic work would take minutes.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn new_statistics_of_some_tensors_leave_the_others() {
    let mut table = table("adamw");
    let before = table.lines().len();
    let mut some = recorded::state_report("adamw", 60);
    some.tensors.truncate(1);
    table.merge(some, "live");
    assert_eq!(table.lines().len(), before);
    let report = table.report.as_ref().unwrap();
    assert_eq!((report.update, report.tensors[0].step, report.tensors[1].step), (60, 60, 50));
}

#[test]
fn columns_of_figures_are_there_where_the_optimizer_has_them() {
    let has = |optimizer: &str| {
        let columns = table(optimizer).columns();
        (columns.contains(&Column::Error), columns.contains(&Column::Untouched))
    };
    assert_eq!(has("adafactor"), (true, true));
    assert_eq!(has("adamw8bit"), (true, true));
    assert_eq!(has("adamw"), (false, true));
    assert_eq!(has("sgd"), (false, false));
    let mut table = table("adamw8bit");
    while table.sort != Column::Error {
        table.sort_step(true);
    }
    let errors: Vec<f64> = table.lines().iter().filter_map(Line::error).collect();
    assert!(errors.len() > 10 && errors.windows(2).all(|pair| pair[0] >= pair[1]));
    let mut without = self::table("sgd");
    (0..40).for_each(|_| without.sort_step(true));
    assert_ne!(without.sort, Column::Error, "no order by what is not there");
}

#[test]
fn shared_state_stays_and_is_counted_once() {
    let mut table = table("adamw8bit");
    let all = table.report.as_ref().unwrap().bytes();
    let mut some = recorded::state_report("adamw8bit", 60);
    some.tensors.truncate(1);
    some.shared.clear();
    table.merge(some, "live");
    let report = table.report.as_ref().unwrap();
    assert_eq!((report.bytes(), report.shared.len(), report.update), (all, 2, 60));
}

#[test]
fn what_was_measured_of_an_update_outlives_the_reading_of_a_checkpoint() {
    let mut table = table("adafactor");
    let mut stored = recorded::state_report("adafactor", 50);
    for tensor in &mut stored.tensors {
        (tensor.update_ratio, tensor.figures) = (None, [(figures::ROWS_NEVER_TOUCHED.into(), 3.0)].into());
    }
    let mut opened = stored.tensors[0].clone();
    table.merge(stored, "last checkpoint");
    let told = &recorded::state_report("adafactor", 50).tensors[0];
    let kept = &table.report.as_ref().unwrap().tensors[0];
    assert_eq!(kept.update_ratio, told.update_ratio);
    assert_eq!(kept.figures[figures::FACTORIZATION_ERROR], told.figures[figures::FACTORIZATION_ERROR]);
    assert_eq!(kept.figures[figures::ROWS_NEVER_TOUCHED], 3.0, "what the checkpoint says itself");
    table.complete(&mut opened);
    assert_eq!(&opened, kept);
}

#[test]
fn what_a_single_parameter_was_measured_at_stays_with_it() {
    let mut table = table("adafactor");
    let mut live = recorded::state_report("adafactor", 70);
    live.tensors.truncate(1);
    live.tensors[0].measured_at = Some(69);
    let name = live.tensors[0].name.clone();
    table.merge(live, "live");
    let kept = |table: &Tensors| {
        let report = table.report.as_ref().unwrap();
        report.tensors.iter().find(|tensor| tensor.name == name).unwrap().measured_at
    };
    assert_eq!(kept(&table), Some(69));
    let mut stored = recorded::state_report("adafactor", 70);
    stored.tensors.iter_mut().for_each(|tensor| tensor.update_ratio = None);
    table.merge(stored, "last checkpoint");
    assert_eq!(kept(&table), Some(69), "a checkpoint measures nothing");
    table.merge(recorded::state_report("adafactor", 100), "log");
    assert_eq!(kept(&table), None, "the report's own update");
}

#[test]
fn only_the_names_in_view_are_asked_for() {
    let mut table = table("adamw");
    table.step(1000);
    assert_eq!(table.in_view(4).len(), 2);
    assert!(table.in_view(4).contains(&"model.norm.weight".to_owned()));
}
