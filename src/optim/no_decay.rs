//! Which parameters are not decayed, by patterns of their names.

use crate::config::NamePattern;

/// The patterns of `optimizer.no_decay`, compiled.
#[derive(Debug, Clone)]
pub struct NoDecay(Vec<NamePattern>);

impl NoDecay {
    /// Patterns that are no patterns match nothing; the configuration refuses them before.
    pub fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().filter_map(|pattern| NamePattern::new(pattern).ok()).collect())
    }

    /// Whether the parameter of that name is decayed.
    pub fn decays(&self, name: &str) -> bool {
        !self.0.iter().any(|pattern| pattern.matches(name))
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
