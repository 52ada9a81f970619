//! What is typed to narrow a list: a part of a name, or a glob.

use crate::config::NamePattern;

/// A part of a name, or a glob when it has a star, a question mark or brackets.
#[derive(Debug)]
pub struct Filter {
    text: String,
    glob: Option<NamePattern>,
    /// Why it is no glob; then everything passes.
    pub error: Option<String>,
}

impl Filter {
    /// Reads what was typed; upper and lower case are the same.
    pub fn new(text: &str) -> Self {
        let (mut glob, mut error) = (None, None);
        if text.contains(['*', '?', '[', '{']) {
            match NamePattern::new(text) {
                Ok(built) => glob = Some(built),
                Err(mistake) => error = Some(format!("not a glob: {}", mistake.kind())),
            }
        }
        Self { text: text.to_lowercase(), glob, error }
    }

    /// Whether a name passes.
    pub fn passes(&self, name: &str) -> bool {
        match &self.glob {
            _ if self.text.is_empty() => true,
            Some(glob) => glob.matches(name),
            None => self.error.is_some() || name.to_lowercase().contains(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_anywhere_and_a_glob_fits_the_whole_name() {
        let passes = |filter: &str, name: &str| Filter::new(filter).passes(name);
        assert!(passes("Q_PROJ", "layers.0.q_proj.weight") && !passes("k_proj", "layers.0.q_proj.weight"));
        assert!(passes("*.q_?roj.*", "layers.0.Q_PROJ.weight") && !passes("q_*", "layers.0.q_proj.weight"));
        let broken = Filter::new("[a");
        assert!(broken.passes("anything") && broken.error.unwrap().contains("glob"));
        assert!(passes("", "anything"));
    }
}
