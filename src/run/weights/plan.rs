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
mod tests;
