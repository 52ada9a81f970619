//! Everything that reads what others wrote, as functions of bytes. The property tests, the kept corpora and the fuzz
//! targets call the same ones.
//!
//! A reader may refuse its bytes in one sentence; it may not panic, and may not ask for more memory than they bear out.

use std::{io::Cursor, path::Path};

use tui_train::{
    app::{action::Screen, run::RunView},
    config::Layers,
    data::Dataset,
    ledger,
    protocol::{Command, Event, Reply, Request, StateReport, Summary},
    run::{
        Home, Record, RunDir, Standing, bounded,
        checkpoint::CheckpointInfo,
        compare::compare,
        export::{self, Format},
        list,
        summary::{Finish, build},
        tail::{self, Line, Tail},
        tensors::TensorFile,
        weights::Source,
    },
    shell::{Launch, Start, picture},
};

/// A reader and its name: that of its fuzz target and of the folder of its corpus.
pub(crate) type Reader = (&'static str, fn(&[u8]));

/// Every reader.
pub(crate) const READERS: [Reader; 9] = [
    ("config", config),
    ("events", events),
    ("checkpoint", checkpoint),
    ("safetensors", safetensors),
    ("torch", torch),
    ("pickle", pickle),
    ("tokenizer", tokenizer),
    ("protocol", protocol),
    ("run", run),
];
/// Between `run.toml` and `events.jsonl` in one file.
const BETWEEN: &[u8] = b"----\n";
/// What `export` writes of a run without a checkpoint.
const FORMATS: [Format; 6] =
    [Format::Json, Format::Markdown, Format::Csv, Format::Jsonl, Format::Svg, Format::Html];

/// A folder that is gone with its value.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

/// A configuration file, and the same text as one `--set` a line.
pub(crate) fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let resolved = Layers::new().with_toml(&text, "a file").and_then(|layers| layers.resolve());
    if let Ok(resolved) = resolved {
        drop(ledger::all(&resolved.config));
        let toml = resolved.config.to_toml().expect("a resolved configuration has a TOML form");
        let again = Layers::new().with_toml(&toml, "the same").and_then(|layers| layers.resolve());
        assert_eq!(again.map(|again| again.config), Ok(resolved.config));
    }
    for line in text.lines().take(64) {
        drop(Layers::new().with_assignment(line).and_then(|layers| layers.resolve()));
    }
}

/// A record: line by line, as a file, and what its events add up to.
pub(crate) fn events(bytes: &[u8]) {
    let scratch = Scratch::new();
    let mut tail = Tail::at(&scratch.file("events.jsonl", bytes));
    let newer = |line| matches!(tail::parse(line), Line::Newer(_));
    if bytes.split(|&byte| byte == b'\n').any(newer) {
        // Refused with a sentence.
        let _ = tail.poll();
        return;
    }
    let events = tail.poll().expect("a record of any bytes is read");
    let (mut record, mut view) = (Record::default(), RunView::default());
    let mut lines = (0, 0);
    let complete = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    for line in bytes[..complete].split(|&byte| byte == b'\n') {
        match tail::parse(line) {
            Line::Event(event) => {
                lines.0 += 1;
                view.apply(&event);
                record.take(event);
            }
            Line::Unknown | Line::Corrupt => lines.1 += 1,
            Line::Empty | Line::Newer(_) => {}
        }
    }
    assert_eq!((events.len(), tail.skipped()), lines, "what is not read is counted");
    let finish = Finish::so_far(&record);
    if let Some(summary) = build(&record, finish) {
        drop(serde_json::to_vec(&summary));
    }
    let _ = (view.eta(), view.status(true));
}

/// `checkpoint.json`.
pub(crate) fn checkpoint(bytes: &[u8]) {
    drop(serde_json::from_slice::<CheckpointInfo>(bytes));
}

