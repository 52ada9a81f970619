//! `bitsandbytes.optim.AdamW8bit` (Dettmers et al. 2022, arXiv 2110.02861) with the arithmetic of its CUDA kernels.
//!
//! ```text
//! m <- beta1 m + (1 - beta1) g           state1: codes of m over absmax1, a block's largest |m|
//! v <- beta2 v + (1 - beta2) g^2         state2: codes of v over absmax2
//! p <- p - s m / (sqrt(v) + eps c2)      c2 = sqrt(1 - beta2^t), s = lr c2 / (1 - beta1^t); the m and v before they
//!                                        become codes
//! p <- p (1 - lr wd)                     after the update, where AdamW decays before it
//! ```
//! Tensors below `min_8bit_size` and embeddings keep both moments in f32, with the same order of operations. Codes
//! are one byte an element: in the memory of a device that has some of its own, else in the host's.

mod blocks;

use std::{cell::OnceCell, sync::Arc};

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{
    Bytes, Codes, Entry, Figure, Kept, Optimizer, OptimizerState, Scales, StateError, Step, common,
    quantize::DynamicMap,
};
use crate::{
    backend::{
        bytes::DeviceBytes,
        ops::{self, DeviceMaps, DeviceMoment, EightBitScalars},
    },
    config::AdamW8bitConfig,
    ledger,
    protocol::state::figures::{QUANTIZATION_ERROR_1, QUANTIZATION_ERROR_2},
};

/// The rule.
#[derive(Debug, Clone)]
pub struct AdamW8bit {
    config: AdamW8bitConfig,
    /// Codes go to the device, whichever it is.
    always_on_device: bool,
    /// Made once there are codes on a device.
    maps: OnceCell<DeviceMaps>,
}

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
    /// The same in the device's memory.
    OnDevice {
        moments: Box<[DeviceMoment; 2]>,
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
        let (codes, absmax) = (Bytes::Host(Arc::clone(&self.codes)), Scales::Host(Arc::clone(&self.absmax)));
        Codes { shape: shape.to_vec(), codes, absmax, blocksize, map }
    }

    /// A copy in the device's memory, if that holds bytes.
    fn on(&self, device: &Device) -> Option<DeviceMoment> {
        let absmax = TensorData::new(self.absmax.to_vec(), [self.absmax.len()]);
        let codes = DeviceBytes::of(&self.codes, device)?;
        Some(DeviceMoment { codes, absmax: Tensor::from_data(absmax, device) })
    }
}

impl Moments {
    /// Both moments as codes with their blocks, wherever they are.
    fn codes(&self, shape: &[usize]) -> Option<[Codes; 2]> {
        let maps = [DynamicMap::signed(), DynamicMap::unsigned()];
        match self {
            Self::Full { .. } => None,
            Self::Quantized { state1, state2, blocksize } => {
                Some([state1.entry(maps[0], shape, *blocksize), state2.entry(maps[1], shape, *blocksize)])
            }
            Self::OnDevice { moments, blocksize } => {
                let codes = |which: usize| Codes {
                    shape: shape.to_vec(),
                    codes: Bytes::Device(moments[which].codes.clone()),
                    absmax: Scales::Device(moments[which].absmax.clone()),
                    blocksize: *blocksize,
                    map: maps[which],
                };
                Some([codes(0), codes(1)])
            }
        }
    }
}

impl AdamW8bit {
    /// With these settings; the rate comes with each step.
    pub fn new(config: &AdamW8bitConfig) -> Self {
        Self { config: config.clone(), always_on_device: false, maps: OnceCell::new() }
    }

    /// Keeps codes where the parameters are, even where the host's memory would serve: for tests.
    #[must_use]
    pub const fn with_codes_on_device(mut self) -> Self {
        self.always_on_device = true;
        self
    }

