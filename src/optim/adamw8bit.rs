//! `bitsandbytes.optim.AdamW8bit` (Dettmers et al. 2022, arXiv 2110.02861) with the arithmetic of its CUDA kernels.
//!
//! ```text
//! m <- beta1 m + (1 - beta1) g           state1: codes of m over absmax1, a block's largest |m|
//! v <- beta2 v + (1 - beta2) g^2         state2: codes of v over absmax2
//! p <- p - s m / (sqrt(v) + eps c2)      c2 = sqrt(1 - beta2^t), s = lr c2 / (1 - beta1^t); the m and v before they
//!                                        become codes
//! p <- p (1 - lr wd)                     after the update, where AdamW decays before it
//! ```
//! Tensors below `min_8bit_size` and embeddings keep both moments in f32, with the same order of operations. The codes
//! are one byte an element in host memory, since neither Burn's records nor its libtorch backend hold bytes.

use std::sync::Arc;

use burn::tensor::{DType, Tensor, TensorData};
use rayon::prelude::*;

use super::{
    Codes, Entry, Figure, Kept, Optimizer, OptimizerState, StateError, Step, adamw, quantize::DynamicMap,
};
use crate::{
    config::AdamW8bitConfig,
    ledger,
    protocol::state::figures::{QUANTIZATION_ERROR_1, QUANTIZATION_ERROR_2},
};

/// The rule.
#[derive(Debug, Clone)]
pub struct AdamW8bit(AdamW8bitConfig);

/// State of one parameter.
#[derive(Debug, Clone)]
pub struct AdamW8bitState {
    step: u64,
    moments: Moments,
}

#[derive(Debug, Clone)]
enum Moments {
    /// `[n]`, f32.
    Full {
        state1: Tensor<1>,
        state2: Tensor<1>,
    },
    Quantized {
        state1: Moment,
        state2: Moment,
        blocksize: usize,
    },
}

/// One moment as codes.
#[derive(Debug, Clone)]
struct Moment {
    codes: Arc<Vec<u8>>,
    absmax: Arc<Vec<f32>>,
}

impl Moment {
    /// Zeros.
    fn zeros(map: &DynamicMap, count: usize, blocksize: usize) -> Self {
        let codes = Arc::new(vec![map.nearest(0.0); count]);
        Self { codes, absmax: Arc::new(vec![0.0; count.div_ceil(blocksize)]) }
    }

    fn entry(&self, map: &'static DynamicMap, shape: &[usize], blocksize: usize) -> Codes {
        let (codes, absmax) = (Arc::clone(&self.codes), Arc::clone(&self.absmax));
        Codes { shape: shape.to_vec(), codes, absmax, blocksize, map }
    }
}

/// The scalars of one update, in f32 as the kernel has them.
struct Scalars {
    beta1: f32,
    beta2: f32,
    step_size: f32,
    eps: f32,
    decay: f32,
}

impl AdamW8bit {
    /// With these settings; the rate comes with each step.
    pub fn new(config: &AdamW8bitConfig) -> Self {
        Self(config.clone())
    }

    fn scalars(&self, step: Step<'_>, count: u64) -> Scalars {
        let [beta1, beta2] = self.0.betas;
        let correction = |beta: f64| 1.0 - beta.powf(count as f64);
        let root = correction(beta2).sqrt();
        Scalars {
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            step_size: (step.lr * root / correction(beta1)) as f32,
            eps: (self.0.eps * root) as f32,
            decay: (1.0 - step.lr * step.weight_decay(self.0.weight_decay)) as f32,
        }
    }

    fn fresh(&self, step: Step<'_>, param: &Tensor<1>) -> Moments {
        let count = param.dims()[0];
        if !ledger::is_quantized(&self.0, step.name, count as u64) {
            let zeros = || Tensor::zeros([count], (&param.device(), DType::F32));
            return Moments::Full { state1: zeros(), state2: zeros() };
        }
        let blocksize = self.0.blocksize;
        Moments::Quantized {
            state1: Moment::zeros(DynamicMap::signed(), count, blocksize),
            state2: Moment::zeros(DynamicMap::unsigned(), count, blocksize),
            blocksize,
        }
    }

    fn full(
        scalars: &Scalars,
        param: Tensor<1>,
        grad: Tensor<1>,
        moments: [Tensor<1>; 2],
    ) -> (Tensor<1>, Moments) {
        let [state1, state2] = moments;
        let (param, grad) = (param.cast(DType::F32), grad.cast(DType::F32));
        // As the kernel: betas and what is left of 1 are f32.
        let average =
            |old: Tensor<1>, new: Tensor<1>, beta: f32| old.mul_scalar(beta) + new.mul_scalar(1.0 - beta);
        let state1 = average(state1, grad.clone(), scalars.beta1);
        let state2 = average(state2, grad.square(), scalars.beta2);
        let root = state2.clone().sqrt().add_scalar(scalars.eps);
        let updated = param - state1.clone().mul_scalar(scalars.step_size) / root;
        let decayed = if scalars.decay == 1.0 { updated } else { updated.mul_scalar(scalars.decay) };
        (decayed, Moments::Full { state1, state2 })
    }
}

