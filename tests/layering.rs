//! The layering rule: who may name whom, read off the source files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The folders, lowest first, and what each may name besides itself.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("protocol", &["config"]),
    ("ledger", &["config", "protocol"]),
    ("data", &["config", "protocol", "ledger"]),
    ("backend", &["config", "protocol", "ledger"]),
    ("model", &["config", "protocol", "ledger", "data", "backend"]),
    ("optim", &["config", "protocol", "ledger", "backend"]),
    ("run", &["config", "protocol", "ledger"]),
    ("worker", &["config", "protocol", "ledger", "data", "model", "optim", "backend", "run"]),
    ("app", &["config", "protocol", "ledger", "run"]),
    ("ui", &["config", "protocol", "ledger", "run", "app"]),
    ("shell", &["config", "protocol", "ledger", "run", "app", "ui"]),
    (
        "cli",
        &[
            "config", "protocol", "ledger", "data", "model", "optim", "backend", "run", "worker", "app",
            "ui", "shell",
        ],
    ),
];
/// Crates that only these folders may name.
const RESERVED: &[(&str, &[&str])] = &[
    ("burn", &["data", "model", "optim", "backend", "worker"]),
    ("torch_sys", &["backend"]),
    ("burn_tch", &["backend"]),
    ("ratatui", &["ui", "shell"]),
    ("crossterm", &["ui", "shell", "cli"]),
];

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// The source without comments, as one line of code a line.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Every word that follows `crate::`, with those of a braced list.
fn named(code: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let mut names = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(outer(list).split(',').map(word).filter(|name| !name.is_empty())),
            None => names.push(word(rest)),
        }
    }
    names
}

/// What stands before the brace that closes a list, without what braces inside it hold.
fn outer(list: &str) -> String {
    let (mut depth, mut text) = (0, String::new());
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    text
}

#[test]
fn arrows_go_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders: BTreeMap<&str, &[&str]> = MAY_NAME.iter().copied().collect();
    let mut wrong = Vec::new();
    for (folder, allowed) in MAY_NAME {
        let mut all = Vec::new();
        files(&source.join(folder), &mut all);
        assert!(!all.is_empty(), "src/{folder} has no source");
        for file in all {
            let text = code(&std::fs::read_to_string(&file).unwrap());
            let at = file.strip_prefix(&source).unwrap().display().to_string();
            for name in named(&text) {
                if folders.contains_key(name.as_str()) && name != *folder && !allowed.contains(&name.as_str())
                {
                    wrong.push(format!("{at} names crate::{name}"));
                }
            }
            for (library, homes) in RESERVED {
                let used = text.contains(&format!("{library}::")) || text.contains(&format!("use {library}"));
                if used && !homes.contains(folder) {
                    wrong.push(format!("{at} names {library}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_use_lines_sees_braced_lists() {
    assert_eq!(named("use crate::{app::State, run::{Home, RunDir}, ui};"), ["app", "run", "ui"]);
    assert_eq!(named("use crate::config::Config; crate::ledger::F32"), ["config", "ledger"]);
}
