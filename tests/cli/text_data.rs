//! Texts and tokenizers that people bring: what trains, what is told about it, and what is refused in one sentence.

use std::{fs, io::Write, path::PathBuf};

use serde_json::{Value, json};

use super::bad_input::refused_in;
use crate::support::{SMALL, Sandbox};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

/// So many rows under that key.
fn rows(key: &str, count: usize) -> String {
    (0..count)
        .map(|number| {
            json!({"n": number, key: format!("The moon rose over hill {number}.")}).to_string() + "\n"
        })
        .collect()
}

/// Runs with this text and these settings, and expects a refusal that holds these words.
fn refused(name: &str, text: impl AsRef<[u8]>, settings: &[&str], words: &[&str]) {
    let sandbox = Sandbox::new();
    let path = format!("data.path={}", sandbox.file(name, text));
    refused_in(&sandbox, &[&[&*path], settings].concat(), words);
}

/// Trains a moment on that path; what the run says about its data.
fn trained(sandbox: &Sandbox, path: &str, settings: &[&str]) -> Value {
    let path = format!("data.path={path}");
    let base = ["train.max_updates=1", "schedule.warmup_updates=0", &path];
    sandbox.train("text", &[&base, settings].concat())[0]["data"].clone()
}

#[test]
fn rows_train_packed_or_not_and_are_the_same_text() {
    let sandbox = Sandbox::new();
    let lines = rows("text", 200);
    let csv = "text\n".to_owned()
        + &(0..200).map(|number| format!("The moon rose over hill {number}.\n")).collect::<String>();
    let paths = [
        sandbox.file("a.jsonl", &lines),
        sandbox.file("a.jsonl.gz", gzip(lines.as_bytes())),
        sandbox.file("a.ndjson.zst", zstd(lines.as_bytes())),
        sandbox.file("a.csv", &csv),
        sandbox.file("a.tsv.gz", gzip(csv.as_bytes())),
    ];
    let mut all: Vec<Value> = paths.iter().map(|path| trained(&sandbox, path, &[])).collect();
    for (data, path) in all.iter_mut().zip(&paths) {
        assert_eq!(data["source"], **path);
        data["source"] = Value::Null;
        assert_eq!((&data["documents"], &data["left_out"]), (&json!(200), &json!({})), "{path}");
    }
    assert!(all.iter().all(|data| *data == all[0]), "{all:?}");
    let body = sandbox.file("body.jsonl", rows("body", 200));
    assert_eq!(trained(&sandbox, &body, &["data.field=body"])["bytes"], all[0]["bytes"]);
    let whole = trained(&sandbox, &body, &["data.field="]);
    assert_eq!(
        (&whole["documents"], &whole["bytes"]),
        (&json!(1), &json!(fs::metadata(body).unwrap().len()))
    );
}

