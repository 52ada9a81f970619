//! `torch.optim.Muon` (Jordan et al. 2024) for the matrices of hidden layers, AdamW for everything else.
//!
//! ```text
//! m <- m + (1 - mu) (g - m)              momentum_buffer
//! u  = nesterov ? g + mu (m - g) : m
//! u <- orthogonal(u)                     Newton-Schulz, ns_steps times:  A = X X^T,  X <- a X + (b A + c A A) X
//! p <- p (1 - lr wd)
//! p <- p - lr f u                        f = sqrt(max(1, rows/columns)), or 0.2 sqrt(max(rows, columns))
//! ```
//! PyTorch iterates in bf16 whatever the parameter's type. Here each product is taken in f32 and rounded to bf16,
//! which is what a bf16 product with an f32 accumulator gives.

use burn::tensor::{DType, Tensor};
use thiserror::Error;

use super::{
    Entry, Figure, Kept, Optimizer, OptimizerState, StateError, Step,
    adamw::{AdamW, AdamWState},
    common, sums,
};
use crate::{
    config::{AdamWConfig, AdjustLr, MuonConfig},
    ledger,
};

/// `a`, `b`, `c` of the iteration: PyTorch's defaults.
const COEFFICIENTS: [f64; 3] = [3.4445, -4.775, 2.0315];

/// The rule.
#[derive(Debug, Clone)]
pub struct Muon {
    config: MuonConfig,
    /// For what is no hidden matrix.
    rest: AdamW,
    iterate_in: DType,
}

/// A model that Muon has nothing to do on.
#[derive(Debug, Error)]
#[error(
    "optimizer.name = \"muon\" is for matrices of hidden layers, and this model has none: choose another optimizer"
)]
pub struct NoMatrix;

/// Whether Muon updates any of these parameters, by name and shape.
///
/// # Errors
/// It updates none.
pub fn check(parameters: &[(String, Vec<usize>)]) -> Result<(), NoMatrix> {
    let any = parameters.iter().any(|(name, shape)| ledger::takes_muon(name, shape));
    if any { Ok(()) } else { Err(NoMatrix) }
}

/// State of one parameter.
#[derive(Debug, Clone)]
pub enum MuonState {
    /// Of the parameter's shape.
    Matrix {
        momentum_buffer: Tensor<1>,
    },
    Rest(AdamWState),
}

impl Muon {
    /// With these settings; the rate comes with each step.
    pub fn new(config: &MuonConfig) -> Self {
        let rest = AdamWConfig {
            lr: config.adamw_lr,
            betas: config.adamw_betas,
            eps: config.adamw_eps,
            weight_decay: config.adamw_weight_decay,
            amsgrad: false,
        };
        Self { config: config.clone(), rest: AdamW::new(&rest), iterate_in: DType::BF16 }
    }

    /// The iteration in another type than PyTorch's bf16.
    #[must_use]
    pub const fn iterating_in(mut self, dtype: DType) -> Self {
        self.iterate_in = dtype;
        self
    }

    /// The rate of what AdamW updates, in proportion to the schedule.
    fn rest_lr(&self, lr: f64) -> f64 {
        if self.config.lr == 0.0 { lr } else { lr / self.config.lr * self.config.adamw_lr }
    }

    /// The nearest semi-orthogonal matrix, nearly; in f32.
    fn orthogonal(&self, update_rc: Tensor<2>) -> Tensor<2> {
        let [rows, columns] = update_rc.dims();
        let round = |x: Tensor<2>| x.cast(self.iterate_in).cast(DType::F32);
        let [a, b, c] = COEFFICIENTS;
        let tall = rows > columns;
        let x = round(update_rc);
        let x = if tall { x.transpose() } else { x };
        let norm = sums::sum_of_squares(&x.clone().reshape([rows * columns])).sqrt().reshape([1, 1]);
        let mut x = round(x / round(norm).clamp_min(self.config.eps));
        for _ in 0..self.config.ns_steps {
            let gram = round(x.clone().matmul(x.clone().transpose()));
            let polynomial = round(gram.clone().mul_scalar(b) + gram.clone().matmul(gram).mul_scalar(c));
            x = round(x.clone().mul_scalar(a) + polynomial.matmul(x));
        }
        if tall { x.transpose() } else { x }
    }

