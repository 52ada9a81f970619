//! The C++ shim in Rust's terms.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
};

use tch::{Device, Kind, Tensor};
use thiserror::Error;
use torch_sys::C_tensor;

use crate::backend::ops::{AdafactorScalars, AdamWScalars};

/// libtorch has thrown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShimError {
    /// The text names how much was asked for and how much there is.
    #[error("{0}")]
    OutOfMemory(String),
    #[error("{0}")]
    Other(String),
}

/// Bytes in CUDA's caching allocator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorMemory {
    pub allocated: u64,
    pub allocated_peak: u64,
    pub reserved: u64,
    pub reserved_peak: u64,
    /// Allocations that succeeded only after the cache was emptied.
    pub retries: u64,
    pub failures: u64,
}

unsafe extern "C" {
    fn shim_last_error() -> *const c_char;
    fn shim_built_for() -> *const c_char;
    fn shim_version() -> *const c_char;
    fn shim_keep_freed_host_memory();
    fn shim_give_back_host_memory();
    fn shim_grad(
        root: *const C_tensor,
        seed: *const C_tensor,
        inputs: *const *mut C_tensor,
        count: usize,
        gradients: *mut *mut C_tensor,
    ) -> c_int;
    fn shim_fused_adamw(
        param: *mut C_tensor,
        grad: *mut C_tensor,
        exp_avg: *mut C_tensor,
        exp_avg_sq: *mut C_tensor,
        max_exp_avg_sq: *mut C_tensor,
        step: f64,
        lr: f64,
        beta1: f64,
        beta2: f64,
        weight_decay: f64,
        eps: f64,
    ) -> c_int;
    fn shim_adafactor(
        param: *mut C_tensor,
        grad: *const C_tensor,
        row: *mut C_tensor,
        col: *mut C_tensor,
        with: *const Adafactor,
        rms: *mut f64,
    ) -> c_int;
    fn shim_global_norm(tensors: *const *mut C_tensor, count: usize, norm: *mut *mut C_tensor) -> c_int;
    fn shim_add(sums: *const *mut C_tensor, values: *const *mut C_tensor, count: usize) -> c_int;
    fn shim_scale(tensors: *const *mut C_tensor, count: usize, factor: f64) -> c_int;
    fn shim_memory(device: c_int, figures: *mut i64) -> c_int;
    fn shim_empty_cache() -> c_int;
    fn shim_tf32(on: c_int) -> c_int;
}

/// [`AdafactorScalars`] as the shim has them.
#[repr(C)]
struct Adafactor {
    lead: i64,
    rows: i64,
    columns: i64,
    decay: f64,
    eps1: f64,
    rate: f64,
    eps2: f64,
    clip_threshold: f64,
    weight_decay: f64,
    scale_parameter: c_int,
}

fn check(code: c_int) -> Result<(), ShimError> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the shim returns a text of this thread that lives until its next error.
    let text = unsafe { CStr::from_ptr(shim_last_error()) }.to_string_lossy().into_owned();
    Err(if code == 1 { ShimError::OutOfMemory(text) } else { ShimError::Other(text) })
}

/// Version of libtorch that the shim was compiled for.
pub fn built_for() -> String {
    // SAFETY: a constant text.
    unsafe { CStr::from_ptr(shim_built_for()) }.to_string_lossy().into_owned()
}

/// Version of the libtorch that is loaded; `None` where it does not tell.
pub fn version() -> Option<String> {
    // SAFETY: a text that lives as long as the program.
    let version = unsafe { CStr::from_ptr(shim_version()) }.to_string_lossy().into_owned();
    (!version.is_empty()).then_some(version)
}

/// From now on the C library keeps what tensors in host memory have freed for the next ones.
pub fn keep_freed_host_memory() {
    // SAFETY: sets two numbers of the allocator; any time will do.
    unsafe { shim_keep_freed_host_memory() }
}

/// Gives what the C library has kept back to the system.
pub fn give_back_host_memory() {
    // SAFETY: touches free memory alone.
    unsafe { shim_give_back_host_memory() }
}

fn pointer(tensor: &Tensor) -> *mut C_tensor {
    tensor.as_ptr().cast_mut()
}

/// Of a list, in its order; they live as long as its tensors.
fn pointers(tensors: &[&Tensor]) -> Vec<*mut C_tensor> {
    tensors.iter().map(|tensor| pointer(tensor)).collect()
}

/// `torch.autograd.grad(root, inputs, seed)`; `None` for an input that the root does not depend on.
///
/// # Errors
/// libtorch has thrown.
pub fn grad<const N: usize>(
    root: &Tensor,
    seed: &Tensor,
    inputs: &[Tensor; N],
) -> Result<[Option<Tensor>; N], ShimError> {
    let pointers = inputs.each_ref().map(pointer);
    let mut gradients = [ptr::null_mut(); N];
    // SAFETY: all pointers are those of living tensors, and the arrays hold N of them.
    check(unsafe { shim_grad(root.as_ptr(), seed.as_ptr(), pointers.as_ptr(), N, gradients.as_mut_ptr()) })?;
    // SAFETY: the shim made each tensor for us; nobody else has it.
    Ok(gradients.map(|raw| (!raw.is_null()).then(|| unsafe { Tensor::from_ptr(raw) })))
}

