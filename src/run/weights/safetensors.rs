//! The header of a safetensors file, believed in nothing that its length does not bear out.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use safetensors::tensor::{Dtype, TensorInfo};
use serde_json::{Map, Value};

use super::{
    WeightsError,
    element::{Element, Located},
    error::quoted,
};
use crate::run::{own, text};

/// Longest header that is believed, in bytes.
const LONGEST_HEADER: u64 = 100 << 20;
/// Bytes that say how long the header is.
const LENGTH: u64 = 8;

/// The tensors of a file, by name; `number` is the file's among those of its source.
///
/// # Errors
/// The file cannot be read, or is not what its header says.
pub(super) fn open(path: &Path, number: usize) -> Result<(File, Vec<(String, Located)>), WeightsError> {
    let damaged = |problem: String| WeightsError::damaged(path, problem);
    let (file, length) = own::look_long(path).map_err(WeightsError::io(path))?;
    if length < LENGTH {
        return Err(damaged(format!("is cut short: {length} bytes are no safetensors file")));
    }
    let mut size = [0; LENGTH as usize];
    file.read_exact_at(&mut size, 0).map_err(WeightsError::io(path))?;
    let size = u64::from_le_bytes(size);
    if size > length - LENGTH || size > LONGEST_HEADER {
        return Err(damaged(format!(
            "is no safetensors file, or cut short: it says that its header has {size} bytes, and the whole file has {length}"
        )));
    }
    let mut header = vec![0; usize::try_from(size).unwrap_or_default()];
    file.read_exact_at(&mut header, LENGTH).map_err(WeightsError::io(path))?;
    let start = LENGTH + size;
    let infos = infos(&header, length - start).map_err(damaged)?;
    let located = infos.into_iter().map(|(name, info)| {
        let start = start + info.data_offsets.0 as u64;
        (
            name,
            Located { file: number, element: element(info.dtype), shape: info.shape, start, strides: None },
        )
    });
    Ok((file, located.collect()))
}

/// Reads the header and holds it against the bytes there are.
fn infos(header: &[u8], bytes: u64) -> Result<Vec<(String, TensorInfo)>, String> {
    let mut table: Map<String, Value> = serde_json::from_slice(header)
        .map_err(|error| format!("is no safetensors file: its header is no JSON ({error})"))?;
    table.remove("__metadata__");
    let mut infos = Vec::with_capacity(table.len());
    for (name, value) in table {
        let info: TensorInfo = serde_json::from_value(value).map_err(|error| {
            format!(
                "its header says nothing usable of {}: {}",
                quoted(&name),
                text::plain(&error.to_string())
            )
        })?;
        infos.push((name, info));
    }
    infos.sort_by_key(|(_, info)| info.data_offsets);
    let mut last: Option<(&str, usize)> = None;
    for (name, info) in &infos {
        let ((from, to), before) = (info.data_offsets, last.map_or(0, |(_, end)| end));
        if to as u64 > bytes {
            return Err(format!(
                "is cut short, or its header lies: {} should end at byte {to} of {bytes}",
                quoted(name)
            ));
        }
        let elements = info.shape.iter().try_fold(1_usize, |count, length| count.checked_mul(*length));
        let needed = elements.and_then(|count| count.checked_mul(info.dtype.bitsize())).map(|bits| bits / 8);
        if to < from || needed != Some(to - from) {
            return Err(format!(
                "its header contradicts itself: {} is {} of {}, which are not the {} bytes it is given",
                quoted(name),
                text::shape(&info.shape),
                info.dtype,
                to.saturating_sub(from)
            ));
        }
        if from < before {
            let other = last.map(|(other, _)| quoted(other)).unwrap_or_default();
            return Err(format!("its header contradicts itself: {} and {other} overlap", quoted(name)));
        }
        if from > before {
            return Err(format!(
                "its header contradicts itself: bytes {before} to {from} before {} belong to no tensor",
                quoted(name)
            ));
        }
        last = Some((name, to));
    }
    let end = last.map_or(0, |(_, end)| end) as u64;
    if end < bytes {
        return Err(format!("holds {} bytes more than its header says", bytes - end));
    }
    Ok(infos)
}

