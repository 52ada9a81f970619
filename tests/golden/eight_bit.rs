//! 8-bit AdamW against a restatement of bitsandbytes' CUDA kernels, made with its own quantisation map.

use std::collections::BTreeSet;

use burn::tensor::{DType, Tensor, TensorData};
use serde_json::{Value, json};
use tui_train::optim::{
    self, Entry, ParameterUpdates, Value as StateValue, driver::Target, quantize::DynamicMap,
};

use super::{
    numbers,
    optimizers::{compare, tensor, values},
    read, trace,
};

/// Absolute, on parameters, as for every other optimizer.
const PARAMS: f64 = 2e-6;
/// Share of the rate, on parameters one of whose codes has been the neighbour of the expected one: neighbours differ by
/// up to a few hundredths of the moment, and the update is about the rate times the one over the root of the other.
const AFTER_A_NEIGHBOUR: f64 = 0.03;
/// Codes that may be neighbours: an f32 quotient that rounds to the other side of a midpoint is rare.
const NEIGHBOURS: usize = 3;
/// Relative, on the largest value of a block.
const ABSMAX: f64 = 1e-5;

#[test]
fn the_map_is_that_of_bitsandbytes() {
    let document = read("dynamic_qmap.json");
    for (map, name) in [(DynamicMap::signed(), "signed"), (DynamicMap::unsigned(), "unsigned")] {
        let expected = numbers(&document[name]);
        let ours: Vec<f64> = map.values().iter().map(|&value| f64::from(value)).collect();
        // Seven digits were written.
        let wrong = compare(name, &ours, &expected, |expected| 2e-7 * expected.abs());
        assert_eq!(wrong, None);
    }
}

#[test]
fn small_tensors_quantised_by_force() {
    for file in ["adamw8bit_bnb_tiny_quantised_wd0p0.json", "adamw8bit_bnb_tiny_quantised_wd0p1.json"] {
        let document = read(file);
        let inputs = read("inputs.json");
        for name in document["tensors"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            let shape: Vec<usize> =
                numbers(&inputs["shapes"][name]).iter().map(|&axis| axis as usize).collect();
            for mut optimizer in everywhere(&document) {
                let mut neighbours = BTreeSet::new();
                let mut param = tensor(&inputs["params"][name], DType::F32);
                for (update, expected) in
                    document["cuda_semantics_restated"].as_array().unwrap().iter().enumerate()
                {
                    let grad = tensor(&inputs["grads"][update][name], DType::F32);
                    param = step(&mut *optimizer, &document, name, &shape, param, grad);
                    let at = format!("{file}, {name} after update {}", update + 1);
                    let all = [[0, param.dims()[0]]];
                    let of = |key: &str| json!([expected[key][name]]);
                    let expected = Expected {
                        params: of("params"),
                        state: [of("state1"), of("state2")],
                        absmax: [expected["absmax1"][name].clone(), expected["absmax2"][name].clone()],
                    };
                    neighbours.extend(check(&at, &expected, &all, &optimizer.entries(name)));
                    check_params(&at, &expected, &all, &param, &neighbours);
                }
            }
        }
    }
}

#[test]
fn a_tensor_of_seventeen_blocks_the_last_one_short() {
    let document = read("adamw8bit_bnb_4096plus.json");
    let name = "w65x64";
    let shape = [65, 64];
    let ranges: Vec<[usize; 2]> = serde_json::from_value(document["ranges"].clone()).unwrap();
    let count = 65 * 64;
    let flat = |values: Vec<f32>| {
        Tensor::<1>::from_data(TensorData::new(values, [count]), &crate::support::device())
    };
    // The document's `input_formula`.
    for mut optimizer in everywhere(&document) {
        let mut param =
            flat((0..count).map(|i| ((i * 31 + 7) % 201) as f32 - 100.0).map(|x| x / 128.0).collect());
        let mut neighbours = BTreeSet::new();
        for (update, expected) in
            document["cases"][name]["cuda_semantics_restated"].as_array().unwrap().iter().enumerate()
        {
            let gradient = |i: usize| {
                let whole = ((i * 73 + update * 29 + 11) % 257) as f32 - 128.0;
                whole / 1024.0 * 0.5_f32.powi((i % 5) as i32)
            };
            let grad = flat((0..count).map(gradient).collect());
            param = step(&mut *optimizer, &document, name, &shape, param, grad);
            let expected = Expected {
                params: expected["params"].clone(),
                state: [expected["state1"].clone(), expected["state2"].clone()],
                absmax: [expected["absmax1"].clone(), expected["absmax2"].clone()],
            };
            let at = format!("{name} after update {}", update + 1);
            neighbours.extend(check(&at, &expected, &ranges, &optimizer.entries(name)));
            check_params(&at, &expected, &ranges, &param, &neighbours);
        }
    }
}

