//! Weights that others made, as `model.weights` names them: a safetensors file, a file of `torch.save`, or a folder
//! with either in one piece or in shards. One of this program's own checkpoints is such a folder.
//!
//! ```text
//! safetensors      the header of a safetensors file
//! torch            the archive of torch.save
//! pickle, objects  its pickle, without running anything
//! element          where a tensor stands in its file, and its numbers as f32
//! plan, names      which tensor of the files is which parameter of the model
//! ```
//!
//! [`plan()`] reads headers alone, so that whatever is wrong is known before there is a run; [`Plan::read`] then reads
//! one tensor at a time.

mod element;
mod error;
mod names;
mod objects;
mod pickle;
mod plan;
mod safetensors;
mod torch;

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
};

use element::Located;
use error::quoted;

pub use error::WeightsError;
pub use plan::Plan;

use super::{bounded, own};
use crate::config::ModelConfig;

/// Longest index of shards that is read, in bytes.
const LONGEST_INDEX: u64 = 64 << 20;
/// What a folder of weights holds, the first there is.
const IN_A_FOLDER: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// The plan for the weights that the configuration names; `None` when it names none.
///
/// # Errors
/// They cannot be read, or are not those of the model.
pub fn plan(model: &ModelConfig) -> Result<Option<Plan>, WeightsError> {
    model.weights.as_ref().map(|path| Source::open(Path::new(path))?.plan(model)).transpose()
}

/// Files of weights whose headers have been read and checked.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    files: Vec<(PathBuf, File)>,
    /// By the names that the files give them.
    tensors: BTreeMap<String, Located>,
    /// What a file holds beside weights.
    left_out: Vec<String>,
}

