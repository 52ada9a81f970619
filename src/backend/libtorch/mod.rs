//! libtorch, through Burn's backend of that name: the one folder that knows it.
//!
//! Burn 0.22 is the last version with this backend, and says so wherever it is named.
#![allow(deprecated)]

pub(super) mod bytes;
pub(super) mod cross_entropy;
pub(super) mod eight_bit;
mod node;
pub(super) mod ops;
pub(super) mod optim;
pub mod shim;

use burn::tensor::Device;

use super::memory::DeviceMemory;
use crate::{
    backend::allocator,
    config::DeviceName,
    protocol::{Probe, SCHEMA},
};

/// What this program can train with.
pub fn probe() -> Probe {
    Probe {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git: option_env!("BUILD_GIT_REVISION").map(str::to_owned),
        libtorch: shim::version().unwrap_or_else(shim::built_for),
        built_for: shim::built_for(),
        folder: env!("LIBTORCH_LIB_DIR").to_owned(),
        cuda_build: tch::utils::has_cudart(),
        cuda_devices: if tch::Cuda::is_available() { tch::Cuda::device_count().max(0) as usize } else { 0 },
    }
}

/// The device of that name, `auto` being CUDA where there is any; and its name.
pub(super) fn open(name: DeviceName) -> (DeviceName, Device) {
    let name = match name {
        DeviceName::Auto if tch::Cuda::is_available() => DeviceName::LibtorchCuda(0),
        DeviceName::Auto => DeviceName::LibtorchCpu,
        named => named,
    };
    allocator::tensors_live_elsewhere();
    match name {
        DeviceName::LibtorchCuda(index) => (name, Device::libtorch_cuda(index)),
        _ => {
            shim::keep_freed_host_memory();
            (DeviceName::LibtorchCpu, Device::libtorch())
        }
    }
}

/// Every switch of libtorch's that cannot be thrown is left as it is.
pub(super) fn use_tf32(on: bool) {
    if tch::Cuda::is_available() {
        let _ = shim::tf32(on);
    }
}

pub(super) fn give_back_memory() {
    shim::give_back_host_memory();
    if tch::Cuda::is_available() {
        let _ = shim::empty_cache();
    }
}

/// Whether the device's memory is not the host's.
pub(super) fn has_own_memory(device: &Device) -> bool {
    let probe = burn::tensor::Tensor::<1>::zeros([1], device).try_into_primitive::<burn::backend::LibTorch>();
    probe.is_ok_and(|probe| probe.tensor.device() != tch::Device::Cpu)
}

/// What CUDA's caching allocator of that device holds; nothing of the processor, whose allocator is the program's.
pub(super) fn memory(name: DeviceName) -> Option<DeviceMemory> {
    let DeviceName::LibtorchCuda(index) = name else { return None };
    let shim::AllocatorMemory { allocated, allocated_peak, reserved, reserved_peak, retries, .. } =
        shim::memory(index).ok()?;
    Some(DeviceMemory { allocated, allocated_peak, reserved, reserved_peak, retries })
}
