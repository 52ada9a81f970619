//! Learning rates against PyTorch's and transformers' schedulers, update by update.

use tui_train::config::{ScheduleConfig, ScheduleName, schedule};

use super::{number, numbers, read};

/// Relative: both sides are f64 and differ in the order of a few operations.
const TOLERANCE: f64 = 1e-12;

fn compare(case: &str, schedule: &ScheduleConfig, total: u64, expected: &[f64]) {
    for (update, expected) in (1..=total).zip(expected) {
        let ours = schedule::rate(schedule, 1e-3, total, update);
        assert!(
            (ours - expected).abs() <= TOLERANCE * 1e-3,
            "{case}, update {update}: {ours}, expected {expected}"
        );
    }
}

#[test]
fn rates_are_those_of_the_reference_schedulers() {
    let mut compared = 0;
    for case in read("lr_schedules.json")["cases"].as_array().unwrap() {
        let (warmup, total) = (number(&case["warmup"]) as u64, number(&case["total"]) as u64);
        // A warm-up that does not end is refused before a run starts.
        if warmup >= total {
            continue;
        }
        let name = format!("warm-up {warmup} of {total}");
        let shape =
            |name, start_factor| ScheduleConfig { name, warmup_updates: warmup, start_factor, min_lr: 0.0 };
        let cosine = numbers(&case["hf_cosine_with_warmup"]["lr_used_by_update"]);
        compare(&format!("cosine, {name}"), &shape(ScheduleName::Cosine, 0.0), total, &cosine);
        let linear = numbers(&case["hf_linear_with_warmup"]["lr_used_by_update"]);
        compare(&format!("linear, {name}"), &shape(ScheduleName::Linear, 0.0), total, &linear);
        // Without a warm-up PyTorch 2.9's SequentialLR keeps the start factor for the whole run; we start at the rate.
        if warmup > 0 {
            let torch = numbers(&case["torch_sequential_linear0p1_cosine"]["lr_used_by_update"]);
            compare(&format!("torch, {name}"), &shape(ScheduleName::Cosine, 0.1), total, &torch);
        }
        compared += 1;
    }
    assert!(compared >= 6, "{compared} cases compared");
}