const fn element(dtype: Dtype) -> Element {
    match dtype {
        Dtype::F32 => Element::F32,
        Dtype::F64 => Element::F64,
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::BOOL => Element::Other("BOOL", 1),
        Dtype::U8 => Element::Other("U8", 1),
        Dtype::I8 => Element::Other("I8", 1),
        Dtype::I16 => Element::Other("I16", 2),
        Dtype::U16 => Element::Other("U16", 2),
        Dtype::I32 => Element::Other("I32", 4),
        Dtype::U32 => Element::Other("U32", 4),
        Dtype::I64 => Element::Other("I64", 8),
        Dtype::U64 => Element::Other("U64", 8),
        Dtype::C64 => Element::Other("C64", 8),
        Dtype::F8_E5M2 => Element::Other("F8_E5M2", 1),
        Dtype::F8_E4M3 => Element::Other("F8_E4M3", 1),
        _ => Element::Other("a type of less than 16 bits", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    fn tensor(name: &str, dtype: &str, shape: &str, from: u64, to: u64) -> String {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    }

    #[test]
    fn a_file_is_believed_only_as_far_as_it_reaches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.safetensors");
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            open(&path, 0).unwrap_err().to_string()
        };
        let header = |tensors: &[String]| format!("{{{}}}", tensors.join(","));
        let good = header(&[tensor("a", "F32", "[2,3]", 0, 24), tensor("b", "BF16", "[]", 24, 26)]);
        std::fs::write(&path, file(&good, 26)).unwrap();
        let (_, tensors) = open(&path, 3).unwrap();
        assert_eq!(tensors[0].1.start, 8 + good.len() as u64);
        assert_eq!((tensors[1].0.as_str(), &tensors[1].1.element), ("b", &Element::Bf16));
        assert_eq!((tensors[1].1.file, tensors[1].1.shape.len()), (3, 0));

        for (bytes, words) in [
            (b"abc".to_vec(), "cut short: 3 bytes"),
            (b"plain text, and no tensors".to_vec(), "the whole file has 26"),
            (u64::MAX.to_le_bytes().to_vec(), "its header has 18446744073709551615 bytes"),
            (file("[1]", 0), "no JSON"),
            (file(r#"{"a":1}"#, 0), "nothing usable of `a`"),
            (file(r#"{"a":{"dtype":"F99","shape":[],"data_offsets":[0,4]}}"#, 4), "nothing usable of `a`"),
            (file(&good, 25), "cut short, or its header lies: `b` should end at byte 26 of 25"),
            (file(&good, 30), "4 bytes more"),
            (file(&header(&[tensor("a", "F32", "[2]", 0, 4)]), 4), "not the 4 bytes"),
            (file(&header(&[tensor("a", "F32", "[2]", 8, 0)]), 8), "not the 0 bytes"),
            (
                file(&header(&[tensor("a", "F32", "[4294967296,4294967296]", 0, 4)]), 4),
                "contradicts itself: `a` is [4294967296, 4294967296] of F32",
            ),
            (
                file(&header(&[tensor("a", "F32", "[2]", 0, 8), tensor("b", "F32", "[2]", 4, 12)]), 12),
                "`b` and `a` overlap",
            ),
            (file(&header(&[tensor("a", "F32", "[1]", 4, 8)]), 8), "bytes 0 to 4 before `a`"),
            (file(r#"{"a\u001b[2J\n":1}"#, 0), "nothing usable of `a [2J `"),
        ] {
            let sentence = told(&bytes);
            assert!(sentence.contains(words), "`{words}` is not in: {sentence}");
            assert!(sentence.contains("t.safetensors") && !sentence.contains('\n'), "{sentence}");
        }
    }
}