impl Source {
    /// Opens a file, or a folder with one of the usual files.
    ///
    /// # Errors
    /// There is no such file, or it is none of weights, or it is damaged.
    pub fn open(path: &Path) -> Result<Self, WeightsError> {
        let mut source =
            Self { path: path.to_owned(), files: Vec::new(), tensors: BTreeMap::new(), left_out: Vec::new() };
        let metadata = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(WeightsError::NotThere(path.to_owned()));
            }
            other => other.map_err(WeightsError::io(path))?,
        };
        let file = if metadata.is_dir() {
            let found = IN_A_FOLDER.iter().map(|name| path.join(name)).find(|file| file.is_file());
            found.ok_or_else(|| WeightsError::EmptyFolder {
                path: path.to_owned(),
                expected: IN_A_FOLDER.to_vec(),
            })?
        } else if metadata.is_file() {
            path.to_owned()
        } else {
            return Err(WeightsError::UnknownKind(path.to_owned()));
        };
        if file.to_string_lossy().ends_with(".index.json") {
            source.add_shards(&file)?;
        } else {
            source.add(file)?;
        }
        Ok(source)
    }

    /// The names of all tensors, as the files give them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    fn add(&mut self, path: PathBuf) -> Result<(), WeightsError> {
        let number = self.files.len();
        let (file, tensors) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("safetensors") => safetensors::open(&path, number)?,
            Some("bin" | "pt" | "pth") => {
                let torch::TorchFile { file, tensors, left_out } = torch::open(&path, number)?;
                self.left_out.extend(left_out);
                (file, tensors)
            }
            _ => return Err(WeightsError::UnknownKind(path)),
        };
        for (name, located) in tensors {
            if self.tensors.contains_key(&name) {
                return Err(WeightsError::damaged(&path, format!("holds {} a second time", quoted(&name))));
            }
            self.tensors.insert(name, located);
        }
        self.files.push((path, file));
        Ok(())
    }

    /// All shards that an index names; each must hold what the index says.
    fn add_shards(&mut self, index: &Path) -> Result<(), WeightsError> {
        #[derive(serde::Deserialize)]
        struct Index {
            weight_map: BTreeMap<String, String>,
        }
        let length = own::look_long(index).map_err(WeightsError::io(index))?.1;
        if length > LONGEST_INDEX {
            return Err(WeightsError::damaged(index, "is longer than an index of shards can be"));
        }
        let text = bounded::read(index, LONGEST_INDEX).map_err(WeightsError::io(index))?;
        let Index { weight_map } = serde_json::from_slice(&text).map_err(|error| {
            WeightsError::damaged(index, format!("is no index of shards with a weight_map: {error}"))
        })?;
        let folder = index.parent().unwrap_or(Path::new(""));
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for shard in weight_map.values() {
            if numbers.contains_key(shard.as_str()) {
                continue;
            }
            if shard.contains(['/', '\\']) || shard.starts_with('.') {
                return Err(WeightsError::damaged(
                    index,
                    format!("names the shard {}, which is no file beside it", quoted(shard)),
                ));
            }
            let path = folder.join(shard);
            if !path.is_file() {
                return Err(WeightsError::damaged(
                    index,
                    format!("names the shard {}, which is missing: the folder is incomplete", quoted(shard)),
                ));
            }
            numbers.insert(shard, self.files.len());
            self.add(path)?;
        }
        for (name, shard) in &weight_map {
            let found = self.tensors.get(name).map(|located| located.file);
            if found.is_none() || found != numbers.get(shard.as_str()).copied() {
                return Err(WeightsError::damaged(
                    index,
                    format!("says that {} is in {}, which does not hold it", quoted(name), quoted(shard)),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Arch, Config, Layers};

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parity").join(name)
    }

    /// The model whose weights the formats hold.
    fn model() -> ModelConfig {
        let mut model = Layers::new().resolve().unwrap().config.model;
        (model.vocab_size, model.hidden_size, model.intermediate_size) = (8, 8, 8);
        (model.num_hidden_layers, model.num_attention_heads, model.num_key_value_heads) = (1, 2, 1);
        model.tie_word_embeddings = false;
        model
    }

    fn distilbert() -> ModelConfig {
        let Config { mut model, .. } =
            Layers::new().with_assignment("model.preset=distilbert-nano").unwrap().resolve().unwrap().config;
        (model.vocab_size, model.hidden_size, model.intermediate_size) = (48, 32, 64);
        (model.max_position_embeddings, model.num_labels) = (16, 3);
        assert_eq!((model.arch, model.num_hidden_layers), (Arch::DistilBert, 2));
        model
    }

    fn planned(path: &Path, model: &ModelConfig) -> Result<Plan, WeightsError> {
        Source::open(path)?.plan(model)
    }

    fn told(path: &Path) -> String {
        let sentence = planned(path, &model()).unwrap_err().to_string();
        assert!(!sentence.contains('\n'), "one sentence: {sentence}");
        sentence
    }

    fn values(plan: &Plan, model: &ModelConfig) -> Vec<Vec<f32>> {
        let parameters = crate::ledger::parameters(model);
        parameters.iter().map(|parameter| plan.read(&parameter.name).unwrap().unwrap()).collect()
    }

    #[test]
    fn every_format_holds_the_same_numbers() {
        let model = model();
        let reference = values(&planned(&fixture("formats/single"), &model).unwrap(), &model);
        assert_eq!(reference.len(), 12);
        assert!(reference.iter().flatten().any(|value| *value < 0.0));
        for format in [
            "single/model.safetensors",
            "sharded",
            "sharded/model.safetensors.index.json",
            "pytorch_model.bin",
            "sharded-bin",
            "prefixed.pt",
            "strided.bin",
        ] {
            let plan = planned(&fixture("formats").join(format), &model).unwrap();
            assert_eq!(values(&plan, &model), reference, "{format}");
            assert!(plan.notes().is_empty(), "{format}: {:?}", plan.notes());
        }
        // Half precision holds 11 bits of a number, bfloat16 holds 8.
        for (format, bits) in [("bf16.safetensors", 8), ("f16.bin", 11)] {
            let plan = planned(&fixture("formats").join(format), &model).unwrap();
            let found = values(&plan, &model);
            assert_ne!(found, reference, "{format}");
            for (value, whole) in found.iter().flatten().zip(reference.iter().flatten()) {
                let off = (value - whole).abs() / whole.abs().max(1e-4);
                assert!(off <= 0.5_f32.powi(bits), "{format}: {value} of {whole}");
            }
        }
    }

    #[test]
    fn a_base_model_gets_a_new_head_and_says_so() {
        let model = distilbert();
        let whole = planned(&fixture("distilbert"), &model).unwrap();
        assert!(whole.notes().is_empty() && whole.new_parameters().is_empty());
        let base = planned(&fixture("formats/distilbert-base"), &model).unwrap();
        let mut new = base.new_parameters().to_vec();
        new.sort();
        assert_eq!(
            new,
            ["classifier.bias", "classifier.weight", "pre_classifier.bias", "pre_classifier.weight"]
        );
        let name = "distilbert.transformer.layer.1.ffn.lin1.weight";
        assert_eq!(base.read(name).unwrap(), whole.read(name).unwrap());
        assert!(base.contains(name) && !base.contains("classifier.bias"));
        assert_eq!(base.read("classifier.bias").unwrap(), None);
        let notes = base.notes();
        assert!(notes.len() == 1 && notes[0].contains("newly initialised"), "{notes:?}");
        assert!(notes[0].contains("`classifier.weight`") || notes[0].contains("`pre_classifier.weight`"));
    }

    #[test]
    fn files_that_run_something_or_are_too_old_are_told_with_the_remedy() {
        let evil = told(&fixture("formats/evil.bin"));
        assert!(evil.contains("wants to run `posix.system`") && evil.contains("not loaded"), "{evil}");
        assert!(evil.contains("ask for the weights as safetensors"), "{evil}");
        let legacy = told(&fixture("formats/legacy.bin"));
        assert!(legacy.contains("before version 1.6") && legacy.contains("save_file"), "{legacy}");
        assert!(!Path::new("EVIL_WAS_HERE").exists());
    }

    #[test]
    fn what_is_no_file_of_weights_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(told(&at("none")).contains("no such file or folder"));
        let empty = told(folder.path());
        assert!(empty.contains("holds none of model.safetensors"), "{empty}");
        std::fs::write(at("notes.txt"), "words").unwrap();
        assert!(told(&at("notes.txt")).contains(".safetensors, .bin, .pt or .pth"));
        std::fs::write(at("model.bin"), "words").unwrap();
        assert!(told(&at("model.bin")).contains("does not begin as a zip archive"));
        std::fs::write(at("empty.pt"), "").unwrap();
        assert!(told(&at("empty.pt")).contains("no file of torch.save"));
        let foreign = told(&fixture("distilbert"));
        assert!(
            foreign.contains("no tensor of a llama model") && foreign.contains("`classifier.bias`"),
            "{foreign}"
        );
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_an_error_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["single/model.safetensors", "pytorch_model.bin"] {
            let whole = std::fs::read(fixture("formats").join(name)).unwrap();
            let path = folder.path().join(Path::new(name).file_name().unwrap());
            for length in (0..whole.len()).step_by(41).chain([whole.len() - 1]) {
                std::fs::write(&path, &whole[..length]).unwrap();
                let sentence = told(&path);
                assert!(
                    length < 10 || sentence.contains("cut short"),
                    "{name} of {length} bytes: {sentence}"
                );
            }
        }
    }

    #[test]
    fn a_damaged_archive_never_reaches_beyond_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.bin");
        let whole = std::fs::read(fixture("formats/pytorch_model.bin")).unwrap();
        // The pickle says how many elements a storage has; this one has 64.
        let at = whole.windows(4).position(|bytes| bytes == b"cpuq").unwrap() + 5;
        assert_eq!(whole[at..at + 2], [b'K', 64]);
        let mut more = whole.clone();
        more[at + 1] = 65;
        std::fs::write(&path, more).unwrap();
        assert!(told(&path).contains("should have 65 elements of 4 bytes, and has 256 bytes"));
        // Whatever byte is wrong, the answer is a sentence or the weights, at once.
        for place in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            std::fs::write(&path, damaged).unwrap();
            if let Ok(plan) = planned(&path, &model()) {
                assert_eq!(values(&plan, &model()).len(), 12);
            }
        }
    }

    #[test]
    fn an_index_must_agree_with_its_shards() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("model.safetensors.index.json");
        let shards = fixture("formats/sharded");
        let text = std::fs::read_to_string(shards.join("model.safetensors.index.json")).unwrap();
        let copy = |number: u32| {
            let name = format!("model-0000{number}-of-00003.safetensors");
            std::fs::copy(shards.join(&name), folder.path().join(&name)).unwrap();
        };
        std::fs::write(&index, &text).unwrap();
        copy(1);
        copy(3);
        assert!(told(folder.path()).contains("`model-00002-of-00003.safetensors`, which is missing"));
        copy(2);
        assert!(planned(folder.path(), &model()).is_ok());
        let moved =
            text.replace(r#""model.norm.weight": "model-00003"#, r#""model.norm.weight": "model-00001"#);
        assert_ne!(moved, text);
        std::fs::write(&index, moved).unwrap();
        assert!(told(folder.path()).contains("says that `model.norm.weight` is in `model-00001"));
        std::fs::write(&index, r#"{"weight_map": {"a": "../../other.safetensors"}}"#).unwrap();
        assert!(told(folder.path()).contains("no file beside it"));
        std::fs::write(&index, "{}").unwrap();
        assert!(told(folder.path()).contains("weight_map"));
    }

    #[test]
    fn without_a_path_there_is_no_plan() {
        assert!(plan(&model()).unwrap().is_none());
    }
}
