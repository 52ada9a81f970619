//! Patterns of parameter names: `*` stands for anything, upper and lower case are the same.

use globset::{GlobBuilder, GlobMatcher};

/// One pattern, compiled.
#[derive(Debug, Clone)]
pub struct NamePattern(GlobMatcher);

impl NamePattern {
    /// # Errors
    /// What is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, globset::Error> {
        let glob = GlobBuilder::new(pattern).case_insensitive(true).build()?;
        Ok(Self(glob.compile_matcher()))
    }

    /// Whether the name fits.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}