/// Updates a parameter whose moments are codes, block by block, on all cores.
fn quantized(
    scalars: &Scalars,
    param: Tensor<1>,
    grad: Tensor<1>,
    state1: &mut Moment,
    state2: &mut Moment,
    blocksize: usize,
) -> Tensor<1> {
    let (device, count) = (param.device(), param.dims()[0]);
    let grad = host(grad);
    let mut param = host(param);
    // Whole blocks a task: enough for the work to outweigh handing it out.
    let blocks = (1_usize << 14).div_ceil(blocksize);
    let size = blocks * blocksize;
    param
        .par_chunks_mut(size)
        .zip(grad.par_chunks(size))
        .zip(Arc::make_mut(&mut state1.codes).par_chunks_mut(size))
        .zip(Arc::make_mut(&mut state1.absmax).par_chunks_mut(blocks))
        .zip(Arc::make_mut(&mut state2.codes).par_chunks_mut(size))
        .zip(Arc::make_mut(&mut state2.absmax).par_chunks_mut(blocks))
        .for_each(|(((((param, grad), codes1), absmax1), codes2), absmax2)| {
            let mut scratch = (vec![0.0; blocksize], vec![0.0; blocksize]);
            let blocks = param
                .chunks_mut(blocksize)
                .zip(grad.chunks(blocksize))
                .zip(codes1.chunks_mut(blocksize).zip(absmax1))
                .zip(codes2.chunks_mut(blocksize).zip(absmax2));
            for (((param, grad), first), second) in blocks {
                block(scalars, param, grad, first, second, &mut scratch);
            }
        });
    Tensor::from_data(TensorData::new(param, [count]), &device)
}

/// The moments after an update.
fn moments(m: f32, v: f32, grad: f32, [beta1, beta2]: [f32; 2]) -> [f32; 2] {
    [m * beta1 + (1.0 - beta1) * grad, v * beta2 + (1.0 - beta2) * grad * grad]
}

/// One block: moments from codes, their update, the parameter, and codes again.
fn block(
    scalars: &Scalars,
    param: &mut [f32],
    grad: &[f32],
    (codes1, absmax1): (&mut [u8], &mut f32),
    (codes2, absmax2): (&mut [u8], &mut f32),
    (m, v): &mut (Vec<f32>, Vec<f32>),
) {
    let count = grad.len();
    let (m, v) = (&mut m[..count], &mut v[..count]);
    let (map1, map2) = (DynamicMap::signed(), DynamicMap::unsigned());
    for ((m, v), (code1, code2)) in m.iter_mut().zip(&mut *v).zip(codes1.iter().zip(&*codes2)) {
        *m = map1.value(*code1) * *absmax1;
        *v = map2.value(*code2) * *absmax2;
    }
    // Separate from the look-ups, so that this loop runs on vectors.
    let (mut largest1, mut largest2) = (0.0_f32, 0.0_f32);
    for ((param, grad), (m, v)) in param.iter_mut().zip(grad).zip(m.iter_mut().zip(&mut *v)) {
        let [first, second] = moments(*m, *v, *grad, [scalars.beta1, scalars.beta2]);
        let updated = (*param - scalars.step_size * (first / (second.sqrt() + scalars.eps))) * scalars.decay;
        // A gradient that is not finite leaves its parameter alone and takes its moments back to zero.
        let finite = grad.is_finite();
        *param = if finite { updated } else { *param };
        *m = if finite { first } else { 0.0 };
        *v = if finite { second } else { 0.0 };
        largest1 = if m.abs() > largest1 { m.abs() } else { largest1 };
        largest2 = if *v > largest2 { *v } else { largest2 };
    }
    (*absmax1, *absmax2) = (largest1, largest2);
    // A block of zeros has no scale: any code stands for zero.
    let divisor = |largest: f32| if largest > 0.0 { largest } else { 1.0 };
    let (divisor1, divisor2) = (divisor(largest1), divisor(largest2));
    m.iter_mut().for_each(|m| *m /= divisor1);
    v.iter_mut().for_each(|v| *v /= divisor2);
    codes1.iter_mut().zip(m).for_each(|(code, m)| *code = map1.nearest_of_sign(*m));
    codes2.iter_mut().zip(v).for_each(|(code, v)| *code = map2.nearest(*v));
}

/// The values in host memory; no copy where they are there and held once.
fn host(tensor: Tensor<1>) -> Vec<f32> {
    let data = tensor.cast(DType::F32).into_data();
    data.try_into_vec::<f32>().unwrap_or_default()
}

impl Optimizer for AdamW8bit {
    type State = AdamW8bitState;