    fn maps(&self, device: &Device) -> &DeviceMaps {
        self.maps.get_or_init(|| {
            let maps = [DynamicMap::signed(), DynamicMap::unsigned()];
            let tensor =
                |values: &[f32]| Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device);
            DeviceMaps {
                values: maps.map(|map| tensor(map.values())),
                midpoints: maps.map(|map| tensor(map.midpoints())),
            }
        })
    }

    /// Moves codes to a device that should have them; they come from a checkpoint or have just been made.
    fn settle(&self, moments: Moments, device: &Device) -> Moments {
        let Moments::Quantized { state1, state2, blocksize } = &moments else { return moments };
        if !self.always_on_device && !ops::keeps_bytes(device) {
            return moments;
        }
        match (state1.on(device), state2.on(device)) {
            (Some(first), Some(second)) => {
                Moments::OnDevice { moments: Box::new([first, second]), blocksize: *blocksize }
            }
            _ => moments,
        }
    }

    fn scalars(&self, step: Step<'_>, count: u64) -> EightBitScalars {
        let [beta1, beta2] = self.config.betas;
        let correction = |beta: f64| 1.0 - beta.powf(count as f64);
        let root = correction(beta2).sqrt();
        EightBitScalars {
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            step_size: (step.lr * root / correction(beta1)) as f32,
            eps: (self.config.eps * root) as f32,
            decay: (1.0 - step.lr * step.weight_decay(self.config.weight_decay)) as f32,
        }
    }

    fn fresh(&self, step: Step<'_>, param: &Tensor<1>) -> Moments {
        let count = param.dims()[0];
        if !ledger::is_quantized(&self.config, step.name, count as u64) {
            let zeros = || Tensor::zeros([count], (&param.device(), DType::F32));
            return Moments::Full { state1: zeros(), state2: zeros() };
        }
        let blocksize = self.config.blocksize;
        Moments::Quantized {
            state1: Moment::zeros(DynamicMap::signed(), count, blocksize),
            state2: Moment::zeros(DynamicMap::unsigned(), count, blocksize),
            blocksize,
        }
    }

    fn full(
        scalars: &EightBitScalars,
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
    scalars: &EightBitScalars,
    param: Tensor<1>,
    grad: Tensor<1>,
    state1: &mut Moment,
    state2: &mut Moment,
    blocksize: usize,
) -> Tensor<1> {
    let mut param = param;
    if ops::in_host_memory(&mut param, &grad, |param, grad| {
        blocks::update(scalars, param, grad, [&mut *state1, &mut *state2], blocksize);
    }) {
        return param;
    }
    let (device, count) = (param.device(), param.dims()[0]);
    let grad = host(grad);
    let mut param = host(param);
    blocks::update(scalars, &mut param, &grad, [state1, state2], blocksize);
    Tensor::from_data(TensorData::new(param, [count]), &device)
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
        let (param, moments) = match self.settle(state.moments, &param.device()) {
            Moments::Full { state1, state2 } => Self::full(&scalars, param, grad, [state1, state2]),
            Moments::OnDevice { mut moments, blocksize } => {
                let (dtype, mut param) = (param.dtype(), param.cast(DType::F32));
                let [first, second] = &mut *moments;
                let maps = self.maps(&param.device());
                let grad = grad.cast(DType::F32);
                let done =
                    ops::adamw8bit_in_place(&mut param, &grad, [first, second], maps, scalars, blocksize);
                debug_assert!(done, "codes are on a device only where it has the kernel");
                (param.cast(dtype), Moments::OnDevice { moments, blocksize })
            }
            Moments::Quantized { mut state1, mut state2, blocksize } => {
                let param = quantized(&scalars, param, grad, &mut state1, &mut state2, blocksize);
                (param, Moments::Quantized { state1, state2, blocksize })
            }
        };
        (param.cast(dtype), AdamW8bitState { step: count, moments })
    }

    fn restore(&self, kept: &mut Kept<'_>) -> Result<AdamW8bitState, StateError> {
        let (shape, blocksize) = (kept.shape, self.config.blocksize);
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
        if let Moments::Full { state2, .. } = &after.moments {
            return common::untouched(step.shape, state2).into_iter().collect();
        }
        let Some(now) = after.moments.codes(&[]) else { return Vec::new() };
        let grad_values = host(grad.clone());
        let zeros = || vec![0.0; grad_values.len()];
        let [old1, old2] = before
            .and_then(|state| state.moments.codes(&[]))
            .map_or_else(|| [zeros(), zeros()], |codes| codes.map(|codes| codes.values()));
        let betas = self.config.betas.map(|beta| beta as f32);
        let exact = || {
            let old = old1.iter().zip(&old2).zip(&grad_values);
            old.map(|((m, v), grad)| blocks::moments(*m, *v, *grad, betas))
        };
        [
            (QUANTIZATION_ERROR_1, relative_error(&now[0].values(), exact().map(|[first, _]| first))),
            (QUANTIZATION_ERROR_2, relative_error(&now[1].values(), exact().map(|[_, second]| second))),
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
        if let Moments::Full { state1, state2 } = &self.moments {
            return vec![
                step,
                Entry::tensor("state1", state1, shape),
                Entry::tensor("state2", state2, shape),
            ];
        }
        let Some([first, second]) = self.moments.codes(shape) else { return vec![step] };
        let scales = |name, codes: &Codes| match &codes.absmax {
            Scales::Host(scales) => Entry::host(name, Arc::clone(scales)),
            Scales::Device(scales) => Entry::tensor(name, scales, &scales.dims()),
        };
        let (absmax1, absmax2) = (scales("absmax1", &first), scales("absmax2", &second));
        vec![step, Entry::codes("state1", first), Entry::codes("state2", second), absmax1, absmax2]
    }

    fn needs_shared(&self) -> bool {
        !matches!(self.moments, Moments::Full { .. })
    }
}
