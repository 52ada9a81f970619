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
    assert!(plan.notes()[0].contains("newly initialised") && plan.notes()[0].contains("`lm_head.weight`"));
    // With its prefix the model was whole, and its head was its embedding.
    let text = told(&untied, |tensors| tensors.retain(|(name, ..)| name != HEAD));
    assert!(text.contains("lacks `lm_head.weight`") && text.contains("tie_word_embeddings = true"), "{text}");
}

#[test]
fn a_tied_head_is_the_embedding_or_an_error() {
    let tied = model("llama-nano", &[]);
    let head = |value: f32| move |tensors: &mut Tensors| tensors.push((HEAD.into(), vec![256, 64], value));
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
    let surplus = told(&llama, |tensors| tensors.push(("model.layers.2.norm.weight".into(), vec![64], 1.0)));
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
    let tensors: Tensors = ledger::parameters(&llama).into_iter().map(|p| (p.name, p.shape, 1.0)).collect();
    let text = plan(&write(&tensors, Dtype::I8), &llama).unwrap_err().to_string();
    assert!(text.contains("is of type I8") && text.contains("BF16"), "{text}");
}
