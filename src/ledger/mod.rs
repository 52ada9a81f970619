//! Pure accounting of memory: the shapes of a model, and the elements and bytes of its parameters, gradients
//! and optimizer state; and the operations that a model asks for. Exact but for the activations, which are an estimate and carry `~` wherever shown.

pub mod activations;
pub mod advice;
pub mod flops;
pub mod shapes;
pub mod state;

use crate::{
    config::{Config, DeviceName, OptimizerName, Precision},
    protocol::Ledger,
};

pub use flops::Flops;
pub use shapes::{ParameterShape, Role, parameters};
pub use state::{Element, StateShape, is_quantized, shared_state, state_of, takes_muon};

/// Bytes of one f32.
pub const F32: u64 = 4;

/// The ledger of a run with this configuration.
pub fn ledger(config: &Config) -> Ledger {
    ledger_for(config, config.optimizer.name)
}

/// The ledger of the same run with another optimizer.
pub fn ledger_for(config: &Config, optimizer: OptimizerName) -> Ledger {
    with(config, &parameters(&config.model), optimizer)
}

fn with(config: &Config, parameters: &[ParameterShape], optimizer: OptimizerName) -> Ledger {
    let mut chosen = config.optimizer.clone();
    chosen.name = optimizer;
    let own = parameters.iter().flat_map(|parameter| state_of(&chosen, parameter));
    let (state_elements, state_bytes) = own
        .chain(shared_state(&chosen, parameters))
        .fold((0, 0), |(elements, bytes), state| (elements + state.elements(), bytes + state.bytes()));
    let count: u64 = parameters.iter().map(ParameterShape::elements).sum();
    // Passes in bf16 see a copy of all parameters but the norms', and leave gradients of its size on the tape.
    let copied: u64 = match config.train.precision {
        Precision::F32 => 0,
        Precision::Bf16 => {
            parameters.iter().filter(|p| Role::of(&p.name) != Role::Norm).map(|p| p.elements()).sum()
        }
    };
    let copy_bytes = copied * Precision::Bf16.bytes();
    let gradient_bytes = count * F32;
    let parameter_bytes = gradient_bytes + copy_bytes;
    let accumulates = config.train.accumulate > 1;
    let accumulation_bytes = if accumulates { gradient_bytes - copied * F32 + copy_bytes } else { 0 };
    let activation_bytes_estimated = activations::estimate(config);
    Ledger {
        parameters: count,
        parameter_tensors: parameters.len() as u64,
        parameter_bytes,
        gradient_bytes,
        accumulation_bytes,
        state_elements,
        state_bytes,
        activation_bytes_estimated,
        total_bytes_estimated: (parameter_bytes + gradient_bytes + accumulation_bytes + state_bytes)
            .saturating_add(activation_bytes_estimated),
    }
}

/// The ledger of every optimizer, in the order of [`OptimizerName::ALL`].
pub fn all(config: &Config) -> Vec<(OptimizerName, Ledger)> {
    let parameters = parameters(&config.model);
    OptimizerName::ALL.into_iter().map(|name| (name, with(config, &parameters, name))).collect()
}

/// The same where `auto` comes to that device: what the passes keep depends on it.
pub fn all_where(config: &Config, auto: Option<DeviceName>) -> Vec<(OptimizerName, Ledger)> {
    match auto.filter(|_| config.train.device == DeviceName::Auto) {
        None => all(config),
        Some(device) => {
            let mut settled = config.clone();
            settled.train.device = device;
            all(&settled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn what_auto_comes_to_counts_and_a_device_that_was_named_stays() {
        let config = |device: &str| {
            let layers = Layers::new().with_assignment(&format!("train.device={device}")).unwrap();
            layers.resolve().unwrap().config
        };
        let cpu = Some(DeviceName::LibtorchCpu);
        let [auto, flex, libtorch] = ["auto", "flex", "libtorch-cpu"].map(config);
        assert_eq!(all_where(&auto, cpu), all(&libtorch));
        assert_ne!(all_where(&auto, cpu), all(&flex));
        assert_eq!(all_where(&flex, cpu), all(&flex));
        assert_eq!(all_where(&auto, None), all(&flex), "until it is known");
    }
}
