//! Files of `torch.save`: a zip archive, stored without compression, of a pickle and one file for each storage.

use std::{collections::HashMap, fs::File, io::BufReader, os::unix::fs::FileExt, path::Path};

use zip::{CompressionMethod, ZipArchive};

use super::{
    WeightsError,
    element::{Located, row_major},
    error::quoted,
    objects::{Id, Node, Storage, View},
    pickle::{LONGEST_NAME, Pickle, Refusal},
};
use crate::run::{own, text};

/// Longest pickle that is read, in bytes; that of a thousand tensors has a few hundred thousand.
const LONGEST_PICKLE: u64 = 64 << 20;
/// Dictionaries in dictionaries.
const DEEPEST: usize = 8;
/// Most entries that are looked at: one dictionary can stand in many places.
const MOST_ENTRIES: usize = 1_000_000;
/// Keys under which training scripts keep the weights.
const WRAPPERS: [&str; 4] = ["model_state_dict", "state_dict", "model", "module"];

/// What a file of `torch.save` holds.
#[derive(Debug)]
pub(super) struct TorchFile {
    pub(super) file: File,
    pub(super) tensors: Vec<(String, Located)>,
    /// What stands beside the weights, such as the optimizer.
    pub(super) left_out: Vec<String>,
}

/// Reads the pickle and finds every tensor's bytes; `number` is the file's among those of its source.
///
/// # Errors
/// The file cannot be read, is no such archive, or wants to run something.
pub(super) fn open(path: &Path, number: usize) -> Result<TorchFile, WeightsError> {
    let damaged = |problem: String| WeightsError::damaged(path, problem);
    let file = own::look(path).map_err(WeightsError::io(path))?;
    let mut archive = Archive::open(&file).map_err(|problem| match problem {
        None => WeightsError::Legacy { path: path.to_owned() },
        Some(problem) => damaged(problem),
    })?;
    let pickle = Pickle::read(&archive.pickle().map_err(damaged)?).map_err(|refusal| match refusal {
        Refusal::Damaged(problem) => damaged(problem),
        Refusal::Program(global) => WeightsError::Program { path: path.to_owned(), global: quoted(&global) },
    })?;
    let mut walk = Walk { pickle: &pickle, visited: 0, found: Vec::new(), left_out: Vec::new() };
    walk.weights(pickle.root(), "", 0).map_err(damaged)?;
    let (found, left_out) = (walk.found, walk.left_out);
    let mut tensors = Vec::with_capacity(found.len());
    for (name, view) in found {
        let start = archive.storage(&view.storage).map_err(damaged)?;
        tensors.push((name, located(view, start, number)));
    }
    drop(archive);
    Ok(TorchFile { file, tensors, left_out })
}

fn located(view: &View, start: u64, file: usize) -> Located {
    let element = view.storage.element.clone();
    // The stride of an axis of one element says nothing.
    let gapless = row_major(&view.shape)
        .iter()
        .zip(&view.strides)
        .zip(&view.shape)
        .all(|((usual, stride), length)| usual == stride || *length == 1);
    Located {
        file,
        start: start + (view.offset * element.size()) as u64,
        element,
        shape: view.shape.clone(),
        strides: (!gapless).then(|| view.strides.clone()),
    }
}

/// Collects tensors by name.
struct Walk<'a> {
    pickle: &'a Pickle,
    visited: usize,
    found: Vec<(String, &'a View)>,
    left_out: Vec<String>,
}