    fn step(
        &self,
        step: Step<'_>,
        param: Tensor<1>,
        grad: Tensor<1>,
        state: Option<AdamW8bitState>,
    ) -> (Tensor<1>, AdamW8bitState) {
        let dtype = param.dtype();
        let state = state.unwrap_or_else(|| AdamW8bitState { step: 0, moments: self.fresh(step, &param) });
        let count = state.step + 1;
        let scalars = self.scalars(step, count);
        let (param, moments) = match state.moments {
            Moments::Full { state1, state2 } => Self::full(&scalars, param, grad, [state1, state2]),
            Moments::Quantized { mut state1, mut state2, blocksize } => {
                let param = quantized(&scalars, param, grad, &mut state1, &mut state2, blocksize);
                (param, Moments::Quantized { state1, state2, blocksize })
            }
        };
        (param.cast(dtype), AdamW8bitState { step: count, moments })
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<AdamW8bitState, StateError> {
        let (shape, blocksize) = (kept.shape, self.0.blocksize);
        let step = kept.number("step")? as u64;
        if !kept.is_codes("state1") {
            let moments = Moments::Full {
                state1: kept.tensor("state1", shape)?,
                state2: kept.tensor("state2", shape)?,
            };
            return Ok(AdamW8bitState { step, moments });
        }
        let blocks = shape.iter().product::<usize>().div_ceil(blocksize);
        let mut moment = |codes, absmax| -> Result<Moment, StateError> {
            let codes = Arc::new(kept.codes(codes, shape)?);
            Ok(Moment { codes, absmax: Arc::new(kept.floats(absmax, &[blocks])?) })
        };
        let (state1, state2) = (moment("state1", "absmax1")?, moment("state2", "absmax2")?);
        Ok(AdamW8bitState { step, moments: Moments::Quantized { state1, state2, blocksize } })
    }

    fn figures(
        &self,
        step: Step<'_>,
        grad: &Tensor<1>,
        before: Option<&AdamW8bitState>,
        after: &AdamW8bitState,
    ) -> Vec<Figure> {
        let (now1, now2, blocksize) = match &after.moments {
            Moments::Full { state2, .. } => {
                return adamw::untouched(step.shape, state2).into_iter().collect();
            }
            Moments::Quantized { state1, state2, blocksize } => (state1, state2, *blocksize),
        };
        let values = |moment: &Moment, map: &'static DynamicMap| moment.entry(map, &[], blocksize).values();
        let (map1, map2) = (DynamicMap::signed(), DynamicMap::unsigned());
        let grad_values = host(grad.clone());
        let zeros = || vec![0.0; grad_values.len()];
        let (old1, old2) = match before.map(|state| &state.moments) {
            Some(Moments::Quantized { state1, state2, .. }) => (values(state1, map1), values(state2, map2)),
            _ => (zeros(), zeros()),
        };
        let betas = self.0.betas.map(|beta| beta as f32);
        let exact = || {
            let old = old1.iter().zip(&old2).zip(&grad_values);
            old.map(|((m, v), grad)| moments(*m, *v, *grad, betas))
        };
        [
            (QUANTIZATION_ERROR_1, relative_error(&values(now1, map1), exact().map(|[first, _]| first))),
            (QUANTIZATION_ERROR_2, relative_error(&values(now2, map2), exact().map(|[_, second]| second))),
        ]
        .into_iter()
        .map(|(name, error)| (name, Tensor::from_data(TensorData::new(vec![error], [1]), &grad.device())))
        .collect()
    }

    fn shared(&self) -> Vec<Entry> {
        [("qmap1", DynamicMap::signed()), ("qmap2", DynamicMap::unsigned())]
            .map(|(name, map)| Entry::host(name, Arc::new(map.values().to_vec())))
            .into()
    }
}

/// `|a - b| / |b|` in the Euclidean norm; 0 where both are zero.
fn relative_error(ours: &[f32], exact: impl Iterator<Item = f32>) -> f32 {
    let (mut difference, mut size) = (0.0_f64, 0.0_f64);
    for (ours, exact) in ours.iter().zip(exact) {
        difference += f64::from(ours - exact).powi(2);
        size += f64::from(exact).powi(2);
    }
    if size == 0.0 { difference.sqrt() as f32 } else { (difference / size).sqrt() as f32 }
}

impl OptimizerState for AdamW8bitState {
    fn entries(&self, shape: &[usize]) -> Vec<Entry> {
        let step = Entry::number("step", self.step as f64);
        match &self.moments {
            Moments::Full { state1, state2 } => {
                vec![step, Entry::tensor("state1", state1, shape), Entry::tensor("state2", state2, shape)]
            }
            Moments::Quantized { state1, state2, blocksize } => vec![
                step,
                Entry::codes("state1", state1.entry(DynamicMap::signed(), shape, *blocksize)),
                Entry::codes("state2", state2.entry(DynamicMap::unsigned(), shape, *blocksize)),
                Entry::host("absmax1", Arc::clone(&state1.absmax)),
                Entry::host("absmax2", Arc::clone(&state2.absmax)),
            ],
        }
    }

    fn needs_shared(&self) -> bool {
        matches!(self.moments, Moments::Quantized { .. })
    }
}
