use proptest::prelude::*;

use super::*;
use crate::config::Layers;

fn corpus(documents: &[String]) -> Corpus {
    let mut corpus = Corpus::new("test");
    documents.iter().for_each(|document| corpus.push(document.as_bytes()));
    corpus
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("document {number} {}", "x".repeat(number % 7))).collect()
}

#[test]
fn no_fraction_holds_nothing_out() {
    let dataset = Dataset::from_corpus(corpus(&numbered(30)), 0.0, 8).unwrap();
    assert_eq!(dataset.validation_sequences(), 0);
    assert_eq!(dataset.validation_batches(4, usize::MAX).count(), 0);
}

#[test]
fn too_little_text_says_how_much_there_is_and_how_much_is_needed() {
    let error = Dataset::from_corpus(corpus(&["0123456789".into()]), 0.0, 64).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("test has 11 tokens") && text.contains("= 65"), "{text}");
    assert!(Dataset::from_corpus(corpus(&["0123456789".into()]), 0.0, 10).is_ok());
    assert!(Dataset::from_corpus(corpus(&["0123456789".into()]), 0.0, 11).is_err());
}

#[test]
fn the_report_counts_what_the_streams_hold() {
    let config = Layers::new().resolve().unwrap().config;
    let dataset = Dataset::open(&config).unwrap();
    let report = dataset.report();
    assert_eq!(report.source, "stories");
    assert_eq!(report.bytes + report.documents, report.train_tokens + report.validation_tokens);
    assert_eq!(report.train_sequences, (report.train_tokens - 1).div_ceil(64));
    let held = report.validation_tokens as f64 / (report.bytes + report.documents) as f64;
    assert!((0.045..=0.05).contains(&held), "{held}");
}

#[test]
fn validation_is_the_same_every_time_and_spread_when_limited() {
    let dataset = Dataset::from_corpus(corpus(&numbered(900)), 0.2, 32).unwrap();
    let all: Vec<Batch> = dataset.validation_batches(4, usize::MAX).collect();
    assert_eq!(all, dataset.validation_batches(4, usize::MAX).collect::<Vec<_>>());
    let targets: u64 = all.iter().map(|batch| batch.target_count).sum();
    assert_eq!(targets, dataset.report().validation_tokens - 1);

    let some: Vec<Batch> = dataset.validation_batches(4, 10).collect();
    assert_eq!(some.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [4, 4, 2]);
    let everything: Vec<Batch> = dataset.validation_batches(1, usize::MAX).collect();
    // Rows are long enough to hold the whole number of a document, so that no two are the same.
    let place = |row: &[i32]| everything.iter().position(|batch| batch.row(0).0 == row).unwrap();
    let places: Vec<usize> =
        some.iter().flat_map(|batch| (0..batch.rows).map(|row| place(batch.row(row).0))).collect();
    assert!(places.is_sorted() && places[9] > everything.len() * 8 / 10, "{places:?}");
}

#[test]
fn what_is_made_of_the_stories_is_made_once() {
    use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

    let settings = ["data.tokenizer=bpe:300", "model.vocab_size=300"];
    let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let dataset = Dataset::open_kept_in(&config, folder.path(), &mut |_| ()).unwrap();
        (dataset.batch(&[0, 7, 700]), dataset.report().clone())
    };
    let kept = |kind: &str| -> PathBuf {
        let all: Vec<PathBuf> =
            fs::read_dir(folder.path().join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    };
    let first = open();
    let numbers = || [kept("vocabularies"), kept("tokens")].map(|path| path.metadata().unwrap().ino());
    let before = numbers();
    assert_eq!((open(), numbers()), (first.clone(), before));
    // Torn: made again, and the same.
    fs::write(kept("vocabularies"), "\"{").unwrap();
    fs::write(kept("tokens").join("train"), "torn").unwrap();
    assert_eq!(open(), first);
    assert_ne!(numbers()[0], before[0]);
}

#[test]
fn a_missing_path_is_named() {
    let config = Layers::new().with_assignment("data.path=no/such/file.txt").unwrap();
    let error = Dataset::open(&config.resolve().unwrap().config).unwrap_err();
    assert!(error.to_string().contains("no/such/file.txt does not exist"), "{error}");
}

proptest! {
    #[test]
    fn sequences_give_back_the_stream(length in 9usize..200, seq_len in 2usize..9) {
        let text: String = (0..length).map(|place| char::from(b'a' + (place % 23) as u8)).collect();
        let dataset = Dataset::from_corpus(corpus(std::slice::from_ref(&text)), 0.0, seq_len).unwrap();
        let all: Vec<u64> = (0..dataset.train_sequences()).collect();
        let batch = dataset.batch(&all);
        let targets: Vec<u8> =
            batch.targets.iter().filter(|id| **id != crate::data::IGNORE).map(|id| *id as u8).collect();
        let expected: Vec<u8> = text.bytes().skip(1).chain([0]).collect();
        prop_assert_eq!(targets, expected);
        prop_assert_eq!(batch.target_count, length as u64);
        prop_assert_eq!(batch.lengths.iter().sum::<usize>(), length);
        prop_assert_eq!(batch.inputs.len(), all.len() * seq_len);
    }
}
