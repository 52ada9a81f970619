//! Every optimizer trace: parameters and state after each of its updates.

use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::Value;
use tui_train::{
    config::OptimizerConfig,
    optim::{self, Entry, Value as StateValue},
};

use super::{folder, number, numbers, read, trace};

/// Absolute, on parameters: the reference's own rounding is up to 4.5e-7 (`max_abs_diff_vs_same_code_in_f64`), and
/// the order of f32 operations differs.
const PARAMS: f64 = 2e-6;
/// Relative, on state: two roundings of f32 and the f32 copies of the betas.
const STATE: f64 = 2e-5;
/// bf16 has 8 bits: one unit in the last place, relative.
const BF16: f64 = 1.0 / 128.0;

#[test]
fn traces_of_the_reference_libraries() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    files.sort();
    let (mut ran, mut skipped, mut wrong) = (0, Vec::new(), Vec::new());
    for file in files {
        let document = read(&file);
        if document.get("trace").is_none() {
            continue;
        }
        match trace::plan(&document) {
            trace::Plan::Skip(why) => skipped.push(format!("{file}: {why}")),
            trace::Plan::Run(optimizer) => {
                ran += 1;
                wrong.extend(
                    differences(&document, &optimizer).into_iter().map(|what| format!("{file}: {what}")),
                );
            }
        }
    }
    println!("{ran} traces run; not run:\n  {}", skipped.join("\n  "));
    assert!(ran > 0, "no trace in {} is of an optimizer there is", folder().display());
    assert!(wrong.is_empty(), "{} differences:\n  {}", wrong.len(), wrong.join("\n  "));
}

/// Everything in which we differ from the trace by more than the tolerance.
fn differences(document: &Value, config: &OptimizerConfig) -> Vec<String> {
    let inputs = read(document["inputs"].as_str().unwrap());
    let dtype = if document["dtype"] == "bfloat16" { DType::BF16 } else { DType::F32 };
    let mut optimizer = optim::build(config);
    let mut wrong = Vec::new();
    for name in document["tensors"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let shape: Vec<usize> = numbers(&inputs["shapes"][name]).iter().map(|&axis| axis as usize).collect();
        let mut param = tensor(&inputs["params"][name], dtype);
        for (update, expected) in document["trace"].as_array().unwrap().iter().enumerate() {
            let grad = tensor(&inputs["grads"][update][name], dtype);
            param = optimizer.update(name, &shape, config.lr(), param, grad);
            let at = format!("{name} after update {}", update + 1);
            let tolerance = |expected: f64| if dtype == DType::BF16 { BF16 * expected.abs() } else { PARAMS };
            wrong.extend(compare(&at, &values(&param), &numbers(&expected["params"][name]), tolerance));
            wrong.extend(compare_state(&at, &optimizer.entries(name), &expected["state"][name]));
        }
    }
    wrong
}

/// Every state value of the trace must be there under the same name, and no other.
fn compare_state(at: &str, entries: &[Entry], expected: &Value) -> Vec<String> {
    let expected = expected.as_object().unwrap();
    let mut wrong = Vec::new();
    for (name, value) in expected.iter().filter(|(_, value)| !value.is_null()) {
        let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
            wrong.push(format!("{at}: no state `{name}`"));
            continue;
        };
        let at = format!("{at}, {name}");
        let relative = |expected: f64| STATE * expected.abs();
        match (&entry.value, value.is_object()) {
            (StateValue::Tensor { values: ours, shape }, true) => {
                let expected_shape: Vec<usize> =
                    numbers(&value["shape"]).iter().map(|&axis| axis as usize).collect();
                if *shape != expected_shape {
                    wrong.push(format!("{at}: shape {shape:?}, expected {expected_shape:?}"));
                }
                wrong.extend(compare(&at, &values(ours), &numbers(&value["data"]), relative));
            }
            (StateValue::Tensor { values: ours, .. }, false) => {
                wrong.extend(compare(&at, &values(ours), &[number(value)], relative));
            }
            (StateValue::Number(ours), _) => wrong.extend(compare(&at, &[*ours], &[number(value)], relative)),
        }
    }
    let surplus = entries.iter().filter(|entry| !expected.contains_key(entry.name));
    wrong.extend(surplus.map(|entry| format!("{at}: surplus state `{}`", entry.name)));
    wrong
}

fn compare(at: &str, ours: &[f64], expected: &[f64], tolerance: impl Fn(f64) -> f64) -> Option<String> {
    if ours.len() != expected.len() {
        return Some(format!("{at}: {} values, expected {}", ours.len(), expected.len()));
    }
    let off = ours.iter().zip(expected).position(|(&a, &b)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        let close = (a - b).abs() <= tolerance(b);
        !same && !close
    })?;
    Some(format!("{at}[{off}]: {:e}, expected {:e}", ours[off], expected[off]))
}

fn tensor(value: &Value, dtype: DType) -> Tensor<1> {
    let values: Vec<f32> = numbers(value).into_iter().map(|value| value as f32).collect();
    let count = values.len();
    Tensor::<1>::from_data(TensorData::new(values, [count]), &Device::flex()).cast(dtype)
}

fn values(tensor: &Tensor<1>) -> Vec<f64> {
    tensor.clone().cast(DType::F32).into_data().iter::<f32>().map(f64::from).collect()
}