    fn factor(&self, rows: usize, columns: usize) -> f64 {
        let (rows, columns) = (rows as f64, columns as f64);
        match self.config.adjust_lr_fn {
            AdjustLr::Original => (rows / columns).max(1.0).sqrt(),
            AdjustLr::MatchRmsAdamw => 0.2 * rows.max(columns).sqrt(),
        }
    }
}

impl Optimizer for Muon {
    type State = MuonState;

    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<MuonState>,
    ) -> (Tensor<1>, MuonState) {
        let &[rows, columns] = step.shape else { return self.step_rest(step, param, grad, state) };
        if !ledger::takes_muon(step.name, step.shape) {
            return self.step_rest(step, param, grad, state);
        }
        let momentum = self.config.momentum;
        let old = match state {
            Some(MuonState::Matrix { momentum_buffer }) => momentum_buffer,
            _ => grad.zeros_like(),
        };
        let momentum_buffer = common::average(old, grad.clone(), momentum);
        let update = if self.config.nesterov {
            common::average(momentum_buffer.clone(), grad, momentum)
        } else {
            momentum_buffer.clone()
        };
        let dtype = param.dtype();
        let update = self.orthogonal(update.reshape([rows, columns])).reshape([rows * columns]).cast(dtype);
        let param = common::decay(param, step.lr * step.weight_decay(self.config.weight_decay));
        let update = update.mul_scalar(step.lr * self.factor(rows, columns));
        (param - update, MuonState::Matrix { momentum_buffer })
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<MuonState, StateError> {
        if kept.has("momentum_buffer") {
            return Ok(MuonState::Matrix { momentum_buffer: kept.tensor("momentum_buffer", kept.shape)? });
        }
        self.rest.restore(kept).map(MuonState::Rest)
    }

    fn figures(
        &self,
        step: Step<'_>,
        _: &Tensor<1>,
        _: Option<&MuonState>,
        after: &MuonState,
    ) -> Vec<Figure> {
        let moment = match after {
            MuonState::Matrix { momentum_buffer } => momentum_buffer,
            MuonState::Rest(state) => state.second_moment(),
        };
        common::untouched(step.shape, moment).into_iter().collect()
    }
}

impl Muon {
    fn step_rest(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<MuonState>,
    ) -> (Tensor<1>, MuonState) {
        let state = match state {
            Some(MuonState::Rest(state)) => Some(state),
            _ => None,
        };
        let step = Step { lr: self.rest_lr(step.lr), ..step };
        let (param, state) = self.rest.step(step, param, grad, state);
        (param, MuonState::Rest(state))
    }
}

impl OptimizerState for MuonState {
    fn entries(&self, shape: &[usize]) -> Vec<Entry> {
        match self {
            Self::Matrix { momentum_buffer } => {
                vec![Entry::tensor("momentum_buffer", momentum_buffer, shape)]
            }
            Self::Rest(state) => state.entries(shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::config::Layers;

    #[test]
    fn a_model_without_hidden_matrices_is_refused() {
        let named = |name: &str, shape: &[usize]| (name.to_owned(), shape.to_vec());
        let vectors = [named("norm.weight", &[8]), named("model.embed_tokens.weight", &[9, 8])];
        assert!(check(&vectors).unwrap_err().to_string().contains("this model has none"));
        assert!(check(&[&vectors[..], &[named("layers.0.up.weight", &[8, 8])]].concat()).is_ok());
    }

    #[test]
    fn the_update_is_nearly_orthogonal_either_way_round() {
        let config = Layers::new().resolve().unwrap().config.optimizer.muon;
        for shape in [[8, 20], [20, 8]] {
            let values: Vec<f32> =
                (0..160).map(|i| ((i * i * 37 + i * 11) % 101) as f32 / 50.0 - 1.0).collect();
            let update = Tensor::<2>::from_data(TensorData::new(values, shape), &Device::flex());
            let q = Muon::new(&config).orthogonal(update);
            let gram = if shape[0] < shape[1] {
                q.clone().matmul(q.transpose())
            } else {
                q.clone().transpose().matmul(q)
            };
            let values: Vec<f32> = gram.into_data().iter::<f32>().collect();
            for (at, value) in values.iter().enumerate() {
                // The quintic leaves singular values between about 0.7 and 1.2.
                let expected = if at % 9 == 0 { 0.4..1.6 } else { -0.3..0.3 };
                assert!(expected.contains(value), "{shape:?}[{at}]: {value}");
            }
        }
    }
}
