use super::*;
use crate::config::Layers;

fn config(set: &[&str]) -> OptimizerConfig {
    Layers::new().with_assignments(set).unwrap().resolve().unwrap().config.optimizer
}

const NAME: &str = "model.layers.0.self_attn.q_proj.weight";

fn moments(shape: &[usize]) -> (Vec<f32>, Vec<f32>) {
    let first: Vec<f32> = (0..count(shape)).map(|i| ((i * 37 % 101) as f32 - 50.0) / 700.0).collect();
    let second = first.iter().enumerate().map(|(i, m)| m * m + (i % 7) as f32 * 1e-4).collect();
    (first, second)
}

fn adamw(shape: &[usize]) -> Values {
    let (first, second) = moments(shape);
    Values::from([
        ("step".to_owned(), Stored::number(3.0)),
        ("exp_avg".to_owned(), Stored::f32(shape, &first)),
        ("exp_avg_sq".to_owned(), Stored::f32(shape, &second)),
    ])
}

fn converted(
    from: &[&str],
    to: &[&str],
    name: &str,
    shape: &[usize],
    values: Values,
) -> (Option<Values>, Option<String>) {
    let (from, to) = (config(from), config(to));
    let mut conversion = Conversion::new(&from, &to);
    let values = conversion.apply(name, shape, values, || 0.25).unwrap();
    (values, conversion.told())
}

#[test]
fn state_of_the_same_optimizer_stays_as_it_is_and_nothing_is_said() {
    for set in [&[][..], &["optimizer.lr=5e-4"]] {
        let (values, told) = converted(&[], set, NAME, &[64, 64], adamw(&[64, 64]));
        assert_eq!((values, told), (Some(adamw(&[64, 64])), None));
    }
}

#[test]
fn adamw_becomes_codes_and_codes_become_adamw_again() {
    let shape = [80, 64];
    let (values, told) = converted(&[], &["optimizer.name=adamw8bit"], NAME, &shape, adamw(&shape));
    let (values, (first, second)) = (values.unwrap(), moments(&shape));
    assert!(told.unwrap().contains("quantised to 8 bits (1)"));
    // Directly: each block by its largest, each quotient by the nearest of all values.
    for (state, absmax, map, exact) in [
        ("state1", "absmax1", DynamicMap::signed(), &first),
        ("state2", "absmax2", DynamicMap::unsigned(), &second),
    ] {
        let scales = values[absmax].floats().unwrap();
        for (block, (of, codes)) in exact.chunks(256).zip(values[state].bytes.chunks(256)).enumerate() {
            let largest = of.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
            assert_eq!(scales[block], largest, "{absmax}");
            for (value, &code) in of.iter().zip(codes) {
                let distance = |code: u8| (map.value(code) - value / largest).abs();
                let nearest = (0..=255).map(distance).fold(f32::INFINITY, f32::min);
                assert!(distance(code) <= nearest + 1e-6 || *value == 0.0, "{state} {value} {code}");
            }
        }
    }
    assert_eq!(values.len(), 5);
    let (back, told) = converted(&["optimizer.name=adamw8bit"], &[], NAME, &shape, values.clone());
    let back = back.unwrap();
    assert!(told.unwrap().contains("in f32 (1)"));
    let (codes, scales) = (&values["state1"].bytes, values["absmax1"].floats().unwrap());
    let expected: Vec<f32> = codes
        .iter()
        .enumerate()
        .map(|(i, &code)| DynamicMap::signed().value(code) * scales[i / 256])
        .collect();
    assert_eq!(back["exp_avg"].floats().unwrap(), expected);
    assert_eq!(back["step"], Stored::number(3.0));
}

#[test]
fn small_tensors_stay_f32_and_another_block_size_cuts_again() {
    let small = [16, 16];
    let (values, _) = converted(&[], &["optimizer.name=adamw8bit"], NAME, &small, adamw(&small));
    assert_eq!(values.unwrap()["state1"], adamw(&small)["exp_avg"]);
    let (from, shape) = (["optimizer.name=adamw8bit"], [64, 64]);
    let codes = converted(&[], &from, NAME, &shape, adamw(&shape)).0.unwrap();
    let same = converted(&from, &from, NAME, &shape, codes.clone());
    assert_eq!(same, (Some(codes.clone()), None));
    let (cut, told) =
        converted(&from, &["optimizer.name=adamw8bit", "optimizer.blocksize=64"], NAME, &shape, codes);
    assert_eq!(cut.unwrap()["absmax1"].shape, [64]);
    assert!(told.is_some());
}

