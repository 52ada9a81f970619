//! What a recorded run says of its optimizer's state, and of one parameter opened; what a check of accumulation finds.

use std::collections::BTreeMap;

use super::{config, noise};
use crate::{
    config::ModelConfig,
    ledger::{self, Element},
    protocol::{
        AccumulationCheck, CodeUse, Deviation, Heat, Histogram, StateDetail, StateReport, StateTensor, Strip,
        TensorState, TensorStats, UpdateLook, state::figures,
    },
};

/// Statistics of every state tensor of the demo.
pub(crate) fn state_report(optimizer: &str, update: u64) -> StateReport {
    report_of(&config(&[]).model, optimizer, update)
}

/// Statistics of every state tensor of that model.
pub(super) fn report_of(model: &ModelConfig, optimizer: &str, update: u64) -> StateReport {
    let config = config(&[&format!("optimizer.name={optimizer}"), "optimizer.sgd.momentum=0.0"]);
    let tensors = ledger::parameters(model)
        .into_iter()
        .enumerate()
        .map(|(at, parameter)| {
            let state = ledger::state_of(&config.optimizer, &parameter)
                .into_iter()
                .map(|shape| {
                    let size = 1e-4 * (1.0 + noise(at as u64 * 31 + shape.name.len() as u64));
                    let signed = matches!(shape.name, "exp_avg" | "state1");
                    let stats = TensorStats {
                        min: if signed { -4.0 * size } else { size * 1e-6 },
                        max: size * 4.0,
                        mean: size * 0.3,
                        rms: size,
                        zeros: if at == 0 { 512 } else { 0 },
                        nonfinite: 0,
                    };
                    let tensor = StateTensor {
                        elements: shape.elements(),
                        bytes: shape.bytes(),
                        dtype: dtype(shape.element),
                        shape: shape.shape,
                        stats: Some(stats),
                    };
                    (shape.name.to_owned(), tensor)
                })
                .collect::<BTreeMap<_, _>>();
            TensorState {
                figures: figures_of(at as u64, &parameter.shape, &state),
                name: parameter.name,
                shape: parameter.shape,
                step: update,
                update_ratio: Some(1e-3 * (0.5 + noise(at as u64))),
                measured_at: None,
                state,
            }
        })
        .collect();
    let shared = ledger::shared_state(&config.optimizer, &ledger::parameters(model))
        .into_iter()
        .map(|shape| {
            let tensor = StateTensor {
                elements: shape.elements(),
                bytes: shape.bytes(),
                dtype: dtype(shape.element),
                shape: shape.shape,
                stats: None,
            };
            (shape.name.to_owned(), tensor)
        })
        .collect();
    StateReport { update, optimizer: optimizer.to_owned(), tensors, shared }
}

fn dtype(element: Element) -> String {
    match element {
        Element::F32 => "f32",
        Element::U8 => "u8",
    }
    .to_owned()
}

/// The figures that the optimizer would have measured, by what it keeps.
fn figures_of(at: u64, shape: &[usize], state: &BTreeMap<String, StateTensor>) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, value: f64| {
        found.insert(name.to_owned(), value);
    };
    let untouched = if at == 0 { 187.0 } else { 0.0 };
    if state.contains_key("exp_avg_sq_row") {
        add(figures::FACTORIZATION_ERROR, 0.2 + 0.6 * noise(at + 5));
        add(figures::ROWS_NEVER_TOUCHED, untouched);
    } else if state.get("state1").is_some_and(|state| state.dtype == "u8") {
        add(figures::QUANTIZATION_ERROR_1, 0.003 + 0.004 * noise(at + 5));
        add(figures::QUANTIZATION_ERROR_2, 0.008 + 0.009 * noise(at + 6));
    } else if shape.len() == 2 && (state.contains_key("exp_avg_sq") || state.contains_key("state2")) {
        add(figures::ROWS_NEVER_TOUCHED, untouched);
    }
    found
}

