//! Which tensor of the files is which parameter of the model.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
};

use super::{
    Source, WeightsError,
    element::{Element, Located},
    error::{first_few, quoted},
    names::{self, HEAD, is_needless, may_be_new},
};
use crate::{
    config::{Arch, ModelConfig},
    ledger::{self, ParameterShape},
    run::text,
};

/// What each parameter of a model is read from.
#[derive(Debug)]
pub struct Plan {
    path: PathBuf,
    files: Vec<(PathBuf, File)>,
    found: BTreeMap<String, Located>,
    new: Vec<String>,
    dropped: Vec<String>,
    left_out: Vec<String>,
}

impl Source {
    /// Finds every parameter of the model among the tensors, and every tensor among the parameters.
    ///
    /// # Errors
    /// A tensor is missing, or of another shape or type, or has no place in the model.
    pub fn plan(self, model: &ModelConfig) -> Result<Plan, WeightsError> {
        let parameters = ledger::parameters(model);
        let path = self.path.clone();
        let Named { mut tensors, base } = self.named(model.arch, &parameters)?;
        let mut found = BTreeMap::new();
        for parameter in &parameters {
            if let Some(located) = tensors.remove(&parameter.name) {
                found.insert(parameter.name.clone(), located);
            }
        }
        let mut dropped = Vec::new();
        self.tied_head(model, &parameters, &mut tensors, &mut found, &mut dropped)?;
        tensors.retain(|name, _| {
            let needless = is_needless(name, model.arch);
            if needless {
                dropped.push(name.clone());
            }
            !needless
        });

        let (mut new, mut missing) = (Vec::new(), Vec::new());
        for ParameterShape { name, .. } in &parameters {
            if !found.contains_key(name) {
                if may_be_new(name, model.arch, base) {
                    new.push(name.clone());
                } else {
                    missing.push(name.as_str());
                }
            }
        }
        if !missing.is_empty() {
            let hint = match missing.as_slice() {
                [HEAD] => "its head may be its embedding: set model.tie_word_embeddings = true",
                _ => "set the keys of [model] as the weights were made",
            };
            let (names, hint) = (first_few(missing.into_iter()), hint.to_owned());
            return Err(WeightsError::Missing { path, names, hint });
        }
        if !tensors.is_empty() {
            return Err(WeightsError::Surplus { path, names: first_few(tensors.keys().map(String::as_str)) });
        }
        check_each(&path, &parameters, &found)?;
        dropped.sort();
        Ok(Plan { path, files: self.files, found, new, dropped, left_out: self.left_out })
    }

    /// The tensors under the names that fit the model best.
    fn named(&self, arch: Arch, parameters: &[ParameterShape]) -> Result<Named, WeightsError> {
        let (path, count) = (self.path.clone(), self.tensors.len());
        let Some((base, names)) = names::fitting(self.names(), arch, parameters) else {
            let names = match count {
                0 => "no tensor at all".to_owned(),
                _ => first_few(self.tensors.keys().map(String::as_str)),
            };
            return Err(WeightsError::Foreign { path, arch: arch.as_str(), names });
        };
        let mut tensors = BTreeMap::new();
        for (name, located) in names.into_iter().zip(self.tensors.values()) {
            if tensors.insert(name.clone(), located.clone()).is_some() {
                return Err(WeightsError::Twice { path, name: quoted(&name) });
            }
        }
        Ok(Named { tensors, base })
    }

    /// A file may hold the head of a model whose head is its embedding, or it instead of the embedding.
    fn tied_head(
        &self,
        model: &ModelConfig,
        parameters: &[ParameterShape],
        tensors: &mut BTreeMap<String, Located>,
        found: &mut BTreeMap<String, Located>,
        dropped: &mut Vec<String>,
    ) -> Result<(), WeightsError> {
        if model.arch != Arch::Llama || !model.tie_word_embeddings {
            return Ok(());
        }
        let (Some(head), Some(embedding)) = (tensors.remove(HEAD), parameters.first()) else { return Ok(()) };
        match found.get(&embedding.name) {
            None => {
                found.insert(embedding.name.clone(), head);
            }
            Some(located) => {
                // One storage needs no reading; and what has the wrong shape is told of elsewhere.
                let same = *located == head
                    || located.shape != embedding.shape
                    || (head.shape == located.shape && self.equal(located, &head)?);
                if !same {
                    let embedding = embedding.name.clone();
                    return Err(WeightsError::OwnHead { path: self.path.clone(), embedding });
                }
                dropped.push(HEAD.to_owned());
            }
        }
        Ok(())
    }

