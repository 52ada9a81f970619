//! Names of tensors as checkpoints have them, and as the model does.
//!
//! Training scripts wrap models, and wrappers prepend to names; a base model's checkpoint lacks the part of the names
//! that the whole model prepends. Of the ways to read the names, the one counts by which most are the model's.

use std::collections::BTreeSet;

use crate::{
    config::{Arch, Task},
    ledger::ParameterShape,
};

/// Parts of names that wrappers add: `torch.compile`, and data-parallel modules.
const WRAPPERS: [&str; 2] = ["_orig_mod", "module"];
/// A field that holds the whole model adds its own name to all.
const FIELD: &str = "model.";
/// The output layer of a language model.
pub(super) const HEAD: &str = "lm_head.weight";

/// The names that fit the model best, in their order, and whether they are those of the model below the head; `None`
/// when none fits.
pub(super) fn fitting<'a>(
    names: impl Iterator<Item = &'a str>,
    arch: Arch,
    parameters: &[ParameterShape],
) -> Option<(bool, Vec<String>)> {
    if arch == Arch::Own {
        // Written by this program, under the names that the model has.
        return Some((false, names.map(str::to_owned).collect()));
    }
    let known: BTreeSet<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let mut bare: Vec<String> = names.map(without_wrappers).collect();
    let mut best = (0, None);
    loop {
        for base in [false, true] {
            let names: Vec<String> = bare
                .iter()
                .map(|name| match base && !known.contains(name.as_str()) && !is_needless(name, arch) {
                    true => format!("{}{name}", base_prefix(arch)),
                    false => name.clone(),
                })
                .collect();
            let fitting = names.iter().filter(|name| known.contains(name.as_str())).count();
            if fitting > best.0 {
                best = (fitting, Some((base, names)));
            }
        }
        // Names that all begin alike may do so because of a field that holds the model.
        let within: Option<Vec<String>> =
            bare.iter().map(|name| name.strip_prefix(FIELD).map(str::to_owned)).collect();
        match within {
            Some(within) if !within.is_empty() => bare = within,
            _ => return best.1,
        }
    }
}

/// The name without what wrappers add to it, wherever they stand.
fn without_wrappers(name: &str) -> String {
    name.split('.').filter(|part| !WRAPPERS.contains(part)).collect::<Vec<_>>().join(".")
}

/// What the whole model prepends to the names of the model below the head.
const fn base_prefix(arch: Arch) -> &'static str {
    match arch {
        Arch::Llama => "model.",
        Arch::DistilBert => "distilbert.",
        Arch::Gpt2 => "transformer.",
        Arch::Own | Arch::Loop => "",
    }
}

/// Whether a model is whole without this tensor: tables that are made anew, and heads of other tasks.
pub(super) fn is_needless(name: &str, arch: Arch) -> bool {
    let ends = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let begins = |start: &str| name.strip_prefix(start).is_some_and(|rest| rest.starts_with('.'));
    let masked_head = || ["vocab_transform", "vocab_layer_norm", "vocab_projector"].into_iter().any(begins);
    let needless = ends("rotary_emb.inv_freq")
        || ends("position_ids")
        || (arch.task() == Task::Classification && begins("lm_head"))
        || (arch == Arch::DistilBert && masked_head());
    arch != Arch::Own && needless
}

/// Whether a parameter belongs to a head that the checkpoint may lack.
pub(super) fn may_be_new(name: &str, arch: Arch, base: bool) -> bool {
    match arch {
        Arch::DistilBert => name.starts_with("classifier.") || name.starts_with("pre_classifier."),
        Arch::Llama => base && name == HEAD,
        Arch::Gpt2 | Arch::Own | Arch::Loop => false,
    }
}
