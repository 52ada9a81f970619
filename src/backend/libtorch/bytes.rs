//! Tensors of bytes, which Burn's libtorch backend does not have.

use std::sync::Arc;

use burn::{
    backend::LibTorch,
    tensor::{Device, Tensor},
};

/// `[n]`, uint8, shared until it is written to.
#[derive(Debug, Clone)]
pub(in crate::backend) struct Bytes(Arc<tch::Tensor>);

impl Bytes {
    pub(in crate::backend) fn of(values: &[u8], device: &Device) -> Option<Self> {
        // Where such a device's tensors live is what one of them says.
        let probe = Tensor::<1>::zeros([1], device).try_into_primitive::<LibTorch>().ok()?;
        Some(Self(Arc::new(tch::Tensor::from_slice(values).to_device(probe.tensor.device()))))
    }

    pub(in crate::backend) fn len(&self) -> usize {
        self.0.numel()
    }

    pub(in crate::backend) fn read(&self) -> Vec<u8> {
        let mut values = vec![0; self.len()];
        self.0.to_device(tch::Device::Cpu).copy_data(&mut values, self.len());
        values
    }

    /// For writing: a copy of its own when somebody else holds it, too.
    pub(super) fn writable(&mut self) -> &tch::Tensor {
        if Arc::strong_count(&self.0) > 1 {
            self.0 = Arc::new(self.0.copy());
        }
        &self.0
    }
}