/// The header of a safetensors file, by both of its readers, and the numbers behind it.
pub(crate) fn safetensors(bytes: &[u8]) {
    let scratch = Scratch::new();
    let path = scratch.file("model.safetensors", bytes);
    drop(Source::open(&path).map_err(|error| error.to_string()));
    if let Ok(file) = TensorFile::open(&path) {
        for name in file.names() {
            drop(file.each(&name, |_| {}));
        }
    }
}

/// A file of `torch.save`.
pub(crate) fn torch(bytes: &[u8]) {
    let scratch = Scratch::new();
    weights(&scratch.file("model.bin", bytes));
}

/// A pickle in an archive that is otherwise as it should be.
pub(crate) fn pickle(bytes: &[u8]) {
    use std::io::Write;
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let files: [(&str, &[u8]); 3] =
        [("m/data.pkl", bytes), ("m/byteorder", b"little"), ("m/data/0", &[0; 64])];
    for (name, content) in files {
        archive.start_file(name, stored).expect("a file in an archive");
        archive.write_all(content).expect("a file in an archive");
    }
    torch(archive.finish().expect("an archive").get_ref());
}

fn weights(path: &Path) {
    if let Ok(source) = Source::open(path) {
        let _ = source.names().count();
    }
}

/// A `tokenizer.json`, and a text through it.
pub(crate) fn tokenizer(bytes: &[u8]) {
    let scratch = Scratch::new();
    let tokenizer = scratch.file("tokenizer.json", bytes);
    let text = scratch.file(
        "text.txt",
        "The sun sets. The moon rises, and rises again.\n\u{e9}\u{4e2d}\n".repeat(8).as_bytes(),
    );
    let set = [
        format!("data.tokenizer={}", tokenizer.display()),
        format!("data.path={}", text.display()),
        "train.seq_len=8".to_owned(),
    ];
    let resolved = Layers::new().with_assignments(set).and_then(|layers| layers.resolve());
    drop(resolved.map(|resolved| Dataset::open(&resolved.config)));
}

/// Lines of the control socket, both ways, and what is printed as JSON.
pub(crate) fn protocol(bytes: &[u8]) {
    let (mut reader, mut line) = (Cursor::new(bytes), Vec::new());
    while bounded::line(&mut reader, 4096, &mut line).is_ok_and(|more| more) {
        if let Ok(request) = serde_json::from_slice::<Request>(&line) {
            let again = serde_json::to_string(&request).expect("a request has a JSON form");
            assert_eq!(serde_json::from_str::<Request>(&again).ok(), Some(request));
        }
        drop(serde_json::from_slice::<Command>(&line));
        drop(serde_json::from_slice::<Reply>(&line));
        drop(serde_json::from_slice::<Summary>(&line));
        drop(serde_json::from_slice::<StateReport>(&line));
        drop(serde_json::from_slice::<Event>(&line));
    }
}

/// A run's folder that a stranger made: listed, shown, exported, compared and drawn.
pub(crate) fn run(bytes: &[u8]) {
    let scratch = Scratch::new();
    let folder = scratch.0.path().join("runs/20260101T000000Z-strange");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let parts = bytes.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (toml, events) = parts.map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + BETWEEN.len()..]));
    std::fs::write(folder.join("run.toml"), toml).expect("a temporary file");
    if !events.is_empty() {
        std::fs::write(folder.join("events.jsonl"), events).expect("a temporary file");
    }
    let home = Home::at(scratch.0.path());
    let run = RunDir::open(&folder).expect("a run");
    assert_eq!(list(&home).expect("a list").len(), 1);
    if let Ok(standing) = Standing::read(&run) {
        drop(standing.json());
        for format in FORMATS {
            drop(export::write(&run, format, &mut std::io::sink(), &mut |_, _| {}));
        }
        drop(export::tensorboard::write(&run, scratch.0.path(), &mut |_, _| {}));
        drop(compare(&[run.clone(), run.clone()]));
    }
    let launch = Launch::new(home, Start::Watch(run), Layers::new());
    for screen in Screen::ALL {
        drop(picture::frame(&launch, Some(screen), picture::Kind::Text, (100, 30)));
    }
}
