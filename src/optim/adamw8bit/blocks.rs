//! The arithmetic of an update whose moments are codes in host memory, on all cores.

use std::sync::Arc;

use rayon::prelude::*;

use super::Moment;
use crate::{backend::ops::EightBitScalars, optim::quantize::DynamicMap};

/// All blocks of a parameter.
pub(super) fn update(
    scalars: &EightBitScalars,
    param: &mut [f32],
    grad: &[f32],
    [state1, state2]: [&mut Moment; 2],
    blocksize: usize,
) {
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
}

/// The moments after an update.
pub(super) fn moments(m: f32, v: f32, grad: f32, [beta1, beta2]: [f32; 2]) -> [f32; 2] {
    [m * beta1 + (1.0 - beta1) * grad, v * beta2 + (1.0 - beta2) * grad * grad]
}

/// One block: moments from codes, their update, the parameter, and codes again.
fn block(
    scalars: &EightBitScalars,
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
