//! No bytes make a reader panic, hang, or ask for memory that they do not bear out.

pub(crate) mod entry;
mod mutate;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};

use self::{
    entry::{READERS, Reader},
    mutate::Mutation,
};

/// No reader takes longer for a few kilobytes, on however slow a machine.
const LONGEST: Duration = Duration::from_secs(20);

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 2, "{} holds a corpus", folder.display());
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn timed((name, read): Reader, bytes: &[u8], what: &str) {
    let begun = Instant::now();
    read(bytes);
    assert!(begun.elapsed() < LONGEST, "{name} took {:?} for {what}", begun.elapsed());
}

#[test]
fn every_kept_file_is_read_or_refused() {
    let mut failed = Vec::new();
    for reader in READERS {
        for (path, bytes) in corpus(reader.0) {
            // A file that is cut short anywhere near its ends is as common as one that lies.
            let cuts = [bytes.len(), 1, 7, 8, 9, bytes.len() / 2, bytes.len().saturating_sub(1)];
            let read = || {
                cuts.iter().for_each(|cut| timed(reader, &bytes[..(*cut).min(bytes.len())], "a kept file"));
            };
            if std::panic::catch_unwind(read).is_err() {
                failed.push(path.display().to_string());
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_reader_has_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in READERS {
        let target = std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(target.contains(&format!("entry::{name}(")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

/// Changes corpora in ways that break formats. The same every time.
#[test]
fn no_change_to_a_file_makes_a_reader_panic() {
    for reader in READERS {
        let seeds = corpus(reader.0);
        let cases = if reader.0 == "tokenizer" { 24 } else { 96 };
        let config =
            Config { cases, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
        let changed = (0..seeds.len(), proptest::collection::vec(any::<(u8, u32, u64)>(), 1..6));
        let outcome = TestRunner::new(config).run(&changed, |(seed, changes)| {
            let mut bytes = seeds[seed].1.clone();
            changes.into_iter().for_each(|change| Mutation::from(change).apply(&mut bytes, &seeds));
            timed(reader, &bytes, "a changed file");
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{}: {error}", reader.0));
    }
}

/// `FUZZ_MINUTES=10 cargo test --test e2e -- --ignored --exact readers::for_many_minutes`; `FUZZ_TARGET` names one
/// reader, `FUZZ_SEED` another beginning. What a reader fails on is kept in `FUZZ_KEEP`, if that names a folder.
#[test]
#[ignore = "runs for FUZZ_MINUTES each"]
fn for_many_minutes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let minutes = number("FUZZ_MINUTES").unwrap_or(1);
    let only = std::env::var("FUZZ_TARGET").ok();
    for reader in READERS.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        let seeds = corpus(reader.0);
        let mut state = number("FUZZ_SEED").unwrap_or(1);
        let mut next = move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut x = state;
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            x ^ (x >> 31)
        };
        let until = Instant::now() + Duration::from_secs(60 * minutes);
        let mut inputs = 0_u64;
        while Instant::now() < until {
            let mut bytes = seeds[next() as usize % seeds.len()].1.clone();
            for _ in 0..=next() % 6 {
                Mutation::from((next() as u8, next() as u32, next())).apply(&mut bytes, &seeds);
            }
            let held = std::panic::AssertUnwindSafe(|| timed(reader, &bytes, "a changed file"));
            if let Err(panic) = std::panic::catch_unwind(held) {
                if let Ok(folder) = std::env::var("FUZZ_KEEP") {
                    std::fs::write(Path::new(&folder).join(format!("{}-{inputs}", reader.0)), &bytes)
                        .unwrap();
                }
                std::panic::resume_unwind(panic);
            }
            inputs += 1;
        }
        println!("{}: {inputs} inputs in {minutes} minutes, peak {}", reader.0, peak());
        assert!(inputs > 0);
    }
}

/// The most memory that this process had, as the operating system tells it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |peak| peak.trim().to_owned())
}