    /// Whether two tensors of one shape hold the same numbers.
    fn equal(&self, one: &Located, other: &Located) -> Result<bool, WeightsError> {
        let (one, other) = (read(&self.files, one)?, read(&self.files, other)?);
        Ok(one.len() == other.len() && one.iter().zip(&other).all(|(a, b)| a.to_bits() == b.to_bits()))
    }
}

struct Named {
    tensors: BTreeMap<String, Located>,
    /// The names are those of the model below the head.
    base: bool,
}

impl Plan {
    /// Whether the files hold the parameter; if not, it keeps its initial value.
    pub fn contains(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }

    /// A parameter's values in row-major order; `None` when it keeps its initial value.
    ///
    /// # Errors
    /// The file cannot be read, or has changed since it was opened.
    pub fn read(&self, name: &str) -> Result<Option<Vec<f32>>, WeightsError> {
        self.found.get(name).map(|located| read(&self.files, located)).transpose()
    }

    /// The parameters that the files do not hold: those of a new head.
    pub fn new_parameters(&self) -> &[String] {
        &self.new
    }

    /// The tensors that have no place in the model and were expected to have none.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// What a person should know: what is new, what was not taken.
    pub fn notes(&self) -> Vec<String> {
        let list = |names: &[String]| first_few(names.iter().map(String::as_str));
        let mut notes = Vec::new();
        if !self.new.is_empty() {
            notes.push(format!(
                "newly initialised, as model.weights has no such head: {}; train before you rely on what the model \
                 predicts",
                self.new.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.dropped.is_empty() {
            notes.push(format!(
                "tensors of model.weights that the model has no use for, left out: {} ({})",
                self.dropped.len(),
                list(&self.dropped)
            ));
        }
        if !self.left_out.is_empty() {
            notes.push(format!("beside the weights in model.weights, left out: {}", list(&self.left_out)));
        }
        notes
    }

    /// The file or folder that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read(files: &[(PathBuf, File)], located: &Located) -> Result<Vec<f32>, WeightsError> {
    let Some((path, file)) = files.get(located.file) else { return Ok(Vec::new()) };
    located.read(file).map_err(WeightsError::io(path))
}

/// Shapes and types.
fn check_each(
    path: &Path,
    parameters: &[ParameterShape],
    found: &BTreeMap<String, Located>,
) -> Result<(), WeightsError> {
    for ParameterShape { name, shape } in parameters {
        let Some(located) = found.get(name) else { continue };
        if located.shape != *shape {
            return Err(WeightsError::Shape {
                path: path.to_owned(),
                name: name.clone(),
                found: text::shape(&located.shape),
                expected: text::shape(shape),
                hint: shape_hint(name, &located.shape, shape),
            });
        }
        if let Element::Other(element, _) = located.element {
            return Err(WeightsError::Element {
                path: path.to_owned(),
                name: name.clone(),
                element: element.to_owned(),
            });
        }
    }
    Ok(())
}

/// The key that makes the shapes equal, where one alone does.
fn shape_hint(name: &str, found: &[usize], expected: &[usize]) -> String {
    let ([rows, found @ ..], [_, expected @ ..]) = (found, expected) else { return String::new() };
    let module = name.rsplit('.').nth(1).unwrap_or_default();
    let key = match module {
        _ if found != expected => return "model.hidden_size and its like differ".to_owned(),
        "embed_tokens" | "word_embeddings" | "lm_head" => "vocab_size",
        "position_embeddings" => "max_position_embeddings",
        "classifier" => "num_labels",
        "gate_proj" | "up_proj" | "lin1" => "intermediate_size",
        "k_proj" | "v_proj" => return "model.num_key_value_heads differs".to_owned(),
        _ => return "model.hidden_size and its like differ".to_owned(),
    };
    format!("set model.{key} = {rows}")
}

#[cfg(test)]
mod tests {
    use safetensors::{Dtype, tensor::TensorView};

    use super::*;
    use crate::config::Layers;

    fn model(preset: &str, set: &[&str]) -> ModelConfig {
        let layers = Layers::new().with_assignment(&format!("model.preset={preset}")).unwrap();
        layers.with_assignments(set).unwrap().resolve().unwrap().config.model
    }

    /// A file with a tensor of halves for each parameter, under the name and shape that `edit` makes of it, and more.
    struct File {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    type Tensors = Vec<(String, Vec<usize>, f32)>;

    fn file(model: &ModelConfig, edit: impl FnOnce(&mut Tensors)) -> File {
        let mut tensors: Tensors =
            ledger::parameters(model).into_iter().map(|p| (p.name, p.shape, 0.5)).collect();
        edit(&mut tensors);
        write(&tensors, Dtype::F32)
    }

    fn write(tensors: &Tensors, dtype: Dtype) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, shape, value)| {
                let count: usize = shape.iter().product();
                let all: Vec<u8> = (0..count).flat_map(|_| value.to_le_bytes()).collect();
                all[..count * dtype.bitsize() / 8].to_vec()
            })
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (name.clone(), TensorView::new(dtype, shape.clone(), bytes).unwrap())
        });
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        File { _folder: folder, path }
    }

    fn plan(file: &File, model: &ModelConfig) -> Result<Plan, WeightsError> {
        Source::open(&file.path)?.plan(model)
    }

    fn told(model: &ModelConfig, edit: impl FnOnce(&mut Tensors)) -> String {
        plan(&file(model, edit), model).unwrap_err().to_string()
    }

    fn renamed(how: impl Fn(&str) -> String) -> impl FnOnce(&mut Tensors) {
        move |tensors| tensors.iter_mut().for_each(|(name, ..)| *name = how(name))
    }

    #[test]
    fn wrappers_are_taken_off_in_any_order() {
        for (preset, wrap) in [
            ("llama-nano", "module."),
            ("llama-nano", "_orig_mod.module.module."),
            ("llama-nano", "model."),
            ("llama-nano", "module.model.model._orig_mod."),
            ("distilbert-nano", "model."),
            ("distilbert-nano", "_orig_mod.model."),
        ] {
            let model = model(preset, &["model.num_hidden_layers=1"]);
            let file = file(&model, renamed(|name| format!("{wrap}{name}")));
            let plan = plan(&file, &model).unwrap();
            assert!(plan.new_parameters().is_empty() && plan.dropped().is_empty(), "{preset} in {wrap}");
        }
        let model = model("llama-nano", &[]);
        let file = file(&model, renamed(|name| name.replace("layers.1.", "layers.1._orig_mod.")));
        assert!(plan(&file, &model).is_ok(), "a compiled layer");
    }

    #[test]
    fn the_model_below_the_head_may_lack_its_prefix() {
        let untied = model("llama-nano", &["model.tie_word_embeddings=false"]);
        let base = |tensors: &mut Tensors| {
            tensors.retain(|(name, ..)| name != HEAD);
            renamed(|name| name.replacen("model.", "", 1))(tensors);
        };
        let plan = super::tests::plan(&file(&untied, base), &untied).unwrap();
        assert_eq!(plan.new_parameters(), [HEAD]);
        assert!(
            plan.notes()[0].contains("newly initialised") && plan.notes()[0].contains("`lm_head.weight`")
        );
        // With its prefix the model was whole, and its head was its embedding.
        let text = told(&untied, |tensors| tensors.retain(|(name, ..)| name != HEAD));
        assert!(
            text.contains("lacks `lm_head.weight`") && text.contains("tie_word_embeddings = true"),
            "{text}"
        );
    }

    #[test]
    fn a_tied_head_is_the_embedding_or_an_error() {
        let tied = model("llama-nano", &[]);
        let head =
            |value: f32| move |tensors: &mut Tensors| tensors.push((HEAD.into(), vec![256, 64], value));
        let plan = super::tests::plan(&file(&tied, head(0.5)), &tied).unwrap();
        assert_eq!(plan.dropped(), [HEAD]);
        let text = told(&tied, head(0.25));
        assert!(text.contains("tie_word_embeddings is true") && text.contains("head of its own"), "{text}");
        // Some files keep the one tensor under the head's name.
        let only = |tensors: &mut Tensors| tensors[0].0 = HEAD.into();
        let plan = super::tests::plan(&file(&tied, only), &tied).unwrap();
        assert!(plan.contains("model.embed_tokens.weight") && plan.dropped().is_empty());
    }

    #[test]
    fn tables_and_heads_of_other_tasks_are_dropped_and_counted() {
        let llama = model("llama-nano", &[]);
        let tables = |tensors: &mut Tensors| {
            tensors.push(("model.layers.0.self_attn.rotary_emb.inv_freq".into(), vec![8], 1.0));
            tensors.push(("model.rotary_emb.inv_freq".into(), vec![8], 1.0));
        };
        assert_eq!(plan(&file(&llama, tables), &llama).unwrap().dropped().len(), 2);
        let bert = model("distilbert-nano", &[]);
        let masked = |prefix: &'static str| {
            move |tensors: &mut Tensors| {
                tensors.retain(|(name, ..)| name.starts_with("distilbert."));
                renamed(|name| name.replacen("distilbert.", prefix, 1))(tensors);
                for name in ["vocab_transform.weight", "vocab_layer_norm.bias", "vocab_projector.bias"] {
                    tensors.push((name.into(), vec![4], 1.0));
                }
                tensors.push((format!("{prefix}embeddings.position_ids"), vec![1, 4], 1.0));
            }
        };
        for prefix in ["distilbert.", ""] {
            let plan = plan(&file(&bert, masked(prefix)), &bert).unwrap();
            assert_eq!((plan.dropped().len(), plan.new_parameters().len()), (4, 4), "{prefix}");
            let notes = plan.notes();
            assert!(notes[1].contains("left out: 4 (") && notes[1].contains("and 1 more"), "{notes:?}");
        }
    }

    #[test]
    fn a_missing_a_surplus_and_a_misshapen_tensor_are_named() {
        let llama = model("llama-nano", &[]);
        let missing = told(&llama, |tensors| tensors.retain(|(name, ..)| !name.contains(".1.")));
        assert!(missing.contains("lacks `model.layers.1.self_attn.q_proj.weight`"), "{missing}");
        assert!(missing.contains("and 6 more"), "{missing}");
        let surplus =
            told(&llama, |tensors| tensors.push(("model.layers.2.norm.weight".into(), vec![64], 1.0)));
        assert!(surplus.contains("`model.layers.2.norm.weight`, which the model does not have"), "{surplus}");
        let shape = told(&llama, |tensors| tensors[0].1 = vec![512, 64]);
        for words in ["`model.embed_tokens.weight`", "[512, 64]", "[256, 64]", "set model.vocab_size = 512"] {
            assert!(shape.contains(words), "{shape}");
        }
        let twice = told(&llama, |tensors| tensors.push(("module.model.norm.weight".into(), vec![64], 1.0)));
        assert!(twice.contains("two tensors are called `model.norm.weight`"), "{twice}");
        let bert = model("distilbert-nano", &[]);
        let labels = told(&bert, |tensors| {
            for (name, shape, _) in tensors.iter_mut().filter(|(name, ..)| name.starts_with("classifier.")) {
                shape[0] = if name.ends_with("bias") { 2 } else { 5 };
            }
        });
        assert!(labels.contains("set model.num_labels = 5"), "{labels}");
    }

    #[test]
    fn whole_numbers_are_no_weights() {
        let llama = model("llama-nano", &["model.num_hidden_layers=1"]);
        let tensors: Tensors =
            ledger::parameters(&llama).into_iter().map(|p| (p.name, p.shape, 1.0)).collect();
        let text = plan(&write(&tensors, Dtype::I8), &llama).unwrap_err().to_string();
        assert!(text.contains("is of type I8") && text.contains("BF16"), "{text}");
    }
}
