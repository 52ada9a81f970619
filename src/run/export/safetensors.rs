//! A run's weights as a folder that Hugging Face's `from_pretrained` loads, with the optimizer's state beside them.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};

use crate::{
    config::{Arch, Config, validate},
    run::{Record, RunDir, RunError, atomic, checkpoint},
};

/// What an export wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Updates that had been made when the weights were kept.
    pub update: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes `config.json`, `model.safetensors` and `optimizer.safetensors` of a checkpoint, the last one unless `update`
/// names another, into a new folder. The tensors are copied as the checkpoint holds them; the state of a parameter is
/// called `<parameter>.<state>`, by PyTorch's names.
///
/// # Errors
/// There is no such checkpoint, it is damaged, something stands at `target`, or it cannot be written.
pub fn write(run: &RunDir, update: Option<u64>, target: &Path) -> Result<Written, RunError> {
    if target.symlink_metadata().is_ok() {
        return Err(RunError::Taken(target.to_owned()));
    }
    // Read through, so that nothing damaged is handed on.
    let (checkpoint, info) = checkpoint::chosen(run, update)?;
    let labels = Record::read(run)?.header.map(|header| header.data.labels).unwrap_or_default();
    let mut config = serde_json::to_vec_pretty(&pretrained(&info.config, &labels)?)
        .map_err(|error| RunError::Damaged { path: run.run_toml(), problem: error.to_string() })?;
    config.push(b'\n');
    let mut bytes = config.len() as u64;
    let fill = |folder: &Path| -> io::Result<()> {
        fs::write(folder.join("config.json"), &config)?;
        bytes += fs::copy(checkpoint.model(), folder.join("model.safetensors"))?;
        bytes += fs::copy(checkpoint.optimizer(), folder.join("optimizer.safetensors"))?;
        Ok(())
    };
    atomic::write_new_folder(target, fill).map_err(RunError::io("cannot write", target))?;
    Ok(Written { update: checkpoint.update, bytes })
}

/// `config.json`, with the keys of Hugging Face's configuration of the architecture.
fn pretrained(config: &Config, labels: &[String]) -> Result<Value, RunError> {
    match config.model.arch {
        Arch::Llama => Ok(llama(config)),
        Arch::DistilBert => Ok(distilbert(config, labels)),
        Arch::Gpt2 => Err(validate::only_planned(config).into()),
        Arch::Own | Arch::Loop => Ok(own(config)),
    }
}

/// Hugging Face has no such model: its settings, for the program that makes it.
fn own(config: &Config) -> Value {
    json!({"model_type": config.model.name(), "task": config.task, "torch_dtype": "float32"})
}

fn llama(config: &Config) -> Value {
    let model = &config.model;
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": model.vocab_size,
        "hidden_size": model.hidden_size,
        "intermediate_size": model.intermediate_size,
        "num_hidden_layers": model.num_hidden_layers,
        "num_attention_heads": model.num_attention_heads,
        "num_key_value_heads": model.num_key_value_heads,
        "hidden_act": "silu",
        // Longer sequences were never seen.
        "max_position_embeddings": config.train.seq_len,
        "rms_norm_eps": model.rms_norm_eps,
        "rope_theta": model.rope_theta,
        "tie_word_embeddings": model.tie_word_embeddings,
        "attention_bias": false,
        "attention_dropout": 0.0,
        "mlp_bias": false,
        "bos_token_id": null,
        "eos_token_id": null,
        "torch_dtype": "float32",
    })
}