#[test]
fn the_second_moment_becomes_row_and_column_means_without_its_bias() {
    let to = ["optimizer.name=adafactor"];
    let shape = [3, 5];
    let (values, told) = converted(&[], &to, NAME, &shape, adamw(&shape));
    let (values, second) = (values.unwrap(), moments(&shape).1);
    assert!(told.unwrap().contains("row and column means"));
    let corrected = 1.0 - 0.999_f64.powi(3);
    for r in 0..3 {
        let mean = (0..5).map(|c| f64::from(second[r * 5 + c])).sum::<f64>() / 5.0 / corrected;
        let ours = f64::from(values["exp_avg_sq_row"].floats().unwrap()[r]);
        assert!((ours / mean - 1.0).abs() < 1e-6, "{ours} {mean}");
    }
    for c in 0..5 {
        let mean = (0..3).map(|r| f64::from(second[r * 5 + c])).sum::<f64>() / 3.0 / corrected;
        let ours = f64::from(values["exp_avg_sq_col"].floats().unwrap()[c]);
        assert!((ours / mean - 1.0).abs() < 1e-6, "{ours} {mean}");
    }
    assert_eq!(values["RMS"], Stored::number(0.25));
    let vector = converted(&[], &to, "model.norm.weight", &[4], adamw(&[4])).0.unwrap();
    let expected = f64::from(moments(&[4]).1[3]) / corrected;
    assert!((f64::from(vector["exp_avg_sq"].floats().unwrap()[3]) / expected - 1.0).abs() < 1e-6);
    // A row that no gradient has reached must not become a division by zero.
    let mut untouched = adamw(&[2, 2]);
    untouched.insert("exp_avg_sq".into(), Stored::f32(&[2, 2], &[0.0; 4]));
    let row = converted(&[], &to, NAME, &[2, 2], untouched).0.unwrap()["exp_avg_sq_row"].floats().unwrap();
    assert_eq!(row, [1e-30, 1e-30]);
}

#[test]
fn what_means_nothing_starts_empty_and_is_said() {
    let lion = Values::from([("exp_avg".to_owned(), Stored::f32(&[64, 64], &[0.5; 4096]))]);
    for (from, to, values) in [
        ("optimizer.name=lion", "optimizer.name=adamw", lion),
        ("optimizer.name=adamw", "optimizer.name=sgd", adamw(&[64, 64])),
        ("optimizer.name=adamw", "optimizer.name=muon", adamw(&[64, 64])),
        ("optimizer.name=adamw", "optimizer.name=lion", adamw(&[64, 64])),
    ] {
        let (state, told) = converted(&[from], &[to], NAME, &[64, 64], values);
        assert_eq!(state, None, "{from} {to}");
        assert!(told.unwrap().contains("starts empty (1)"));
    }
    let norm = "model.norm.weight";
    let (kept, _) = converted(&[], &["optimizer.name=muon"], norm, &[4], adamw(&[4]));
    assert_eq!(kept, Some(adamw(&[4])), "what Muon leaves to AdamW goes on");
}

#[test]
fn other_settings_of_one_optimizer_are_met() {
    let on = ["optimizer.adamw.amsgrad=true"];
    let (values, told) = converted(&[], &on, NAME, &[2, 2], adamw(&[2, 2]));
    assert_eq!(values.as_ref().unwrap()["max_exp_avg_sq"], adamw(&[2, 2])["exp_avg_sq"]);
    assert!(told.is_some());
    let (values, told) = converted(&on, &[], NAME, &[2, 2], values.unwrap());
    assert_eq!(values, Some(adamw(&[2, 2])));
    assert!(told.unwrap().contains("dropped"));
    let sgd = ["optimizer.name=sgd"];
    let with = ["optimizer.name=sgd", "optimizer.sgd.momentum=0.9"];
    assert_eq!(converted(&sgd, &with, NAME, &[2], Values::new()).0, None);
}
