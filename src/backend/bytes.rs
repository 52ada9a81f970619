//! Bytes on a device, one an element, which Burn's tensors cannot hold there.

use burn::tensor::Device;

#[cfg(feature = "libtorch")]
use super::libtorch::bytes::Bytes;

/// A row of bytes in the memory of a device that has some of its own. Clones share it until one of them is written to.
#[derive(Debug, Clone)]
pub struct DeviceBytes {
    #[cfg(feature = "libtorch")]
    pub(super) bytes: Bytes,
    #[cfg(not(feature = "libtorch"))]
    none: std::convert::Infallible,
}

impl DeviceBytes {
    /// Copies them to the device; `None` where it holds none.
    pub fn of(values: &[u8], device: &Device) -> Option<Self> {
        #[cfg(feature = "libtorch")]
        return Bytes::of(values, device).map(|bytes| Self { bytes });
        #[cfg(not(feature = "libtorch"))]
        {
            let _ = (values, device);
            None
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        #[cfg(feature = "libtorch")]
        return self.bytes.len();
        #[cfg(not(feature = "libtorch"))]
        match self.none {}
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies them to the host.
    pub fn read(&self) -> Vec<u8> {
        #[cfg(feature = "libtorch")]
        return self.bytes.read();
        #[cfg(not(feature = "libtorch"))]
        match self.none {}
    }
}