impl<'a> Walk<'a> {
    /// The weights of a dictionary of tensors, or of one that stands in it under a usual name.
    fn weights(&mut self, node: &'a Node, name: &str, depth: usize) -> Result<(), String> {
        let pickle = self.pickle;
        let Node::Dict(entries) = node else {
            return Err(
                "holds no dictionary of tensors, as `torch.save(model.state_dict(), ...)` writes".into()
            );
        };
        if entries.iter().any(|(_, value)| matches!(pickle.node(*value), Node::Tensor(_))) {
            return self.collect(entries, "", depth);
        }
        let wrapped: Vec<(String, &Node)> = entries
            .iter()
            .filter_map(|(key, value)| Some((key_of(pickle, *key)?, pickle.node(*value))))
            .filter(|(key, value)| WRAPPERS.contains(&key.as_str()) && matches!(value, Node::Dict(_)))
            .collect();
        match wrapped.as_slice() {
            [(key, inner)] if depth < DEEPEST => {
                let others = entries.iter().filter_map(|(other, _)| key_of(pickle, *other));
                let others: Vec<String> = others.filter(|other| other != key).collect();
                self.left_out.extend(others);
                self.weights(inner, key, depth + 1)
            }
            [] | [_] => {
                let place = if name.is_empty() { String::new() } else { format!(" under {}", quoted(name)) };
                Err(format!(
                    "holds no tensors{place}, nor a dictionary of them under {}",
                    WRAPPERS.join(", ")
                ))
            }
            [(first, _), (second, _), ..] => Err(format!(
                "holds weights under {} and under {}: save the one to start from alone",
                quoted(first),
                quoted(second)
            )),
        }
    }

    fn collect(&mut self, entries: &'a [(Id, Id)], prefix: &str, depth: usize) -> Result<(), String> {
        for (key, value) in entries {
            self.visited += 1;
            if self.visited > MOST_ENTRIES || depth > DEEPEST {
                return Err("holds dictionaries in dictionaries, deeper or more than weights need".into());
            }
            let key = key_of(self.pickle, *key);
            if key.as_ref().map_or(0, String::len) + prefix.len() > LONGEST_NAME {
                return Err("holds names longer than weights need".into());
            }
            match (self.pickle.node(*value), key) {
                (Node::Tensor(view), Some(key)) => self.found.push((format!("{prefix}{key}"), view)),
                (Node::Dict(inner), Some(key)) => {
                    self.collect(inner, &format!("{prefix}{key}."), depth + 1)?;
                }
                (Node::Tensor(_) | Node::Dict(_), None) => {
                    return Err("holds tensors whose names are no texts".into());
                }
                (_, key) => self.left_out.extend(key.map(|key| format!("{prefix}{key}"))),
            }
        }
        Ok(())
    }
}

