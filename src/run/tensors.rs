//! Reading a safetensors file piece by piece, so that a checkpoint of any size needs little memory.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::{RunError, own};
use crate::protocol::TensorStats;

/// Bytes read at once; a multiple of every element's size.
const BLOCK: usize = 1 << 20;

/// Longest header that is believed, in bytes.
const LONGEST_HEADER: u64 = 100 << 20;

/// A safetensors file whose header has been read.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    file: File,
    metadata: Metadata,
    /// Where the tensors' bytes begin.
    start: u64,
}

impl TensorFile {
    /// Reads the header.
    ///
    /// # Errors
    /// The file cannot be read, is no safetensors file, or is shorter than its header says.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let reading = RunError::io("cannot read", path);
        let damaged = |problem: String| RunError::Damaged { path: path.to_owned(), problem };
        let header = || -> io::Result<(File, u64, u64, Vec<u8>)> {
            let (file, length) = own::look_long(path)?;
            let mut size = [0; 8];
            file.read_exact_at(&mut size, 0)?;
            let size = u64::from_le_bytes(size);
            let believed = size.min(LONGEST_HEADER).min(length.saturating_sub(8));
            let mut header = vec![0; usize::try_from(believed).unwrap_or_default()];
            file.read_exact_at(&mut header, 8)?;
            Ok((file, length, size, header))
        };
        let (file, length, size, header) = header().map_err(reading)?;
        if header.len() as u64 != size {
            return Err(damaged("is not a safetensors file: its header is longer than the file".into()));
        }
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| damaged(format!("is not a safetensors file: {error}")))?;
        let start = 8 + size;
        if start + metadata.data_len() as u64 != length {
            return Err(damaged("is cut short: it holds less or more than its header says".into()));
        }
        Ok(Self { path: path.to_owned(), file, metadata, start })
    }

    /// The tensors' names, in the order in which their bytes stand.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// The tensor's type and shape.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.metadata.info(name)
    }

    /// The tensor's bytes as they stand in the file.
    ///
    /// # Errors
    /// The tensor does not exist or the file cannot be read.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, RunError> {
        let info = self.known(name)?;
        let (from, to) = info.data_offsets;
        let mut bytes = vec![0; to - from];
        let read = self.file.read_exact_at(&mut bytes, self.start + from as u64);
        read.map_err(RunError::io("cannot read", &self.path))?;
        Ok(bytes)
    }

    fn known(&self, name: &str) -> Result<&TensorInfo, RunError> {
        self.metadata.info(name).ok_or_else(|| RunError::Damaged {
            path: self.path.clone(),
            problem: format!("holds no tensor `{name}`"),
        })
    }

    /// Shows the tensor's elements to `take`, piece by piece and in order; nothing for types that are no plain numbers.
    /// Returns whether there was something to show.
    ///
    /// # Errors
    /// The tensor does not exist or the file cannot be read.
    pub fn each(&self, name: &str, mut take: impl FnMut(&[f64])) -> Result<bool, RunError> {
        let info = self.known(name)?;
        let Some((size, read)) = reader(info.dtype) else { return Ok(false) };
        let (mut at, end) = info.data_offsets;
        let (mut bytes, mut values) = (vec![0; BLOCK.min(end - at)], Vec::new());
        while at < end {
            let piece = &mut bytes[..BLOCK.min(end - at)];
            self.file
                .read_exact_at(piece, self.start + at as u64)
                .map_err(RunError::io("cannot read", &self.path))?;
            values.clear();
            values.extend(piece.chunks_exact(size).map(read));
            take(&values);
            at += piece.len();
        }
        Ok(true)
    }
}

/// The name of an element type as tables print it.
pub fn dtype_name(dtype: Dtype) -> String {
    format!("{dtype:?}").to_lowercase()
}

type Read = fn(&[u8]) -> f64;

