//! `transformers.optimization.Adafactor` (Shazeer and Stern 2018, arXiv 1804.04235).
//!
//! ```text
//! a  = rate (scale_parameter ? max(eps2, RMS(p)) : 1)      RMS(p) before the update
//! b2 = 1 - t^decay_rate                                    0 at the first update
//! q  = g^2 + eps1
//! R <- b2 R + (1 - b2) mean over columns of q              exp_avg_sq_row, one a row
//! C <- b2 C + (1 - b2) mean over rows of q                 exp_avg_sq_col, one a column
//! u  = g / sqrt(R / mean(R)) / sqrt(C)                     fewer than two axes: g / sqrt(V), V full
//! u  = a u / max(1, RMS(u) / clip_threshold)
//! p <- p - weight_decay a p - u
//! ```
//! `rate` is the scheduled one, or with `relative_step` min(1e-2 or 1e-6 t, 1/sqrt(t)). More than two axes: the last
//! two are factored, for each leading index by itself. With `beta1` the update is averaged (`exp_avg`).

use burn::tensor::{DType, Tensor};

use super::{Entry, Figure, Kept, Optimizer, OptimizerState, StateError, Step, sums};
use crate::{
    backend::ops::{self, AdafactorScalars, AdafactorTensors},
    config::{AdafactorConfig, schedule},
    protocol::state::figures::{FACTORIZATION_ERROR, ROWS_NEVER_TOUCHED},
};

/// The rule.
#[derive(Debug, Clone)]
pub struct Adafactor(AdafactorConfig);

/// State of one parameter. `RMS` is the parameter's root mean square before the last update, kept on the device.
#[derive(Debug, Clone)]
pub struct AdafactorState {
    step: u64,
    rms: Tensor<1>,
    second: Second,
    exp_avg: Option<Tensor<1>>,
}

/// The second moment: two vectors for a matrix, itself for a vector.
#[derive(Debug, Clone)]
enum Second {
    /// Rows `[lead * rows]`, columns `[lead * columns]`.
    Factored {
        row: Tensor<1>,
        col: Tensor<1>,
    },
    Full(Tensor<1>),
}

/// The last two axes of a shape, and the product of those before them.
struct Axes {
    lead: usize,
    rows: usize,
    columns: usize,
}

impl Axes {
    fn of(shape: &[usize]) -> Option<Self> {
        match shape {
            [lead @ .., rows, columns] => {
                Some(Self { lead: lead.iter().product(), rows: *rows, columns: *columns })
            }
            _ => None,
        }
    }
}

impl Adafactor {
    /// With these settings; unless `relative_step`, the rate comes with each step.
    pub fn new(config: &AdafactorConfig) -> Self {
        Self(config.clone())
    }

    /// What is kept of the old second moment at that update.
    fn decay(&self, count: u64) -> f64 {
        1.0 - (count as f64).powf(self.0.decay_rate)
    }

    fn rate(&self, scheduled: f64, count: u64) -> f64 {
        if self.0.relative_step { schedule::relative_rate(self.0.warmup_init, count) } else { scheduled }
    }

