//! How fast a text becomes tokens beside the `tokenizers` crate itself, how fast tokens that were kept open, and how long
//! training waits for its batches.
//!
//! `cargo bench --bench tokenizing`

use std::{fs, path::Path, time::Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokenizers::Tokenizer;
use tui_train::{
    backend::devices,
    config::{Config, DeviceName, Layers},
    data::{Cursor, Dataset, Prefetch, Windows, stories},
    worker::trainer,
};

/// Bytes of text; more than is ever held in memory.
const TEXT: usize = 40 << 20;
/// Updates over which waiting is measured.
const UPDATES: u64 = 50;

/// Documents that are all different, one a line of a `.jsonl` file.
fn documents() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    stories::tell_all(|story| all.push(story.to_owned())).expect("the stories are built in");
    let told = all.len();
    let mut bytes: usize = all.iter().map(String::len).sum();
    for number in 0.. {
        if bytes >= TEXT {
            break;
        }
        let more = format!("{} {} {}", all[number % told], number, all[number * 7 % told]);
        bytes += more.len();
        all.push(more);
    }
    all
}

fn config(settings: &[&str]) -> Config {
    let layers = Layers::new().with_assignments(settings);
    layers.and_then(|layers| layers.resolve()).expect("settings that go together").config
}

fn open(config: &Config, kept: &Path) -> Dataset {
    Dataset::open_kept_in(config, kept, &mut |_| ()).expect("a text that can be read")
}

fn tokenizing(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let documents = documents();
    let bytes: usize = documents.iter().map(String::len).sum();
    let lines: String =
        documents.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n").collect();
    let (text, kept) = (folder.path().join("text.jsonl"), folder.path().join("kept"));
    fs::write(&text, lines).expect("a file");
    let path = format!("data.path={}", text.display());
    let learnt = config(&["data.tokenizer=bpe:4096", "model.vocab_size=4096", &path]);
    open(&learnt, &kept);
    let vocabulary =
        fs::read_dir(kept.join("vocabularies")).expect("a folder").next().expect("it was learnt");
    let vocabulary = fs::read(vocabulary.expect("a file").path()).expect("a file");
    let vocabulary: String = serde_json::from_slice(&vocabulary).expect("a text");
    let tokenizer = Tokenizer::from_bytes(&vocabulary).expect("a tokenizer");
    let file = folder.path().join("tokenizer.json");
    fs::write(&file, &vocabulary).expect("a file");
    let file = config(&[&format!("data.tokenizer={}", file.display()), "model.vocab_size=4096", &path]);

    let mut group = criterion.benchmark_group("40 MiB of text");
    group.sample_size(10).throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("the tokenizers crate alone, on all cores", |bencher| {
        bencher.iter(|| {
            let texts: Vec<&str> = documents.iter().map(String::as_str).collect();
            let encodings = tokenizer.encode_batch_fast(texts, false).expect("every text has tokens");
            encodings.iter().map(|encoding| encoding.get_ids().len()).sum::<usize>()
        });
    });
    group.bench_function("read, checked, tokenized and written", |bencher| {
        bencher.iter(|| {
            // The first time there is nothing to forget.
            let _ = fs::remove_dir_all(kept.join("tokens"));
            open(&file, &kept).train_sequences()
        });
    });
    group.bench_function("opened, the files unchanged", |bencher| {
        bencher.iter(|| open(&file, &kept).train_sequences());
    });
    group.finish();
}

/// Updates with the loader's thread beside them: all of it, and what is spent waiting for the loader.
fn waiting(criterion: &mut Criterion) {
    let config = config(&[]);
    let device = devices::open(DeviceName::Flex).expect("flex is always there");
    let dataset = Dataset::open(&config).expect("the stories are built in");
    let mut group = criterion.benchmark_group("updates of llama-nano behind the loader");
    group.sample_size(10);
    for (what, waits_alone) in [("all of it", false), ("waiting for batches", true)] {
        group.bench_function(what, |bencher| {
            bencher.iter_custom(|times| {
                let mut training = trainer::build(&config, &device.device).expect("llama is there");
                let mut measured = std::time::Duration::ZERO;
                for _ in 0..times {
                    let windows =
                        Windows::new(dataset.clone(), &config, Cursor::default()).expect("from the start");
                    let mut windows = Prefetch::new(windows).expect("a thread");
                    for _ in 0..UPDATES {
                        let begun = Instant::now();
                        let window = windows.next().expect("the stream has no end").expect("a window");
                        let waited = begun.elapsed();
                        for (batch, pass) in window.passes(1) {
                            training.micro_batch(batch, pass);
                        }
                        training.update(config.optimizer.lr(), false);
                        measured += if waits_alone { waited } else { begun.elapsed() };
                    }
                }
                measured
            });
        });
    }
    group.finish();
}

criterion_group!(benches, tokenizing, waiting);
criterion_main!(benches);