fn distilbert(config: &Config, labels: &[String]) -> Value {
    let model = &config.model;
    let name = |class: usize| labels.get(class).cloned().unwrap_or_else(|| format!("LABEL_{class}"));
    let id2label: Map<String, Value> =
        (0..model.num_labels).map(|class| (class.to_string(), name(class).into())).collect();
    let label2id: Map<String, Value> =
        (0..model.num_labels).map(|class| (name(class), class.into())).collect();
    json!({
        "architectures": ["DistilBertForSequenceClassification"],
        "model_type": "distilbert",
        "vocab_size": model.vocab_size,
        "dim": model.hidden_size,
        "hidden_dim": model.intermediate_size,
        "n_layers": model.num_hidden_layers,
        "n_heads": model.num_attention_heads,
        "max_position_embeddings": model.max_position_embeddings,
        "activation": "gelu",
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "seq_classif_dropout": model.seq_classif_dropout,
        "sinusoidal_pos_embds": false,
        "tie_weights_": true,
        "pad_token_id": 0,
        "id2label": id2label,
        "label2id": label2id,
        "torch_dtype": "float32",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::Event,
        run::{sample, weights},
    };

    #[test]
    fn an_export_is_a_folder_to_start_from() {
        let (folder, run) = sample::run("weights");
        sample::checkpoint(&run, 3);
        sample::checkpoint(&run, 7);
        let target = folder.path().join("out");
        let written = write(&run, None, &target).unwrap();
        assert_eq!(written.update, 7);
        let mut names: Vec<_> =
            fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["config.json", "model.safetensors", "optimizer.safetensors"]);
        let sizes = names.iter().map(|name| fs::metadata(target.join(name)).unwrap().len());
        assert_eq!(written.bytes, sizes.sum::<u64>());
        let last = checkpoint::checkpoints(&run).unwrap().pop().unwrap();
        for (copy, original) in
            [("model.safetensors", last.model()), ("optimizer.safetensors", last.optimizer())]
        {
            assert_eq!(fs::read(target.join(copy)).unwrap(), fs::read(original).unwrap(), "{copy}");
        }
        let config: Value = serde_json::from_slice(&fs::read(target.join("config.json")).unwrap()).unwrap();
        assert_eq!(config["architectures"][0], "LlamaForCausalLM");
        assert_eq!((&config["num_key_value_heads"], &config["hidden_size"]), (&2.into(), &64.into()));
        assert!(config["eos_token_id"].is_null() && config["tie_word_embeddings"] == true);

        let mut model = run.config().unwrap().model;
        model.weights = Some(target.display().to_string());
        let plan = weights::plan(&model).unwrap().unwrap();
        assert!(plan.notes().is_empty(), "{:?}", plan.notes());
        assert_eq!(plan.read("model.norm.weight").unwrap().unwrap()[..3], [-1.0, 0.0, 1.0]);

        assert_eq!(write(&run, Some(3), &folder.path().join("earlier")).unwrap().update, 3);
        let told = write(&run, Some(5), &folder.path().join("none")).unwrap_err();
        assert!(told.to_string().contains("no checkpoint of update 5; it has those of 3, 7"), "{told}");
        assert_eq!(told.exit_code(), 2);
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_left_half_done() {
        let (folder, run) = sample::run("taken");
        let target = folder.path().join("out");
        assert!(write(&run, None, &target).unwrap_err().to_string().contains("has no checkpoint: "));
        sample::checkpoint(&run, 1);
        fs::write(&target, "mine").unwrap();
        let told = write(&run, None, &target).unwrap_err();
        assert!(told.to_string().contains("exists already"), "{told}");
        assert_eq!((told.exit_code(), fs::read_to_string(&target).unwrap().as_str()), (2, "mine"));
        fs::write(run.checkpoint(1).join("optimizer.safetensors"), "damaged").unwrap();
        let other = folder.path().join("other");
        assert!(write(&run, None, &other).is_err());
        assert!(!other.exists());
        let nowhere = write(&run, None, &folder.path().join("no/such/folder"));
        assert!(nowhere.is_err());
    }

    #[test]
    fn classes_have_the_names_of_the_data() {
        let (folder, run) = sample::run_with("pairs", &["model.preset=distilbert-nano"]);
        sample::checkpoint(&run, 1);
        let config = |labels: &[&str], name: &str| -> Value {
            let mut header = sample::header(&run);
            header.data.labels = labels.iter().map(|&label| label.to_owned()).collect();
            fs::write(run.events(), serde_json::to_string(&Event::Header(Box::new(header))).unwrap() + "\n")
                .unwrap();
            let target = folder.path().join(name);
            write(&run, None, &target).unwrap();
            serde_json::from_slice(&fs::read(target.join("config.json")).unwrap()).unwrap()
        };
        let named = config(&["same", "other"], "named");
        assert_eq!(named["id2label"], json!({"0": "same", "1": "other"}));
        assert_eq!(named["label2id"], json!({"same": 0, "other": 1}));
        assert_eq!((&named["n_layers"], &named["hidden_dim"]), (&2.into(), &192.into()));
        assert_eq!(named["architectures"][0], "DistilBertForSequenceClassification");
        assert_eq!(config(&[], "unnamed")["id2label"], json!({"0": "LABEL_0", "1": "LABEL_1"}));
    }
}