/// `torch.optim.AdamW(fused=True)` on one parameter, in place.
///
/// # Errors
/// libtorch has thrown.
pub fn fused_adamw(
    param: &Tensor,
    grad: &Tensor,
    [exp_avg, exp_avg_sq]: [&Tensor; 2],
    max_exp_avg_sq: Option<&Tensor>,
    scalars: AdamWScalars,
) -> Result<(), ShimError> {
    let AdamWScalars { step, lr, betas: [beta1, beta2], weight_decay, eps } = scalars;
    let largest = max_exp_avg_sq.map_or(ptr::null_mut(), pointer);
    // SAFETY: all pointers are those of living tensors; `largest` may be null.
    check(unsafe {
        shim_fused_adamw(
            pointer(param),
            pointer(grad),
            pointer(exp_avg),
            pointer(exp_avg_sq),
            largest,
            step as f64,
            lr,
            beta1,
            beta2,
            weight_decay,
            eps,
        )
    })
}

/// One update by Adafactor of matrices in host memory, in place: all contiguous f32, of the sizes that the scalars say.
/// Returns the root mean square of the parameter before it.
///
/// # Errors
/// libtorch has thrown.
pub fn adafactor(
    param: &Tensor,
    grad: &Tensor,
    [row, col]: [&Tensor; 2],
    scalars: AdafactorScalars,
) -> Result<f64, ShimError> {
    let AdafactorScalars { axes: [lead, rows, columns], .. } = scalars;
    let sizes = [lead * rows * columns, lead * rows * columns, lead * rows, lead * columns];
    for (tensor, size) in [param, grad, row, col].into_iter().zip(sizes) {
        let fits = tensor.numel() == size && tensor.kind() == Kind::Float && tensor.is_contiguous();
        if !fits || tensor.device() != Device::Cpu {
            return Err(ShimError::Other(format!("{tensor:?} is not {size} numbers in host memory")));
        }
    }
    let with = Adafactor {
        lead: lead as i64,
        rows: rows as i64,
        columns: columns as i64,
        decay: scalars.decay,
        eps1: scalars.eps[0],
        rate: scalars.rate,
        eps2: scalars.eps[1],
        clip_threshold: scalars.clip_threshold,
        weight_decay: scalars.weight_decay,
        scale_parameter: c_int::from(scalars.scale_parameter),
    };
    let mut rms = 0.0;
    // SAFETY: the tensors live, are f32 in host memory and of the sizes that are said, as was just looked at.
    check(unsafe {
        shim_adafactor(
            pointer(param),
            grad.as_ptr(),
            pointer(row),
            pointer(col),
            &raw const with,
            &raw mut rms,
        )
    })?;
    Ok(rms)
}

/// The L2 norm over all tensors together, a scalar on their device.
///
/// # Errors
/// libtorch has thrown.
pub fn global_norm(tensors: &[&Tensor]) -> Result<Tensor, ShimError> {
    let pointers = pointers(tensors);
    let mut norm = ptr::null_mut();
    // SAFETY: the list holds as many living tensors as is said.
    check(unsafe { shim_global_norm(pointers.as_ptr(), pointers.len(), &raw mut norm) })?;
    // SAFETY: made for us by the shim, which has not failed.
    Ok(unsafe { Tensor::from_ptr(norm) })
}

/// `sums[i] += values[i]`, in place; a value may be of a shorter type than its sum.
///
/// # Errors
/// libtorch has thrown.
pub fn add(sums: &[&Tensor], values: &[&Tensor]) -> Result<(), ShimError> {
    let (sums, values) = (pointers(sums), pointers(values));
    // SAFETY: both lists hold at least so many living tensors.
    check(unsafe { shim_add(sums.as_ptr(), values.as_ptr(), sums.len().min(values.len())) })
}

/// `tensors[i] *= factor`, in place.
///
/// # Errors
/// libtorch has thrown.
pub fn scale(tensors: &[&Tensor], factor: f64) -> Result<(), ShimError> {
    let pointers = pointers(tensors);
    // SAFETY: the list holds as many living tensors as is said.
    check(unsafe { shim_scale(pointers.as_ptr(), pointers.len(), factor) })
}

/// What CUDA's caching allocator of that device holds; zeros before the first allocation.
///
/// # Errors
/// There is no such device.
pub fn memory(device: usize) -> Result<AllocatorMemory, ShimError> {
    let mut figures = [0_i64; 6];
    // SAFETY: the shim writes six numbers.
    check(unsafe { shim_memory(device as c_int, figures.as_mut_ptr()) })?;
    let [allocated, allocated_peak, reserved, reserved_peak, retries, failures] =
        figures.map(|figure| u64::try_from(figure).unwrap_or(0));
    Ok(AllocatorMemory { allocated, allocated_peak, reserved, reserved_peak, retries, failures })
}

/// Gives cached blocks back to the device.
///
/// # Errors
/// libtorch has thrown.
pub fn empty_cache() -> Result<(), ShimError> {
    // SAFETY: takes nothing.
    check(unsafe { shim_empty_cache() })
}

/// Switches TF32 for matrix products on or off.
///
/// # Errors
/// libtorch has thrown.
pub fn tf32(on: bool) -> Result<(), ShimError> {
    // SAFETY: takes a number.
    check(unsafe { shim_tf32(c_int::from(on)) })
}
