//! Memory of a GPU as drivers before R510 tell it: NVML's first function for it, which the wrapper does not call. It is
//! called here through the pointer that the wrapper has loaded, and nothing else is.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use nvml_wrapper::{
    Device, Nvml,
    error::{NvmlError, nvml_sym, nvml_try},
};

/// Bytes used, the driver's own among them, and in all.
pub(super) fn memory(nvml: &Nvml, device: &Device<'_>) -> Result<(u64, u64), NvmlError> {
    let function = nvml_sym(nvml.lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut figures = MaybeUninit::zeroed();
    // SAFETY: the handle is that of a device which borrows this NVML, and the pointer that of a place for the answer.
    nvml_try(unsafe { function(device.handle(), figures.as_mut_ptr()) })?;
    // SAFETY: three integers, which were zeros before they were written.
    let figures = unsafe { figures.assume_init() };
    Ok((figures.used, figures.total))
}
