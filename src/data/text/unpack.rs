//! A file as the bytes it holds, whatever it is packed with.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    path::Path,
    rc::Rc,
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use super::super::{DataError, corpus::unreadable};
use crate::config::file_kind::Packing;

/// Bytes that are read from the disk at once.
const AT_ONCE: usize = 1 << 16;

/// How far a file has been read.
#[derive(Debug, Clone, Default)]
pub(in crate::data) struct Meter(Rc<Meters>);

#[derive(Debug, Default)]
struct Meters {
    read: Cell<u64>,
    at_end: Cell<bool>,
}

impl Meter {
    /// Bytes that have been read, as they lie on the disk.
    pub(in crate::data) fn read(&self) -> u64 {
        self.0.read.get()
    }

    /// So many bytes have been read by somebody else, as far as that can be told.
    #[cfg(feature = "parquet")]
    pub(in crate::data) fn reached(&self, bytes: u64) {
        self.0.read.set(bytes);
    }
}

/// Counts what is read from a file.
struct Metered {
    file: File,
    meter: Meter,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(buffer)?;
        self.meter.0.read.set(self.meter.0.read.get() + got as u64);
        if got == 0 && !buffer.is_empty() {
            self.meter.0.at_end.set(true);
        }
        Ok(got)
    }
}

/// What a file holds.
pub(in crate::data) struct Unpacked {
    inner: Box<dyn Read>,
    name: String,
    packing: Packing,
    meter: Meter,
    /// Bytes that came out.
    out: u64,
}

impl Unpacked {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(in crate::data) fn open(path: &Path, packing: Packing, meter: Meter) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
        let metered = Metered { file, meter: meter.clone() };
        let buffered = || io::BufReader::with_capacity(AT_ONCE, metered);
        let inner: Box<dyn Read> = match packing {
            Packing::None => Box::new(buffered()),
            Packing::Gzip => Box::new(MultiGzDecoder::new(buffered())),
            Packing::Zstd => Box::new(Frames { source: buffered(), decoder: None }),
        };
        Ok(Self { inner, name, packing, meter, out: 0 })
    }

    /// Reads until the buffer is full or nothing is left.
    ///
    /// # Errors
    /// The file cannot be read, ends early, or is damaged.
    pub(in crate::data) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, DataError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(got) => filled += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(&error)),
            }
        }
        self.out += filled as u64;
        Ok(filled)
    }

    fn fault(&self, error: &io::Error) -> DataError {
        let path = self.name.clone();
        let packing = match self.packing {
            Packing::None => return unreadable(&path, error),
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        };
        if self.meter.0.at_end.get() {
            return DataError::EndsEarly { path, packing, bytes: self.meter.read(), text: self.out };
        }
        DataError::Damaged { path, packing, bytes: self.meter.read(), problem: error.to_string() }
    }
}

/// All frames of a zstd file, one behind another.
struct Frames<R> {
    source: R,
    /// Of the frame that is being read.
    decoder: Option<FrameDecoder>,
}

impl<R: io::BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.decoder {
                Some(decoder) if decoder.can_collect() > 0 => return decoder.read(buffer),
                Some(decoder) if !decoder.is_finished() => {
                    decoder
                        .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                        .map_err(io::Error::other)?;
                }
                _ => {
                    if let Some(sum) = self.decoder.as_ref().and_then(FrameDecoder::get_checksum_from_data)
                        && self.decoder.as_ref().and_then(FrameDecoder::get_calculated_checksum) != Some(sum)
                    {
                        return Err(io::Error::other("its checksum is another"));
                    }
                    if self.source.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let mut decoder = self.decoder.take().unwrap_or_default();
                    match decoder.reset(&mut self.source) {
                        Ok(()) => self.decoder = Some(decoder),
                        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                            length,
                            ..
                        })) => {
                            let length = u64::from(length);
                            let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                            if skipped < length {
                                return Err(io::ErrorKind::UnexpectedEof.into());
                            }
                        }
                        Err(error) => return Err(io::Error::other(error)),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(in crate::data) mod tests {
    use std::io::Write;

    use tempfile::tempdir;

    use super::*;
    use crate::config::file_kind;

    pub(in crate::data) fn gzip(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    pub(in crate::data) fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn read(name: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let folder = tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut file = Unpacked::open(&path, file_kind::of(&path).0, Meter::default()).unwrap();
        let (mut all, mut buffer) = (Vec::new(), [0; 1000]);
        loop {
            match file.fill(&mut buffer).map_err(|error| error.to_string())? {
                0 => return Ok(all),
                got => all.extend_from_slice(&buffer[..got]),
            }
        }
    }

    fn text() -> Vec<u8> {
        (0..30_000)
            .flat_map(|number: u32| format!("line {}\n", number.wrapping_mul(2_654_435_761)).into_bytes())
            .collect()
    }

    #[test]
    fn every_packing_gives_the_same_bytes() {
        let text = text();
        assert_eq!(read("a.txt", &text).unwrap(), text);
        assert_eq!(read("a.txt.gz", &gzip(&text)).unwrap(), text);
        assert_eq!(read("a.txt.zst", &zstd(&text)).unwrap(), text);
    }

    #[test]
    fn several_members_and_frames_are_one_text() {
        let parts = |pack: fn(&[u8]) -> Vec<u8>| [pack(b"one "), pack(b"two")].concat();
        assert_eq!(read("a.gz", &parts(gzip)).unwrap(), b"one two");
        let mut frames = parts(zstd);
        // A frame to be skipped: its magic number, a length of 3, and 3 bytes.
        frames.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]);
        frames.extend(zstd(b" three"));
        assert_eq!(read("a.zst", &frames).unwrap(), b"one two three");
    }

    #[test]
    fn a_file_that_ends_early_or_is_damaged_says_so() {
        let text = text();
        for (name, packed) in [("a.txt.gz", gzip(&text)), ("a.txt.zst", zstd(&text))] {
            for keep in [packed.len() / 2, packed.len() - 1, 3] {
                let message = read(name, &packed[..keep]).unwrap_err();
                assert!(message.contains(name) && message.contains("ends early"), "{keep}: {message}");
                assert_eq!(message.lines().count(), 1, "{message}");
            }
            let mut broken = packed.clone();
            broken[0] ^= 0x40;
            let message = read(name, &broken).unwrap_err();
            assert!(message.contains("damaged") && message.contains(name), "{message}");
        }
    }
}
