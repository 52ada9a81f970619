//! Dropout whose masks are drawn on the host: the same on every device, and again when a pass is repeated.

use burn::tensor::{Tensor, TensorData};
use rand::Rng;

use crate::data::random;

/// What dropout drops in one pass: a function of (seed, update, micro-batch) and of the place in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noise(Option<Place>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    seed: u64,
    update: u64,
    micro_batch: u64,
}

impl Noise {
    /// Nothing is dropped: evaluation.
    pub const fn off() -> Self {
        Self(None)
    }

    /// The masks of one micro-batch of an update.
    pub const fn of(seed: u64, update: u64, micro_batch: u64) -> Self {
        Self(Some(Place { seed, update, micro_batch }))
    }

    /// A seed for what draws from a generator of its own; the same for every evaluation.
    pub const fn seed(&self) -> u64 {
        let Some(Place { seed, update, micro_batch }) = self.0 else { return random::mix(0) };
        random::mix(random::mix(seed) ^ random::mix(update) ^ micro_batch.rotate_left(32))
    }

    /// Whether [`Noise::drop`] with that probability drops anything.
    pub fn drops(&self, share: f64) -> bool {
        self.0.is_some() && share > 0.0
    }

    /// `torch.nn.Dropout`: each element is zero with probability `share`, the rest is divided by `1 - share`. `site`
    /// tells apart the places of a model, such as `layer.0.attention`.
    pub fn drop<const D: usize>(&self, x: Tensor<D>, share: f64, site: &str) -> Tensor<D> {
        let Some(Place { seed, update, micro_batch }) = self.0 else { return x };
        if share <= 0.0 {
            return x;
        }
        let key = random::mix(random::hash(site) ^ random::mix(update) ^ micro_batch.rotate_left(32));
        let mut generator = random::generator(seed, "dropout", key);
        let shape = x.dims();
        // A 32-bit draw below the threshold drops: the probability is exact to 2^-32.
        let threshold = (share * f64::from(u32::MAX)) as u32;
        let kept = (1.0 / (1.0 - share)) as f32;
        let count = shape.iter().product();
        let mask: Vec<f32> =
            (0..count).map(|_| if generator.next_u32() < threshold { 0.0 } else { kept }).collect();
        let device = x.device().inner();
        let dtype = x.dtype();
        x * Tensor::<D>::from_data(TensorData::new(mask, shape), &device).cast(dtype)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn dropped(noise: Noise, share: f64, site: &str) -> Vec<f32> {
        let ones = Tensor::<2>::ones([100, 100], &Device::flex());
        noise.drop(ones, share, site).into_data().iter::<f32>().collect()
    }

    #[test]
    fn the_share_is_dropped_and_the_mean_is_kept() {
        let values = dropped(Noise::of(1, 5, 0), 0.2, "a");
        let zeros = values.iter().filter(|value| **value == 0.0).count();
        // 10,000 draws: six standard deviations are 240.
        assert!((1760..=2240).contains(&zeros), "{zeros}");
        assert!(values.iter().all(|value| *value == 0.0 || (*value - 1.25).abs() < 1e-6));
    }

    #[test]
    fn masks_repeat_and_differ_by_place() {
        let first = dropped(Noise::of(1, 5, 0), 0.5, "a");
        assert_eq!(first, dropped(Noise::of(1, 5, 0), 0.5, "a"));
        for other in [
            dropped(Noise::of(2, 5, 0), 0.5, "a"),
            dropped(Noise::of(1, 6, 0), 0.5, "a"),
            dropped(Noise::of(1, 5, 1), 0.5, "a"),
            dropped(Noise::of(1, 5, 0), 0.5, "b"),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn nothing_is_dropped_in_evaluation() {
        assert!(dropped(Noise::off(), 0.5, "a").iter().all(|value| *value == 1.0));
    }
}