fn key_of(pickle: &Pickle, key: Id) -> Option<String> {
    match pickle.node(key) {
        Node::Text(text) => Some(text.clone()),
        Node::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The archive: which files there are, and where their bytes stand.
struct Archive<'a> {
    zip: ZipArchive<BufReader<&'a File>>,
    file: &'a File,
    length: u64,
    /// Numbers of the files, by name.
    names: HashMap<String, usize>,
    /// The folder that holds everything.
    root: String,
    /// Where storages stand, and their bytes, by key.
    storages: HashMap<String, (u64, u64)>,
}

impl<'a> Archive<'a> {
    /// Nothing is wrong with a file of before 1.6 but its age: it has no problem.
    fn open(file: &'a File) -> Result<Self, Option<String>> {
        let cannot = |error: std::io::Error| Some(format!("cannot be read: {error}"));
        let length = file.metadata().map_err(cannot)?.len();
        let mut first = [0; 4];
        let whole = file.read_exact_at(&mut first, 0).is_ok();
        if whole && first[0] == 0x80 {
            return Err(None);
        }
        if &first != b"PK\x03\x04" {
            return Err(Some("is no file of torch.save: it does not begin as a zip archive".into()));
        }
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            Some(format!("is cut short or damaged: its zip archive cannot be opened ({error})"))
        })?;
        let names: HashMap<String, usize> = zip
            .file_names_raw()
            .enumerate()
            .map(|(number, name)| (String::from_utf8_lossy(name).into_owned(), number))
            .collect();
        let mut roots =
            names.keys().filter_map(|name| name.strip_suffix("/data.pkl")).filter(|root| !root.contains('/'));
        let root = match (roots.next(), roots.next()) {
            (Some(root), None) => root.to_owned(),
            _ => return Err(Some("is no file of torch.save: its zip archive has no single data.pkl".into())),
        };
        let mut archive = Self { zip, file, length, names, root, storages: HashMap::new() };
        if let Ok((start, 3)) = archive.find("byteorder") {
            let mut order = [0; 3];
            if file.read_exact_at(&mut order, start).is_ok() && &order == b"big" {
                return Err(Some(
                    "was written on a big-endian machine, which is not read: save it on another".into(),
                ));
            }
        }
        Ok(archive)
    }

    /// Where a file's bytes begin, and how many there are.
    fn find(&mut self, name: &str) -> Result<(u64, u64), String> {
        let path = format!("{}/{name}", self.root);
        let lost = || format!("is damaged: {} is missing in its archive", quoted(&path));
        let number = self.names.get(&path).copied().ok_or_else(lost)?;
        let entry = self.zip.by_index_raw(number).map_err(|error| {
            format!("is damaged: {} in its archive cannot be read ({error})", quoted(&path))
        })?;
        if entry.compression() != CompressionMethod::Stored || entry.encrypted() {
            return Err(format!("is no file of torch.save: {} is compressed or encrypted", quoted(&path)));
        }
        let (start, bytes) = (entry.data_start().ok_or_else(lost)?, entry.size());
        let end = start.checked_add(bytes).filter(|end| *end <= self.length);
        if end.is_none() || bytes != entry.compressed_size() {
            return Err(format!("is damaged: {} reaches beyond the end of the file", quoted(&path)));
        }
        Ok((start, bytes))
    }

    fn pickle(&mut self) -> Result<Vec<u8>, String> {
        let (start, bytes) = self.find("data.pkl")?;
        if bytes > LONGEST_PICKLE {
            return Err(format!("has a pickle of {}, longer than weights need", text::bytes(bytes)));
        }
        let mut pickle = vec![0; usize::try_from(bytes).unwrap_or_default()];
        let read = self.file.read_exact_at(&mut pickle, start);
        read.map_err(|error| format!("cannot be read: {error}"))?;
        Ok(pickle)
    }

    /// The byte at which a storage begins, once it is sure that it holds all its elements.
    fn storage(&mut self, storage: &Storage) -> Result<u64, String> {
        let (start, bytes) = match self.storages.get(&storage.key) {
            Some(found) => *found,
            None => {
                let found = self.find(&format!("data/{}", storage.key))?;
                self.storages.insert(storage.key.clone(), found);
                found
            }
        };
        let needed = storage.elements.checked_mul(storage.element.size());
        if needed.is_none_or(|needed| needed as u64 > bytes) {
            return Err(format!(
                "is damaged: storage {} should have {} elements of {} bytes, and has {bytes} bytes",
                quoted(&storage.key),
                storage.elements,
                storage.element.size()
            ));
        }
        Ok(start)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    /// A tensor of two f32, whose storage is called 7.
    const TENSOR: &[u8] =
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x007\
        X\x03\0\0\0cpuK\x02tQK\0K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR";
    const NUMBER: &[u8] = b"K\x03";

    fn dictionary(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = b"}(".to_vec();
        for (key, value) in entries {
            bytes.extend([b'X', key.len() as u8, 0, 0, 0]);
            bytes.extend(key.as_bytes());
            bytes.extend_from_slice(value);
        }
        bytes.push(b'u');
        bytes
    }

    /// An archive of that pickle, and of these files beside it.
    fn archive(value: &[u8], files: &[(&str, &[u8])]) -> Vec<u8> {
        let pickle = [b"\x80\x02", value, b"."].concat();
        let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in [("data.pkl", &pickle[..])].iter().chain(files) {
            let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            zip.start_file(format!("weights/{name}"), stored).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn opened(bytes: &[u8]) -> Result<TorchFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.pt");
        std::fs::write(&path, bytes).unwrap();
        open(&path, 0).map_err(|error| error.to_string())
    }

    fn with_storage(value: &[u8]) -> Vec<u8> {
        archive(value, &[("data/7", &[0; 8])])
    }

    #[test]
    fn weights_are_found_under_the_usual_names_and_the_rest_is_counted() {
        let weights = dictionary(&[("a.weight", TENSOR), ("version", NUMBER)]);
        let optimizer = dictionary(&[("b", TENSOR)]);
        for key in WRAPPERS {
            let inner = dictionary(&[("state_dict", &weights)]);
            let value = dictionary(&[(key, &inner), ("optimizer", &optimizer), ("epoch", NUMBER)]);
            let found = opened(&with_storage(&value)).unwrap();
            assert_eq!(found.tensors.len(), 1, "{key}");
            assert_eq!(found.tensors[0].0, "a.weight");
            assert_eq!(found.tensors[0].1.read(&found.file).unwrap(), [0.0, 0.0]);
            assert_eq!(found.left_out, ["optimizer", "epoch", "version"]);
        }
        let nested = dictionary(&[("a", TENSOR), ("b", &weights)]);
        let names: Vec<_> =
            opened(&with_storage(&nested)).unwrap().tensors.into_iter().map(|t| t.0).collect();
        assert_eq!(names, ["a", "b.a.weight"], "nothing is passed over");
    }

    #[test]
    fn what_is_no_dictionary_of_weights_is_told() {
        let weights = dictionary(&[("a", TENSOR)]);
        let deep = (0..12).fold(weights.clone(), |inner, _| dictionary(&[("state_dict", &inner)]));
        for (value, words) in [
            (NUMBER.to_vec(), "no dictionary of tensors"),
            (TENSOR.to_vec(), "no dictionary of tensors"),
            (
                dictionary(&[("model", &weights), ("state_dict", &weights)]),
                "under `model` and under `state_dict`",
            ),
            (dictionary(&[("ema", &weights)]), "nor a dictionary of them under model_state_dict"),
            (dictionary(&[("model", &dictionary(&[("epoch", NUMBER)]))]), "no tensors under `model`"),
            (deep, "holds no tensors under `state_dict`"),
            // A dictionary that is its own entry.
            ([b"}q\0(X\x01\0\0\0a", TENSOR, b"X\x01\0\0\0bh\0u"].concat(), "deeper or more than"),
            ([b"}(N", TENSOR, b"u"].concat(), "names are no texts"),
        ] {
            let told = opened(&with_storage(&value)).unwrap_err();
            assert!(told.contains(words), "`{words}` is not in: {told}");
        }
    }

    #[test]
    fn an_archive_that_is_none_of_torch_save_is_told() {
        let weights = dictionary(&[("a", TENSOR)]);
        let none = ("other.txt", &b"words"[..]);
        let mut compressed = archive(&weights, &[("data/7", &[0; 8])]);
        let central = compressed.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        compressed[central + 10] = 8;
        for (bytes, words) in [
            (archive(&weights, &[none]), "`weights/data/7` is missing"),
            (archive(&weights, &[("data/7", &[0; 7])]), "should have 2 elements of 4 bytes, and has 7 bytes"),
            (archive(&weights, &[("data/7", &[0; 8]), ("byteorder", b"big")]), "big-endian"),
            (compressed, "`weights/data.pkl` is compressed"),
            (archive(&weights, &[("data/7", &[0; 8])])[..200].to_vec(), "cut short"),
        ] {
            let told = opened(&bytes).unwrap_err();
            assert!(told.contains(words), "`{words}` is not in: {told}");
        }
        let little = archive(&weights, &[("data/7", &[0; 8]), ("byteorder", b"little")]);
        assert_eq!(opened(&little).unwrap().tensors.len(), 1);
    }
}