    /// The gradient over the root of the second moment, and the moment after this update. Works in the gradient's
    /// memory; its square is the one temporary of its size.
    fn precondition(
        &self,
        grad: Tensor<1>,
        axes: Option<Axes>,
        old: Option<Second>,
        decay: f64,
    ) -> (Tensor<1>, Second) {
        let squared = grad.clone().square().add_scalar(self.0.eps[0]);
        let blend = |old: Option<Tensor<1>>, new: Tensor<1>| match old {
            Some(old) => old.mul_scalar(decay) + new.mul_scalar(1.0 - decay),
            None => new.mul_scalar(1.0 - decay),
        };
        let Some(Axes { lead, rows, columns }) = axes else {
            let old = match old {
                Some(Second::Full(old)) => Some(old),
                _ => None,
            };
            let full = blend(old, squared);
            return (grad / full.clone().sqrt(), Second::Full(full));
        };
        let (old_row, old_col) = match old {
            Some(Second::Factored { row, col }) => (Some(row), Some(col)),
            _ => (None, None),
        };
        let squared = squared.reshape([lead, rows, columns]);
        let row = blend(old_row, squared.clone().mean_dim(2).reshape([lead * rows]));
        let col = blend(old_col, squared.mean_dim(1).reshape([lead * columns]));
        let row_3d = row.clone().reshape([lead, rows, 1]);
        let by_row = (row_3d.clone() / row_3d.mean_dim(1)).sqrt().recip();
        let by_col = col.clone().reshape([lead, 1, columns]).sqrt().recip();
        let update = grad.reshape([lead, rows, columns]) * by_row * by_col;
        (update.reshape([lead * rows * columns]), Second::Factored { row, col })
    }

    /// The update of matrices where the device does it in one, and the new state; `None`, and nothing done, where not.
    fn in_place(
        &self,
        step: Step<'_>,
        param: &mut Tensor<1>,
        grad: &Tensor<1>,
        state: Option<&AdafactorState>,
    ) -> Option<AdafactorState> {
        let Axes { lead, rows, columns } = Axes::of(step.shape).filter(|_| self.0.beta1.is_none())?;
        let count = state.map_or(0, |state| state.step) + 1;
        let (mut row, mut col) = match state {
            Some(AdafactorState { second: Second::Factored { row, col }, .. }) => (row.clone(), col.clone()),
            _ => {
                let zeros = |count| Tensor::zeros([count], (&grad.device(), DType::F32));
                (zeros(lead * rows), zeros(lead * columns))
            }
        };
        let scalars = AdafactorScalars {
            axes: [lead, rows, columns],
            decay: self.decay(count),
            eps: self.0.eps,
            rate: self.rate(step.lr, count),
            scale_parameter: self.0.scale_parameter,
            clip_threshold: self.0.clip_threshold,
            weight_decay: step.weight_decay(self.0.weight_decay),
        };
        let tensors = AdafactorTensors { param, grad, row: &mut row, col: &mut col };
        let rms = ops::adafactor_in_place(tensors, scalars)?;
        let rms = Tensor::full([1], rms, (&grad.device(), DType::F32));
        Some(AdafactorState { step: count, rms, second: Second::Factored { row, col }, exp_avg: None })
    }
}

