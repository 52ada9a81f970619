//! Where a tensor's numbers stand in a file, and how they become f32.

use std::{fs::File, io, os::unix::fs::FileExt};

use crate::run::tensors::{bf16, f16};

/// Bytes read at once; a multiple of every element's size.
const BLOCK: usize = 1 << 20;

/// The type of a tensor's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    F32,
    F64,
    F16,
    Bf16,
    /// No weights; its name and its bytes.
    Other(&'static str, usize),
}

impl Element {
    /// Bytes of one element.
    pub(super) const fn size(&self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Other(_, size) => *size,
        }
    }

    /// Appends the elements as f32, the nearest where the type is wider. Nothing for what is no type of weights.
    fn decode(&self, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            Self::F32 => out.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
            Self::F64 => out.extend(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32)),
            Self::F16 => out.extend(bytes.as_chunks().0.iter().map(|b| f16(u16::from_le_bytes(*b)) as f32)),
            Self::Bf16 => out.extend(bytes.as_chunks().0.iter().map(|b| bf16(u16::from_le_bytes(*b)) as f32)),
            Self::Other(..) => {}
        }
    }
}

/// A tensor in a file. Whoever makes one has checked that all of it lies within the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    /// Number of the file among those of the source.
    pub(super) file: usize,
    pub(super) element: Element,
    pub(super) shape: Vec<usize>,
    /// The byte at which its first element stands.
    pub(super) start: u64,
    /// Elements from one to the next along each axis; `None`: rows one after another, without gaps.
    pub(super) strides: Option<Vec<usize>>,
}

impl Located {
    /// All elements as f32, in row-major order.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter since it was opened.
    pub(super) fn read(&self, file: &File) -> io::Result<Vec<f32>> {
        let count: usize = self.shape.iter().product();
        let Some(strides) = &self.strides else { return self.read_rows(file, count) };
        if count == 0 {
            return Ok(Vec::new());
        }
        let last: usize = self.shape.iter().zip(strides).map(|(length, stride)| (length - 1) * stride).sum();
        let stored = self.read_rows(file, last + 1)?;
        let (mut place, mut index) = (vec![0; self.shape.len()], 0);
        let mut out = Vec::with_capacity(count);
        for _ in 0..count {
            out.push(stored[index]);
            for axis in (0..place.len()).rev() {
                place[axis] += 1;
                index += strides[axis];
                if place[axis] < self.shape[axis] {
                    break;
                }
                index -= strides[axis] * self.shape[axis];
                place[axis] = 0;
            }
        }
        Ok(out)
    }

    /// That many elements as they stand.
    fn read_rows(&self, file: &File, count: usize) -> io::Result<Vec<f32>> {
        let mut out = Vec::with_capacity(count);
        let (mut at, end) = (0, count * self.element.size());
        let mut block = vec![0; BLOCK.min(end)];
        while at < end {
            let piece = &mut block[..BLOCK.min(end - at)];
            file.read_exact_at(piece, self.start + at as u64)?;
            self.element.decode(piece, &mut out);
            at += piece.len();
        }
        Ok(out)
    }
}

/// The strides of a tensor whose rows stand one after another, in elements.
pub(super) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn located(element: Element, shape: &[usize], start: u64, strides: Option<Vec<usize>>) -> Located {
        Located { file: 0, element, shape: shape.to_vec(), start, strides }
    }

    #[test]
    fn every_type_of_weights_becomes_f32() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&1.5_f32.to_le_bytes()).unwrap();
        file.write_all(&0.1_f64.to_le_bytes()).unwrap();
        file.write_all(&0x3e00_u16.to_le_bytes()).unwrap();
        file.write_all(&0xbfc0_u16.to_le_bytes()).unwrap();
        let read = |element, start| located(element, &[], start, None).read(&file).unwrap();
        assert_eq!(read(Element::F32, 0), [1.5]);
        assert_eq!(read(Element::F64, 4), [0.1]);
        assert_eq!(read(Element::F16, 12), [1.5]);
        assert_eq!(read(Element::Bf16, 14), [-1.5]);
    }

    #[test]
    fn a_view_is_read_in_the_order_of_its_axes() {
        let mut file = tempfile::tempfile().unwrap();
        for value in 0..7 {
            file.write_all(&(value as f32).to_le_bytes()).unwrap();
        }
        let read = |shape: &[usize], strides: &[usize]| {
            located(Element::F32, shape, 4, Some(strides.to_vec())).read(&file).unwrap()
        };
        assert_eq!(read(&[3, 2], &[1, 3]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], "a transposed view");
        assert_eq!(read(&[2, 2], &[0, 1]), [1.0, 2.0, 1.0, 2.0], "an expanded view");
        assert!(read(&[0, 2], &[9, 9]).is_empty());
        let beyond = located(Element::F32, &[7], 4, None).read(&file);
        assert_eq!(beyond.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
