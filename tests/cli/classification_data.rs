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

#[test]
fn the_tables_of_a_folder_train_together_and_what_is_left_out_is_told() {
    let sandbox = Sandbox::new();
    let rows =
        |count: usize| -> String { (0..count).map(|row| format!("sentence {row},{}\n", row % 2)).collect() };
    sandbox.file("tables/a.csv", "text,label\n".to_owned() + &rows(30));
    sandbox.file(
        "tables/more/b.jsonl",
        "{\"text\": \"one\", \"label\": 1}\n{\"text\": \"two\", \"label\": 0}\n",
    );
    sandbox.file("tables/README.md", "about these tables");
    sandbox.file("tables/other.csv", "text,stars\na,5\n");
    sandbox.file("tables/latin.csv", b"text,label\ncaf\xe9,1\n");
    let path = format!("data.path={}", sandbox.path("tables").display());
    let settings =
        ["model.preset=distilbert-nano", &path, "train.max_updates=1", "schedule.warmup_updates=0"];
    let data = sandbox.train("tables", &settings)[0]["data"].clone();
    assert_eq!(data["documents"], 32);
    let expected = serde_json::json!({
        "not UTF-8": 1, "other extension": 1, "without the columns of a classification (data.columns)": 1,
    });
    assert_eq!(data["left_out"], expected);
    let listed = data["left_out_named"].to_string();
    assert!(listed.contains("latin.csv at byte 14 (line 2): not UTF-8"), "{listed}");
    let page = std::fs::read_to_string(sandbox.runs()[0].join("summary.md")).unwrap();
    assert!(page.contains("other.csv: without the columns"), "{page}");
}

#[test]
fn a_folder_of_tables_that_is_wrong_names_the_file() {
    let wrong = |files: &[(&str, &[u8])], words: &[&str]| {
        let sandbox = Sandbox::new();
        files.iter().for_each(|(name, text)| drop(sandbox.file(&format!("tables/{name}"), text)));
        let path = format!("data.path={}", sandbox.path("tables").display());
        refused_in(&sandbox, &["model.preset=distilbert-nano", &path], words);
    };
    let good: (&str, &[u8]) = ("a.csv", b"text,label\na,1\nb,0\n");
    wrong(&[good, ("b.csv", b"text,label\na,1\nb\n")], &["b.csv, line 3", "1 field where the header has 2"]);
    wrong(&[good, ("b.csv", b"text,label\na,1\nb,-1\n")], &["b.csv, line 3", "label `-1`", "0 to 1"]);
    wrong(&[("a.txt", b"text"), ("b.png", b"x")], &["no rows to classify in", "2 other extension", ".csv"]);
}
