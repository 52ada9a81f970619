//! Every optimizer trace: parameters and state after each of its updates.

use burn::tensor::{DType, Tensor, TensorData};
use serde_json::Value;
use tui_train::optim::{Entry, Value as StateValue, driver::Target};

use super::{
    folder, number, numbers, read,
    trace::{self, Subject},
};

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
            trace::Plan::Run(subject) => {
                ran += 1;
                wrong.extend(
                    differences(&document, subject).into_iter().map(|what| format!("{file}: {what}")),
                );
            }
        }
    }
    println!("{ran} traces run; not run:\n  {}", skipped.join("\n  "));
    assert!(ran > 0, "no trace in {} is of an optimizer there is", folder().display());
    if std::env::var_os("GOLDEN_DIR").is_none() {
        assert_eq!(
            (ran, skipped.len()),
            (24, 7),
            "a trace that was run is not run any more, or the other way round"
        );
    }
    assert!(wrong.is_empty(), "{} differences:\n  {}", wrong.len(), wrong.join("\n  "));
}

#[test]
fn a_trace_of_an_optimizer_that_is_not_here_is_said_not_run() {
    let document = serde_json::json!({"optimizer": "torch.optim.Rprop", "config": {}, "trace": []});
    let trace::Plan::Skip(why) = trace::plan(&document) else { panic!("it was run") };
    assert!(why.contains("torch.optim.Rprop"), "{why}");
}

/// Everything in which we differ from the trace by more than the tolerance.
fn differences(document: &Value, mut subject: Subject) -> Vec<String> {
    let inputs = read(document["inputs"].as_str().unwrap());
    let dtype = if document["dtype"] == "bfloat16" { DType::BF16 } else { DType::F32 };
    let [absolute, relative] = subject.params;
    let mut wrong = Vec::new();
    for name in document["tensors"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let shape: Vec<usize> = numbers(&inputs["shapes"][name]).iter().map(|&axis| axis as usize).collect();
        let mut param = tensor(&inputs["params"][name], dtype);
        for (update, expected) in document["trace"].as_array().unwrap().iter().enumerate() {
            let grad = tensor(&inputs["grads"][update][name], dtype);
            let target = Target { name, shape: &shape, lr: subject.lr };
            param = subject.optimizer.update(target, param, grad, false).param;
            let at = format!("{name} after update {}", update + 1);
            let tolerance = |expected: f64| absolute + relative * expected.abs();
            wrong.extend(compare(&at, &values(&param), &numbers(&expected["params"][name]), tolerance));
            wrong.extend(compare_state(&at, &subject, name, &expected["state"][name]));
        }
    }
    wrong
}

/// Every state value of the trace must be there under the same name, and no other.
fn compare_state(at: &str, subject: &Subject, parameter: &str, expected: &Value) -> Vec<String> {
    let entries = subject.optimizer.entries(parameter);
    let ours = |theirs: &str| {
        subject
            .renamed
            .iter()
            .find(|(name, _)| *name == theirs)
            .map_or_else(|| theirs.to_owned(), |(_, ours)| (*ours).to_owned())
    };
    let expected = expected.as_object().unwrap();
    let mut wrong = Vec::new();
    for (name, value) in expected.iter().filter(|(_, value)| !value.is_null()) {
        // A count of updates that is not kept with the state is the driver's.
        if name == "step" && !entries.iter().any(|entry| entry.name == "step") {
            let counted = subject.optimizer.slot(parameter).map_or(0, |(_, updates)| updates);
            wrong.extend(compare(&format!("{at}, step"), &[counted as f64], &[number(value)], |_| 0.0));
            continue;
        }
        let Some(entry) = entries.iter().find(|entry| entry.name == ours(name)) else {
            wrong.push(format!("{at}: no state `{name}`"));
            continue;
        };
        let at = format!("{at}, {name}");
        let largest = value["data"]
            .as_array()
            .map_or(0.0, |all| all.iter().map(number).fold(0.0, |a: f64, b| a.max(b.abs())));
        let relative = |expected: f64| subject.state[0] * expected.abs() + subject.state[1] * largest;
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
            (StateValue::Host { .. } | StateValue::Codes(_), _) => {
                wrong.push(format!("{at}: is not on a device"));
            }
            (StateValue::Number(ours), _) => wrong.extend(compare(&at, &[*ours], &[number(value)], relative)),
        }
    }
    let known = |entry: &&Entry| expected.keys().any(|name| ours(name) == entry.name);
    wrong.extend(
        entries
            .iter()
            .filter(|entry| !known(entry))
            .map(|entry| format!("{at}: surplus state `{}`", entry.name)),
    );
    wrong
}

pub(super) fn compare(
    at: &str,
    ours: &[f64],
    expected: &[f64],
    tolerance: impl Fn(f64) -> f64,
) -> Option<String> {
    if ours.len() != expected.len() {
        return Some(format!("{at}: {} values, expected {}", ours.len(), expected.len()));
    }
    let off = ours.iter().zip(expected).position(|(&a, &b)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        let close = b.is_finite() && (a - b).abs() <= tolerance(b);
        !same && !close
    })?;
    Some(format!("{at}[{off}]: {:e}, expected {:e}", ours[off], expected[off]))
}

pub(super) fn tensor(value: &Value, dtype: DType) -> Tensor<1> {
    let values: Vec<f32> = numbers(value).into_iter().map(|value| value as f32).collect();
    let count = values.len();
    Tensor::<1>::from_data(TensorData::new(values, [count]), &crate::support::device()).cast(dtype)
}

pub(super) fn values(tensor: &Tensor<1>) -> Vec<f64> {
    tensor.clone().cast(DType::F32).into_data().iter::<f32>().map(f64::from).collect()
}
