//! Which parameters are not decayed, by patterns of their names.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The patterns of `optimizer.no_decay`, compiled. Upper and lower case are the same.
#[derive(Debug, Clone)]
pub struct NoDecay(GlobSet);

impl NoDecay {
    /// Patterns that are no patterns match nothing; the configuration refuses them before.
    pub fn new(patterns: &[String]) -> Self {
        let mut set = GlobSetBuilder::new();
        for glob in
            patterns.iter().filter_map(|text| GlobBuilder::new(text).case_insensitive(true).build().ok())
        {
            set.add(glob);
        }
        Self(set.build().unwrap_or_default())
    }

    /// Whether the parameter of that name is decayed.
    pub fn decays(&self, name: &str) -> bool {
        !self.0.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_and_biases_are_left_alone_by_default() {
        let defaults = NoDecay::new(&["*norm*".into(), "*.bias".into()]);
        for name in ["model.norm.weight", "distilbert.embeddings.LayerNorm.weight", "classifier.bias"] {
            assert!(!defaults.decays(name), "{name}");
        }
        for name in ["model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "classifier.weight"] {
            assert!(defaults.decays(name), "{name}");
        }
        assert!(NoDecay::new(&[]).decays("model.norm.weight"));
    }
}