/// Bytes of one element, and how it becomes a number.
fn reader(dtype: Dtype) -> Option<(usize, Read)> {
    macro_rules! little_endian {
        ($type:ty) => {
            |b: &[u8]| b.try_into().map(<$type>::from_le_bytes).map_or(f64::NAN, |v| v as f64)
        };
    }
    let reader: (usize, Read) = match dtype {
        Dtype::F32 => (4, little_endian!(f32)),
        Dtype::F64 => (8, little_endian!(f64)),
        Dtype::BF16 => (2, |b| b.try_into().map(u16::from_le_bytes).map_or(f64::NAN, bf16)),
        Dtype::F16 => (2, |b| b.try_into().map(u16::from_le_bytes).map_or(f64::NAN, f16)),
        Dtype::U8 => (1, little_endian!(u8)),
        Dtype::I8 => (1, little_endian!(i8)),
        Dtype::I32 => (4, little_endian!(i32)),
        Dtype::I64 => (8, little_endian!(i64)),
        _ => return None,
    };
    Some(reader)
}

/// The upper half of an f32.
pub(super) fn bf16(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

/// IEEE 754 half precision: 1 sign, 5 exponent and 10 fraction bits.
pub(super) fn f16(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Adds up statistics in f64. The smallest and the largest leave out what is not a number; mean and RMS do not.
#[derive(Debug, Clone, Copy)]
pub struct StatsBuilder {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    squares: f64,
    zeros: u64,
    nonfinite: u64,
}

impl Default for StatsBuilder {
    fn default() -> Self {
        Self { count: 0, min: f64::NAN, max: f64::NAN, sum: 0.0, squares: 0.0, zeros: 0, nonfinite: 0 }
    }
}

impl StatsBuilder {
    /// Takes more elements.
    pub fn push(&mut self, values: &[f64]) {
        for &value in values {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.sum += value;
            self.squares += value * value;
            self.zeros += u64::from(value == 0.0);
            self.nonfinite += u64::from(!value.is_finite());
        }
        self.count += values.len() as u64;
    }

    /// The statistics; of no elements all but the counts are not a number.
    pub fn finish(self) -> TensorStats {
        let count = self.count as f64;
        TensorStats {
            min: self.min,
            max: self.max,
            mean: self.sum / count,
            rms: (self.squares / count).sqrt(),
            zeros: self.zeros,
            nonfinite: self.nonfinite,
        }
    }
}

/// What 8-bit codes stand for: a value of the map times the largest value of the code's block.
#[derive(Debug)]
pub struct Decoder {
    map: Vec<f64>,
    absmax: Vec<f64>,
    blocksize: usize,
    /// Codes decoded so far.
    at: usize,
    values: Vec<f64>,
}

impl Decoder {
    /// With the 256 values of the codes and the scale of every `blocksize` elements in row-major order; nothing when these
    /// are not the scales of so many elements.
    pub fn new(map: Vec<f64>, absmax: Vec<f64>, blocksize: usize, elements: usize) -> Option<Self> {
        let fits = map.len() == 256 && blocksize > 0 && absmax.len() == elements.div_ceil(blocksize);
        fits.then_some(Self { map, absmax, blocksize, at: 0, values: Vec::new() })
    }

    /// The values of the next codes, rounded to f32 as the optimizer has them.
    pub fn decode(&mut self, codes: &[f64]) -> &[f64] {
        self.values.clear();
        for &code in codes {
            let scale = self.absmax.get(self.at / self.blocksize).copied().unwrap_or(f64::NAN);
            let value = self.map.get(code as usize).copied().unwrap_or(f64::NAN);
            // Both are f32, so that their product in f64 is exact and is rounded once.
            self.values.push(f64::from((value * scale) as f32));
            self.at += 1;
        }
        &self.values
    }
}

/// Counts the rows of a second moment that no gradient has touched.
#[derive(Debug)]
pub struct UntouchedRows {
    /// Elements of a row.
    columns: usize,
    /// Largest value of an element that was never touched.
    floor: f64,
    at: usize,
    touched: bool,
    count: u64,
}

impl UntouchedRows {
    /// For rows of so many elements, untouched while none is above `floor`.
    pub const fn new(columns: usize, floor: f64) -> Self {
        Self { columns, floor, at: 0, touched: false, count: 0 }
    }

    /// Takes the next elements, in row-major order.
    pub fn push(&mut self, values: &[f64]) {
        for &value in values {
            // What is not a number was touched.
            self.touched |= value.is_nan() || value > self.floor;
            self.at += 1;
            if self.at == self.columns {
                self.count += u64::from(!self.touched);
                (self.at, self.touched) = (0, false);
            }
        }
    }

    /// How many rows there are.
    pub const fn finish(self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_all_elements() {
        let mut stats = StatsBuilder::default();
        stats.push(&[3.0, 0.0]);
        stats.push(&[-4.0, 0.0]);
        let stats = stats.finish();
        assert_eq!((stats.min, stats.max, stats.mean, stats.rms), (-4.0, 3.0, -0.25, 2.5));
        assert_eq!((stats.zeros, stats.nonfinite), (2, 0));
        let mut broken = StatsBuilder::default();
        broken.push(&[1.0, f64::NAN, f64::INFINITY]);
        let broken = broken.finish();
        assert_eq!((broken.min, broken.max, broken.nonfinite), (1.0, f64::INFINITY, 2));
        assert!(broken.mean.is_nan() && broken.rms.is_nan());
    }

    #[test]
    fn short_floats_are_read_as_what_they_stand_for() {
        assert_eq!(
            [0x3c00, 0xc000, 0x0001, 0x7c00, 0x3555].map(f16),
            [1.0, -2.0, 2_f64.powi(-24), f64::INFINITY, 0.333_251_953_125]
        );
        assert!(f16(0x7e00).is_nan());
        assert_eq!([0x3f80, 0xc000].map(bf16), [1.0, -2.0]);
    }

    #[test]
    fn a_file_that_is_cut_short_or_something_else_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.safetensors");
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            TensorFile::open(&path).unwrap_err().to_string()
        };
        assert!(told(b"abc").contains("t.safetensors"));
        assert!(told(b"plain text, not tensors").contains("header is longer"));
        let header = br#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(&1_f32.to_le_bytes());
        assert!(told(&bytes).contains("cut short"));
        bytes.extend_from_slice(&2_f32.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let file = TensorFile::open(&path).unwrap();
        let mut read = Vec::new();
        assert!(file.each("a", |values| read.extend_from_slice(values)).unwrap());
        assert_eq!((file.names(), read), (vec!["a".to_owned()], vec![1.0, 2.0]));
        assert!(file.each("b", |_| {}).unwrap_err().to_string().contains("no tensor `b`"));
    }

    #[test]
    fn codes_stand_for_shares_of_their_blocks_largest_value() {
        let map: Vec<f64> = (0..256).map(|code| f64::from(code) / 256.0).collect();
        let mut decoder = Decoder::new(map.clone(), vec![2.0, 8.0], 3, 5).unwrap();
        assert_eq!(decoder.decode(&[0.0, 128.0]), [0.0, 1.0]);
        assert_eq!(decoder.decode(&[64.0, 64.0, 255.0]), [0.5, 2.0, 255.0 / 32.0]);
        assert!(Decoder::new(map.clone(), vec![2.0], 3, 5).is_none());
        assert!(Decoder::new(map[..255].to_vec(), vec![2.0, 8.0], 3, 5).is_none());
        assert!(Decoder::new(map, vec![2.0, 8.0], 0, 5).is_none());
    }

    #[test]
    fn rows_are_untouched_while_none_of_their_elements_is_above_the_floor() {
        let count = |columns, floor, values: &[f64]| {
            let mut rows = UntouchedRows::new(columns, floor);
            values.chunks(3).for_each(|piece| rows.push(piece));
            rows.finish()
        };
        assert_eq!(count(2, 0.0, &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, f64::NAN, 0.0]), 2);
        assert_eq!(count(1, 1e-30, &[1e-30, 1e-29, 0.0]), 2);
    }
}