#[test]
fn what_a_folder_has_beside_text_is_counted_and_listed() {
    let sandbox = Sandbox::new();
    sandbox.file("texts/a.txt", "A text that is long enough to train on. ".repeat(20));
    sandbox.file("texts/b.jsonl.gz", gzip(rows("text", 30).as_bytes()));
    sandbox.file("texts/latin.txt", b"caf\xe9");
    sandbox.file("texts/other.csv", "title\nx\n");
    let folder = sandbox.path("texts");
    std::os::unix::fs::symlink(&folder, folder.join("loop")).unwrap();
    let data = trained(&sandbox, folder.to_str().unwrap(), &[]);
    assert_eq!(data["documents"], 31);
    let expected =
        json!({"link to a folder already read": 1, "not UTF-8": 1, "rows without `text` (data.field)": 1});
    assert_eq!(data["left_out"], expected);
    let listed = data["left_out_named"].to_string();
    assert!(listed.contains("latin.txt at byte 3 (line 1): not UTF-8"), "{listed}");
    let page = fs::read_to_string(sandbox.runs()[0].join("summary.md")).unwrap();
    assert!(page.contains("left out: not UTF-8 (1)") && page.contains("latin.txt at byte 3"), "{page}");
    let shown = sandbox.run(&["show", "latest"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("31 documents") && shown.contains("  left out: not UTF-8 (1)\n"), "{shown}");
    assert!(shown.contains("    latin.txt at byte 3 (line 1): not UTF-8\n"), "{shown}");
}

#[test]
fn what_is_left_out_is_said_before_the_first_update() {
    let sandbox = Sandbox::new();
    sandbox.file("texts/a.txt", "A text that is long enough to train on. ".repeat(20));
    sandbox.file("texts/picture.png", "x");
    sandbox.file("texts/.notes.txt", "x");
    let path = format!("data.path={}", sandbox.path("texts").display());
    let mut arguments = vec!["run", "--headless"];
    for setting in SMALL.iter().chain(&["train.max_updates=1", &*path]) {
        arguments.extend(["--set", setting]);
    }
    let output = sandbox.run(&arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let told = "left out of the data: hidden file (1), other extension (1); such as .notes.txt: hidden file, \
                picture.png: other extension\n";
    assert!(said.contains(told), "{said}");
}

fn kept(sandbox: &Sandbox, kind: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(sandbox.home().join("cache").join(kind)) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_vocabulary_is_learnt_once_and_the_tokens_are_kept() {
    let sandbox = Sandbox::new();
    let text: String = (0..40_000u32)
        .map(|number| {
            format!("The {} moon rose over hill {number}.\n", number.wrapping_mul(2_654_435_761) % 977)
        })
        .collect();
    assert!(text.len() > 1 << 20);
    let path = sandbox.file("long.txt", &text);
    let settings = ["data.tokenizer=bpe:512", "model.vocab_size=512"];
    let first = trained(&sandbox, &path, &settings);
    let (tokens, vocabularies) = (kept(&sandbox, "tokens"), kept(&sandbox, "vocabularies"));
    assert_eq!((tokens.len(), vocabularies.len()), (1, 1));
    let learnt: String = serde_json::from_slice(&fs::read(&vocabularies[0]).unwrap()).unwrap();
    let learnt: Value = serde_json::from_str(&learnt).unwrap();
    assert_eq!(learnt["model"]["vocab"].as_object().unwrap().len(), 512);
    let changed = |path: &PathBuf| fs::metadata(path.join("train")).unwrap().modified().unwrap();
    let before = changed(&tokens[0]);
    assert_eq!(trained(&sandbox, &path, &settings), first);
    assert_eq!(
        (kept(&sandbox, "tokens"), changed(&tokens[0])),
        (tokens.clone(), before),
        "it was not made again"
    );
    // Torn: made again, and the same.
    fs::write(tokens[0].join("train"), "torn").unwrap();
    assert_eq!(trained(&sandbox, &path, &settings), first);
    assert!(fs::metadata(tokens[0].join("train")).unwrap().len() > 1000);
    // Without anything kept, too.
    fs::remove_dir_all(sandbox.home().join("cache")).unwrap();
    assert_eq!(trained(&sandbox, &path, &settings), first);
    let again: String =
        serde_json::from_slice(&fs::read(&kept(&sandbox, "vocabularies")[0]).unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), learnt);
}

#[test]
fn the_stories_and_the_pairs_can_teach_a_vocabulary() {
    let sandbox = Sandbox::new();
    let base = [
        "train.max_updates=1",
        "schedule.warmup_updates=0",
        "model.vocab_size=400",
        "data.tokenizer=bpe:400",
    ];
    let data = sandbox.train("stories", &base)[0]["data"].clone();
    let (bytes, tokens) = (data["bytes"].as_u64().unwrap(), data["train_tokens"].as_u64().unwrap());
    assert!(tokens * 3 < bytes * 2, "{data}");
    let output = sandbox.run(&[
        "run",
        "--json",
        "--set",
        "model.preset=distilbert-nano",
        "--set",
        base[0],
        "--set",
        base[1],
        "--set",
        base[2],
        "--set",
        base[3],
        "--set",
        "train.seq_len=32",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn rows_that_are_wrong_are_named() {
    refused(
        "t.jsonl",
        rows("text", 3) + "{\n",
        &[],
        &["t.jsonl, line 4", "not valid JSON", "one object a line"],
    );
    refused(
        "t.jsonl",
        rows("text", 3) + "{\"n\": 1}\n",
        &[],
        &["t.jsonl, line 4", "no `text`", "data.field"],
    );
    refused("t.jsonl", rows("body", 3), &[], &["t.jsonl has no `text`", "n, body", "data.field"]);
    refused("t.csv", "text,n\na,1\nb\n", &[], &["t.csv, line 3", "1 field where the header has 2"]);
    refused("t.csv", "title,n\na,1\n", &[], &["t.csv has no `text`", "title, n", "data.field"]);
    let field = "data.field=title";
    refused("t.jsonl", rows("text", 3), &[field], &["no `title`", "n, text"]);
    refused("t.txt", "some text", &["data.columns=a,b"], &["data.columns", "only on distilbert"]);
}

#[test]
fn files_that_are_damaged_are_named() {
    let packed = gzip(rows("text", 300).as_bytes());
    refused("t.jsonl.gz", &packed[..packed.len() / 2], &[], &["t.jsonl.gz ends early", "again"]);
    let packed = zstd(rows("text", 300).as_bytes());
    refused("t.jsonl.zst", &packed[..packed.len() / 2], &[], &["t.jsonl.zst ends early", "again"]);
    refused("t.txt.gz", "plain text", &[], &["t.txt.gz is damaged, or no gzip"]);
    let bert = "model.preset=distilbert-nano";
    refused("t.csv.gz", &gzip(b"text,label\na,1\nb,0\nc,1\n")[..30], &[bert], &["t.csv.gz ends early"]);
}

#[test]
fn tokenizers_that_do_not_suit() {
    let text = "some text ".repeat(50);
    refused("t.txt", &text, &["data.tokenizer=bpe:4096"], &["bpe:4096", "set model.vocab_size = 4096"]);
    refused("t.txt", &text, &["data.tokenizer=bpe:100"], &["bpe:100", "257"]);
    refused("t.txt", &text, &["data.tokenizer=bpe:many"], &["bpe:many", "as in \"bpe:4096\""]);
    refused("t.txt", &text, &["data.tokenizer=bpe"], &["\"bpe\" has no size", "as in \"bpe:4096\""]);
    refused("t.txt", &text, &["data.tokenizer=bpe:99999999"], &["bpe:99999999", "give at most 16777216"]);
    refused("t.txt", &text, &["data.tokenizer=none.json"], &["none.json does not exist", "\"bpe:4096\""]);
    let sandbox = Sandbox::new();
    let path = format!("data.path={}", sandbox.file("t.txt", &text));
    let other = |name: &str, bytes: &[u8]| format!("data.tokenizer={}", sandbox.file(name, bytes));
    let model = other("tokenizer.model", &[0x0A, 0x0E, 0x0A, 5, b'<', b'u', b'n', b'k', b'>']);
    refused_in(&sandbox, &[&path, &model], &["tokenizer.model is a model of SentencePiece", "transformers"]);
    let words = other("vocab.txt", b"[PAD]\n[UNK]\n");
    refused_in(&sandbox, &[&path, &words], &["vocab.txt is the word list of a BERT tokenizer"]);
    let settings = other("tokenizer_config.json", b"{\"tokenizer_class\": \"LlamaTokenizer\"}");
    refused_in(
        &sandbox,
        &[&path, &settings],
        &["tokenizer_config.json", "give the tokenizer.json beside it"],
    );
    let bare = concat!(
        r#"{"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "#,
        r#""model": {"type": "WordLevel", "vocab": {"some": 0, "text": 1, "[UNK]": 2}, "unk_token": "[UNK]"}}"#,
    );
    let bare = other("tokenizer.json", bare.as_bytes());
    let rows = format!("data.path={}", sandbox.file("t.jsonl", rows("text", 100)));
    refused_in(
        &sandbox,
        &[&rows, &bare],
        &["no token that ends a document", "100 documents", "<|endoftext|>"],
    );
    let table = format!("data.path={}", sandbox.file("t.csv", "text,label\na,1\nb,0\n"));
    let bert = "model.preset=distilbert-nano";
    refused_in(&sandbox, &[bert, &table, &bare], &["no marks round a row", "post_processor"]);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_parquet_table_says_how_to_read_it() {
    let words = ["t.parquet is a Parquet file", "--features parquet", ".jsonl"];
    refused("t.parquet", "PAR1", &[], &words);
    refused("t.parquet", b"PAR1\x15\x00\x15\xfe", &["model.preset=distilbert-nano"], &words);
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::*;

    fn fixture(name: &str) -> Vec<u8> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet");
        fs::read(folder.join(name)).unwrap()
    }

    #[test]
    fn tables_of_pyarrow_train_as_text_and_as_labelled_rows() {
        let sandbox = Sandbox::new();
        let names = ["snappy", "zstd", "gzip", "lz4", "none"];
        let paths = names.map(|name| {
            let file = format!("{name}.parquet");
            sandbox.file(&format!("tables/{file}"), fixture(&file))
        });
        let settings = ["train.seq_len=16"];
        let mut all = paths.map(|path| {
            let mut data = trained(&sandbox, &path, &settings);
            data["source"] = Value::Null;
            data
        });
        assert_eq!(
            (&all[0]["documents"], &all[0]["left_out"]),
            (&json!(40), &json!({"rows without text": 10}))
        );
        all.sort_by_key(Value::to_string);
        assert_eq!(all[0], all[4]);
        let folder = sandbox.path("tables");
        let data = trained(&sandbox, folder.to_str().unwrap(), &settings);
        assert_eq!(data["documents"], 200);
        let columns = ["model.preset=distilbert-nano", "data.columns=long,label", "model.num_labels=3"];
        let data = trained(&sandbox, folder.to_str().unwrap(), &columns);
        assert_eq!((&data["documents"], &data["labels"]), (&json!(250), &json!(["0", "1", "2"])));
    }

    #[test]
    fn tables_that_do_not_suit_are_named() {
        let table = fixture("snappy.parquet");
        let bert = "model.preset=distilbert-nano";
        refused("t.parquet", &table[..999], &[], &["t.parquet ends early", "999 bytes", "again"]);
        refused("t.parquet", &table[..999], &[bert], &["t.parquet ends early"]);
        refused("t.parquet", "text\nnot one\n", &[], &["t.parquet is damaged, or no Parquet file"]);
        let words = ["no column `body`", "those with text are: text, long, mood, raw", "data.field"];
        refused("t.parquet", &table, &["data.field=body"], &words);
        refused("t.parquet", &table, &["data.field=n"], &["`n` of", "holds integers", "expected text"]);
        refused("t.parquet", &table, &["data.field="], &["as it is", "data.field"]);
        refused("t.parquet", &table, &[bert], &["t.parquet, row 4", "`text` is empty"]);
        refused(
            "t.parquet",
            &table,
            &[bert, "data.columns=long,score"],
            &["holds fractions", "data.columns"],
        );
        refused("t.parquet", fixture("brotli.parquet"), &[], &["t.parquet", "rotli"]);
    }
}
