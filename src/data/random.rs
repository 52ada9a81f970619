//! Randomness of the host, a function of (seed, purpose, index) alone: the same on every machine.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The generator for one purpose. `index` tells apart the generators of one purpose, such as those of the epochs.
/// The first 16 bytes of `purpose` count.
pub fn generator(seed: u64, purpose: &str, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&index.to_le_bytes());
    for (slot, byte) in key[16..].iter_mut().zip(purpose.bytes()) {
        *slot = byte;
    }
    ChaCha8Rng::from_seed(key)
}

/// A number in `0..bound`, or 0 where the bound is 0. The bias is below `bound / 2^64`.
pub fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A well-mixed function of a number (the finaliser of SplitMix64), for choices that need no seed.
pub const fn mix(index: u64) -> u64 {
    let mut z = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The 64-bit FNV-1a hash of a name, for use as an index: the standard library's hasher may change between versions.
pub fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_key_matters_and_repeats() {
        let first = |seed, purpose, index| generator(seed, purpose, index).next_u64();
        assert_eq!(first(1, "data order", 0), first(1, "data order", 0));
        let others = [first(2, "data order", 0), first(1, "data", 0), first(1, "data order", 1)];
        assert!(others.iter().all(|other| *other != first(1, "data order", 0)));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = generator(7, "test", 0);
        let mut seen = [0; 5];
        for _ in 0..500 {
            seen[below(&mut rng, 5) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
        assert_eq!(below(&mut rng, 1), 0);
    }
}
