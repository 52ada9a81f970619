//! Randomness that is ours: a generator on the host for each purpose, the same on every device.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// The generator of one purpose (such as `weights`), of one thing within it (such as a parameter's name).
pub fn generator(seed: u64, purpose: &str, thing: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (slot, word) in key.chunks_exact_mut(8).zip([seed, fnv1a(purpose), fnv1a(thing)]) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// The 64-bit FNV-1a hash: the standard library's hasher may change between versions.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