/// The optimizer with its codes in host memory, and where a device can hold them, there.
fn everywhere(document: &Value) -> Vec<Box<dyn ParameterUpdates>> {
    let config = trace::adamw8bit(&document["config"]);
    let mut all = vec![optim::build(&config)];
    if cfg!(feature = "libtorch") {
        let rule = optim::adamw8bit::AdamW8bit::new(&config.adamw8bit).with_codes_on_device();
        all.push(Box::new(optim::Driver::new(rule, optim::NoDecay::new(&config.no_decay))));
    }
    all
}

fn step(
    optimizer: &mut dyn ParameterUpdates,
    document: &Value,
    name: &str,
    shape: &[usize],
    param: Tensor<1>,
    grad: Tensor<1>,
) -> Tensor<1> {
    let lr = document["config"]["lr"].as_f64().unwrap();
    optimizer.update(Target { name, shape, lr }, param, grad, false).param
}

/// Parts of tensors, one list of numbers a range.
struct Expected {
    params: Value,
    state: [Value; 2],
    absmax: [Value; 2],
}

/// Codes are the expected ones or their neighbours; returns the places of the neighbours.
fn check(at: &str, expected: &Expected, ranges: &[[usize; 2]], entries: &[Entry]) -> Vec<usize> {
    let entry = |name: &str| &entries.iter().find(|entry| entry.name == name).unwrap().value;
    let mut neighbours = Vec::new();
    for (moment, (codes, absmax)) in expected.state.iter().zip(&expected.absmax).enumerate() {
        let StateValue::Codes(ours) = entry(["state1", "state2"][moment]) else { panic!("{at}: no codes") };
        let scales: Vec<f64> = ours.absmax.read().iter().map(|&scale| f64::from(scale)).collect();
        assert_eq!(compare(at, &scales, &numbers(absmax), |scale| ABSMAX * scale), None);
        let our_codes = ours.codes.read();
        for (range, expected) in ranges.iter().zip(codes.as_array().unwrap()) {
            for (place, code) in (range[0]..range[1]).zip(numbers(expected)) {
                let difference = (f64::from(our_codes[place]) - code).abs();
                // A block of zeros: any code stands for zero.
                if scales[place / ours.blocksize] == 0.0 || difference == 0.0 {
                    continue;
                }
                assert!(difference <= 1.0, "{at}: code {place} is {}, not {code}", our_codes[place]);
                neighbours.push(place);
            }
        }
    }
    neighbours
}

fn check_params(
    at: &str,
    expected: &Expected,
    ranges: &[[usize; 2]],
    param: &Tensor<1>,
    neighbours: &BTreeSet<usize>,
) {
    assert!(neighbours.len() <= NEIGHBOURS, "{at}: neighbours of the expected codes at {neighbours:?}");
    let param = values(param);
    for (range, expected) in ranges.iter().zip(expected.params.as_array().unwrap()) {
        for (place, expected) in (range[0]..range[1]).zip(numbers(expected)) {
            let tolerance = if neighbours.contains(&place) { AFTER_A_NEIGHBOUR * 1e-2 } else { PARAMS };
            let difference = (param[place] - expected).abs();
            assert!(difference <= tolerance, "{at}[{place}]: {}, expected {expected}", param[place]);
        }
    }
}
