//! What libraries do not bear: files at which they panic, and those for which Hugging Face's `tokenizers` asks for memory
//! that nothing in them bears out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde_json::Value;

use crate::config::quiet::quietly;

/// Checks what can be seen of a `tokenizer.json` beforehand.
///
/// # Errors
/// It is no JSON, or a part of it is not what the library takes it for.
pub(super) fn check(text: &[u8]) -> Result<(), String> {
    /// The parts that it reads without a way to fail. Only they are kept.
    #[derive(Deserialize)]
    struct Parts {
        #[serde(default)]
        normalizer: Value,
        #[serde(default, rename = "decoder")]
        _decoder: Value,
    }
    let parts: Parts = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match charsmap(&parts.normalizer) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// What is wrong with a `precompiled_charsmap` anywhere in a normalizer: its first four bytes say how many bytes of a trie
/// follow, and so much memory is asked for.
fn charsmap(normalizer: &Value) -> Option<String> {
    match normalizer {
        Value::Array(several) => several.iter().find_map(charsmap),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| match value {
            Value::String(map) if key == "precompiled_charsmap" => {
                let (length, told) = (map.len() as u64 / 4 * 3, trie_bytes(map));
                told.filter(|told| *told + 4 > length).map(|told| {
                    format!("its precompiled_charsmap says that {told} bytes follow, and has {length} in all")
                })
            }
            other => charsmap(other),
        }),
        _ => None,
    }
}

/// The first four bytes of what is written in base 64; nothing where it is not.
fn trie_bytes(map: &str) -> Option<u64> {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u64;
    for sign in map.as_bytes().get(..6)? {
        bits = (bits << 6) | SIGNS.iter().position(|known| known == sign)? as u64;
    }
    // Six signs are 36 bits.
    Some(u64::from(u32::try_from(bits >> 4).ok()?.swap_bytes()))
}

/// Does something with a library, whose panics are told as its errors are, and by nobody else.
pub(super) fn held<T, E: std::fmt::Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match quietly(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing");
            Err(format!("the library gave up on it: {said}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_says_it_is_longer_than_it_is_is_refused_wherever_it_stands() {
        let map = |map: &str| format!(r#"{{"normalizer": {{"a": [{{"precompiled_charsmap": "{map}"}}]}}}}"#);
        // 0xfffffffc, 4 and 0 bytes of a trie, little end first.
        let told = check(map("/P///2FiY2Q=").as_bytes()).unwrap_err();
        assert!(told.contains("4294967292 bytes follow"), "{told}");
        assert!(check(map("BAAAAGFiY2Q=").as_bytes()).is_ok());
        assert!(check(map("AAAAAA==").as_bytes()).is_ok());
        for other in ["", "AA", "no base 64"] {
            assert!(check(map(other).as_bytes()).is_ok(), "{other:?} is left to the library");
        }
        assert!(check(br#"{"decoder": {"type": "\ud800"}}"#).is_err(), "half a character");
        assert!(check(b"{\"decoder\": {\"type\": \"\xff\"}}").is_err(), "no UTF-8");
    }

    #[test]
    fn a_panic_is_an_error() {
        let told = held(|| -> Result<(), String> { panic!("no {}", "way") }).unwrap_err();
        assert_eq!(told, "the library gave up on it: no way");
        assert_eq!(held(|| Err::<(), _>("wrong")), Err("wrong".to_owned()));
        assert_eq!(held(|| Ok::<_, String>(3)), Ok(3));
    }
}
