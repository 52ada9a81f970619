//! The draft as a file.

use std::{fs::File, io::Write};

use anyhow::Context;

/// Writes a new file and returns where it is.
///
/// # Errors
/// There is one of that name already, or it cannot be written.
pub fn save(path: &str, text: &str) -> anyhow::Result<String> {
    let mut file = match File::create_new(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            anyhow::bail!("{path} is there already: give another name, nothing is written over it")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {path}")),
    };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {path}"))?;
    Ok(std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draft.toml").display().to_string();
        assert_eq!(save(&path, "train.seed = 1\n").unwrap(), path);
        assert!(save(&path, "train.seed = 2\n").unwrap_err().to_string().contains("another name"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "train.seed = 1\n");
        let nowhere = folder.path().join("no/folder.toml").display().to_string();
        assert!(save(&nowhere, "").unwrap_err().to_string().contains("cannot write"));
    }
}