impl Optimizer for Adafactor {
    type State = AdafactorState;

    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<AdafactorState>,
    ) -> (Tensor<1>, AdafactorState) {
        let config = &self.0;
        let mut param = param;
        if let Some(state) = self.in_place(step, &mut param, &grad, state.as_ref()) {
            return (param, state);
        }
        let dtype = param.dtype();
        // The reference computes in f32 whatever the parameter's type, and rounds once at the end.
        let (param, grad) = (param.cast(DType::F32), grad.cast(DType::F32));
        let (count, old_second, exp_avg) =
            state.map_or((0, None, None), |state| (state.step, Some(state.second), state.exp_avg));
        let count = count + 1;
        let rms = root_mean_square(&param);
        // `[1]`: the rate, scaled by the parameter if that is asked for.
        let rate = self.rate(step.lr, count);
        let rate = if config.scale_parameter {
            rms.clone().clamp_min(config.eps[1]).mul_scalar(rate)
        } else {
            rms.full_like(rate)
        };
        let decay = self.decay(count);
        let (update, second) = self.precondition(grad, Axes::of(step.shape), old_second, decay);
        let shrink = root_mean_square(&update).div_scalar(config.clip_threshold).clamp_min(1.0);
        let update = update * (rate.clone() / shrink);
        let exp_avg = config.beta1.map(|beta1| {
            let fresh = update.clone().mul_scalar(1.0 - beta1);
            match exp_avg {
                Some(old) => old.mul_scalar(beta1) + fresh,
                None => fresh,
            }
        });
        let update = exp_avg.clone().unwrap_or(update);
        let weight_decay = step.weight_decay(config.weight_decay);
        let decayed =
            if weight_decay == 0.0 { param } else { param * rate.mul_scalar(-weight_decay).add_scalar(1.0) };
        ((decayed - update).cast(dtype), AdafactorState { step: count, rms, second, exp_avg })
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<AdafactorState, StateError> {
        let shape = kept.shape;
        let second = match shape.split_last_chunk::<2>() {
            Some((lead, [rows, columns])) => Second::Factored {
                row: kept.tensor("exp_avg_sq_row", &[lead, &[*rows]].concat())?,
                col: kept.tensor("exp_avg_sq_col", &[lead, &[*columns]].concat())?,
            },
            None => Second::Full(kept.tensor("exp_avg_sq", shape)?),
        };
        Ok(AdafactorState {
            step: kept.number("step")? as u64,
            rms: kept.tensor("RMS", &[])?,
            second,
            // Absent: an average of nothing yet.
            exp_avg: if self.0.beta1.is_some() { kept.optional("exp_avg", shape)? } else { None },
        })
    }

    fn figures(
        &self,
        step: Step<'_>,
        grad: &Tensor<1>,
        _: Option<&AdafactorState>,
        after: &AdafactorState,
    ) -> Vec<Figure> {
        let (Some(axes), Second::Factored { row, col }) = (Axes::of(step.shape), &after.second) else {
            return Vec::new();
        };
        let squared = grad.clone().cast(DType::F32).square().add_scalar(self.0.eps[0]);
        let norm = |x: Tensor<1>| x.square().sum().sqrt();
        // In units of the largest square: the square of a square would leave the range of f32.
        let unit = squared.clone().max();
        let squared = squared / unit.clone();
        let ours = reconstruct(&axes, row, col) / unit;
        let error = norm(ours - squared.clone()) / norm(squared);
        // A row that no gradient has touched holds eps1, but for the rounding of its averages.
        let floor = self.0.eps[0] * (1.0 + 1e-4);
        let untouched = row.clone().lower_equal_elem(floor).int().sum().float().cast(DType::F32);
        vec![(FACTORIZATION_ERROR, error), (ROWS_NEVER_TOUCHED, untouched)]
    }
}

/// The second moment of a matrix from its row and column means, `R C / mean(R)`, flat.
fn reconstruct(axes: &Axes, row: &Tensor<1>, col: &Tensor<1>) -> Tensor<1> {
    let Axes { lead, rows, columns } = *axes;
    let row = row.clone().reshape([lead, rows, 1]);
    let share = row.clone() / row.mean_dim(1);
    (share * col.clone().reshape([lead, 1, columns])).reshape([lead * rows * columns])
}

/// `sqrt(mean(x^2))`, `[1]`.
fn root_mean_square(values: &Tensor<1>) -> Tensor<1> {
    sums::mean_square(values).sqrt()
}

impl OptimizerState for AdafactorState {
    fn entries(&self, shape: &[usize]) -> Vec<Entry> {
        let mut entries = vec![Entry::number("step", self.step as f64), Entry::tensor("RMS", &self.rms, &[])];
        match &self.second {
            Second::Factored { row, col } => {
                let (lead, last) = shape.split_at(shape.len().saturating_sub(2));
                entries.push(Entry::tensor("exp_avg_sq_row", row, &[lead, &last[..1]].concat()));
                entries.push(Entry::tensor("exp_avg_sq_col", col, &[lead, &last[1..]].concat()));
            }
            Second::Full(full) => entries.push(Entry::tensor("exp_avg_sq", full, shape)),
        }
        entries.extend(self.exp_avg.as_ref().map(|average| Entry::tensor("exp_avg", average, shape)));
        entries
    }
}