/// One parameter opened.
pub(crate) fn detail(optimizer: &str, name: &str) -> StateDetail {
    let report = state_report(optimizer, 300);
    let tensor = report.tensors.into_iter().find(|tensor| tensor.name == name).unwrap();
    let strips: Vec<Strip> = tensor
        .state
        .iter()
        .filter(|(_, state)| !state.shape.is_empty())
        .map(|(name, state)| {
            let length = *state.shape.last().unwrap();
            let value = |i: u64| 1e-6 * (12.0 * noise(i + name.len() as u64 * 1000) - 4.0).exp2();
            Strip {
                name: name.clone(),
                axis: if name.ends_with("_row") { "row" } else { "column" }.into(),
                length: length as u64,
                values: (0..length as u64).map(|i| if i == 5 { 1e-30 } else { value(i) }).collect(),
            }
        })
        .collect();
    let vector = |name: &str| {
        let strip = strips.iter().find(|strip| strip.name == name);
        strip.map(|strip| strip.values.clone())
    };
    let factors = vector("exp_avg_sq_row").zip(vector("exp_avg_sq_col"));
    let reconstructed = factors.map(|(row, col)| Heat::reconstructed(&row, &col, 256));
    let spread = |name: &str, length: u64, signed: bool| {
        let value = |i: u64| 1e-6 * (12.0 * noise(i + name.len() as u64 * 77) - 4.0).exp2();
        Histogram::of(name, 1, (0..length).map(|i| if signed && i % 2 == 1 { -value(i) } else { value(i) }))
    };
    let histograms =
        strips.iter().map(|strip| spread(&strip.name, strip.length, strip.name == "exp_avg")).collect();
    let codes = tensor.state.iter().filter(|(_, state)| state.dtype == "u8").map(|(name, state)| CodeUse {
        name: name.clone(),
        elements: state.elements,
        blocksize: 256,
        blocks: state.elements.div_ceil(256),
        empty_blocks: 0,
        smallest_scale: 1.3e-6,
        largest_scale: 4.7e-4,
        at_ends: state.elements / 128,
        at_zero: state.elements / 40,
        used: 211,
    });
    let codes = codes.collect();
    let squared_gradient = reconstructed.as_ref().map(|heat: &Heat| {
        let values = heat.values.iter().enumerate().map(|(i, v)| v * (0.4 + 1.2 * noise(i as u64))).collect();
        Heat { name: "gradient^2".into(), values, ..heat.clone() }
    });
    let error = reconstructed.as_ref().zip(squared_gradient.as_ref()).map(|(ours, truth)| {
        let values = ours.values.iter().zip(&truth.values).map(|(a, b)| (a - b).abs() / b).collect();
        Heat { name: "error".into(), values, ..truth.clone() }
    });
    let look = UpdateLook {
        step: 300,
        gradient: spread("gradient", 4096, true),
        update: spread("update", 4096, true),
        second_moment: reconstructed.clone(),
        squared_gradient,
        factorization_error: error.as_ref().map(|_| 0.412),
        error,
    };
    let look = Some(Box::new(look));
    StateDetail { update: 300, tensor, strips, reconstructed, histograms, codes, look }
}

/// What a check of accumulation found, of micro-batches with unequal targets.
pub(crate) fn check() -> AccumulationCheck {
    AccumulationCheck {
        schema: 1,
        model: "llama-nano".into(),
        device: "flex".into(),
        rows: 16,
        targets: 1_003,
        loss: [5.5476, 5.5476],
        grad_norm: [1.3121, 1.3121],
        largest_difference: 2.1e-8,
        largest_gradient: 0.0713,
        terms: 1024,
        tolerance: 1.09e-6,
        holds: true,
        naive_largest_difference: 4.02e-3,
        worst: vec![Deviation {
            name: "model.embed_tokens.weight".into(),
            difference: 2.1e-8,
            gradient: 0.0713,
        }],
        notes: vec!["dropout was switched off: it draws other masks for other micro-batches".into()],
    }
}
