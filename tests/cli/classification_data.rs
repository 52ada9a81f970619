//! Mistakes in the data of a classification: one sentence that names the file and the place, exit code 2, no run left
//! behind.

use super::bad_input::refused_in;
use crate::support::Sandbox;

/// Writes a table of this name and text, runs with it and these settings, and expects a refusal that holds these words.
fn refused(name: &str, text: &[u8], settings: &[&str], words: &[&str]) {
    let sandbox = Sandbox::new();
    let path = format!("data.path={}", sandbox.file(name, text));
    refused_in(&sandbox, &[&["model.preset=distilbert-nano", &path], settings].concat(), words);
}

#[test]
fn tables_that_cannot_be_read() {
    refused("t.txt", b"good\nbad\n", &[], &["t.txt", "to classify, give a .csv, .tsv or .jsonl file"]);
    refused("t.csv", b"text,label\ncaf\xe9,1\n", &[], &["t.csv is not UTF-8", "line 2", "iconv"]);
    refused("t.csv", b"text,label\na,1\nb\n", &[], &["t.csv, line 3", "1 field where the header has 2"]);
    refused("t.tsv", b"text\tlabel\n\"a\t1\nb\t0\n", &[], &["t.tsv, line 2", "never closed"]);
    refused("t.jsonl", b"{\"text\": \"a\", \"label\": 1}\n{\n", &[], &["t.jsonl, line 2", "not valid JSON"]);
    refused("t.csv", b"text,label\na,1\n ,0\n", &[], &["t.csv, line 3", "`text` is empty"]);
}

#[test]
fn columns_and_labels_that_do_not_suit() {
    refused("t.csv", b"title,label\na,1\nb,0\n", &[], &["t.csv", "title, label", "data.columns"]);
    let settings = ["data.columns=[\"text\", \"stars\"]"];
    refused("t.csv", b"text,label\na,1\nb,0\n", &settings, &["no column `stars`", "text, label"]);
    let text = b"text,label\na,x\nb,y\nc,z\n";
    refused("t.csv", text, &[], &["3 labels (x, y, z)", "set model.num_labels = 3"]);
    refused("t.csv", b"text,label\na,1\nb,1\n", &[], &["one class only", "`1`"]);
    refused("t.csv", b"text,label\na,1\nb,0\nc,-1\n", &[], &["t.csv, line 4", "label `-1`", "0 to 1"]);
}

#[test]
fn tokenizers_that_do_not_suit() {
    let text = b"text,label\na,1\nb,0\n";
    refused("t.csv", text, &["data.tokenizer=none.json"], &["none.json does not exist", "tokenizer.json"]);
    refused("t.csv", text, &["data.tokenizer=t.csv"], &["t.csv is not a tokenizer.json"]);
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/parity/tokenizer/tokenizer.json");
    let settings = [&format!("data.tokenizer={fixture}"), "model.vocab_size=100"];
    refused(
        "t.csv",
        text,
        &settings,
        &["120 tokens", "model.vocab_size = 100", "set model.vocab_size = 120"],
    );
}
