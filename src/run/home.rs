//! Where runs live: `$TUI_TRAIN_HOME`, else `$XDG_STATE_HOME/tui-train`, else `~/.local/state/tui-train`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::RunError;

/// The folder that holds `runs/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The folder that the environment names. Nothing is created.
    ///
    /// # Errors
    /// No variable names one.
    pub fn from_env() -> Result<Self, RunError> {
        Self::locate(|name| std::env::var_os(name))
    }

    /// The folder that these variables name. An empty variable counts as unset, and so does an
    /// `XDG_STATE_HOME` that is relative, as its specification asks.
    ///
    /// # Errors
    /// No variable names one.
    pub fn locate(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, RunError> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let root = set("TUI_TRAIN_HOME")
            .or_else(|| set("XDG_STATE_HOME").filter(|path| path.is_absolute()).map(|p| p.join("tui-train")))
            .or_else(|| set("HOME").map(|home| home.join(".local/state/tui-train")))
            .ok_or(RunError::NoHome)?;
        Ok(Self::at(root))
    }

    /// This folder. A relative one is taken from the current folder once, for a worker may have another.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { root: std::path::absolute(&root).unwrap_or(root) }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The folder with one folder a run; it may not exist yet.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Makes the folder for runs if it is missing.
    ///
    /// # Errors
    /// It cannot be made; the sentence names the folder and the variable that chooses another.
    pub fn ensure(&self) -> Result<PathBuf, RunError> {
        let runs = self.runs();
        std::fs::create_dir_all(&runs)
            .map_err(|source| RunError::HomeNotWritable { path: self.root.clone(), source })?;
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(set: &[(&str, &str)]) -> Result<Home, RunError> {
        Home::locate(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_first_variable_that_is_set_wins() {
        let all = [("TUI_TRAIN_HOME", "/a"), ("XDG_STATE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(home(&all).unwrap().path(), Path::new("/a"));
        assert_eq!(home(&all[1..]).unwrap().path(), Path::new("/b/tui-train"));
        assert_eq!(home(&all[2..]).unwrap().path(), Path::new("/c/.local/state/tui-train"));
    }

    #[test]
    fn empty_and_relative_variables_do_not_count() {
        let set = [("TUI_TRAIN_HOME", ""), ("XDG_STATE_HOME", "state"), ("HOME", "/c")];
        assert_eq!(home(&set).unwrap().path(), Path::new("/c/.local/state/tui-train"));
        assert!(matches!(home(&[("HOME", "")]), Err(RunError::NoHome)));
    }

    #[test]
    fn a_home_that_cannot_be_made_names_the_folder_and_the_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let text = Home::at(&file).ensure().unwrap_err().to_string();
        assert!(text.contains(&file.display().to_string()) && text.contains("TUI_TRAIN_HOME"), "{text}");
    }
}
