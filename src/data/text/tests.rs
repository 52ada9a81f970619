use std::{fs, path::PathBuf};

use tempfile::{TempDir, tempdir};

use super::*;
use crate::data::{
    text::unpack::tests::{gzip, zstd},
    tokenizer::TokenizerText,
};

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// All is trained on; nothing is kept unless `limits` ask for it.
fn wanted<'a>(path: &'a Path, tokenizer: &'a Choice, fraction: f64) -> Wanted<'a> {
    Wanted { path, field: "text", tokenizer, fraction, vocab_size: 100_000 }
}

fn open_at(path: &Path) -> Result<Opened, DataError> {
    open(&wanted(path, &Choice::Bytes, 0.0), None, Limits::default(), &mut |_| ())
}

fn bytes(tokens: &Tokens) -> Vec<u8> {
    tokens.ids(0..usize::MAX).unwrap().into_iter().map(|id| id as u8).collect()
}

fn counts(report: &DataReport) -> Vec<(&str, u64)> {
    report.left_out.iter().map(|(reason, count)| (&**reason, *count)).collect()
}

#[test]
fn a_folder_is_read_in_the_order_of_names_and_the_rest_is_counted() {
    let folder = folder(&[
        ("b.txt", b"bee"),
        ("a/z.md", b"zed"),
        ("a/A.RS", b"fn"),
        ("c.bin", b"x"),
        ("d.png", b"x"),
        ("e.txt", b""),
        ("f.txt", b"ab\n\xff"),
        ("g.txt", b"a\0b"),
        ("h.csv", b"title\nx\n"),
        ("i.jsonl", b"{\"text\": \"i\"}\n{\"text\": \"\"}\n{\"text\": \"j\"}\n"),
        ("k.csv", b"n;text\n1;so\n"),
        (".git/config.txt", b"x"),
        (".hidden.txt", b"x"),
    ]);
    let opened = open_at(folder.path()).unwrap();
    assert_eq!(bytes(&opened.train), b"fn\0zed\0bee\0i\0j\0");
    let report = &opened.report;
    assert_eq!((report.documents, report.bytes), (5, 10));
    let expected = [
        ("binary (NUL byte)", 1),
        ("empty", 1),
        ("hidden file", 1),
        ("hidden folder", 1),
        ("not UTF-8", 1),
        ("other extension", 2),
        ("rows without `text` (data.field)", 1),
        ("rows without text", 1),
        ("tables parted by semicolons (a .csv is read with commas and a .tsv with tabs)", 1),
    ];
    assert_eq!(counts(report), expected);
    let named = [
        ".git: hidden folder",
        ".hidden.txt: hidden file",
        "c.bin: other extension",
        "d.png: other extension",
        "e.txt: empty",
        "f.txt at byte 3 (line 2): not UTF-8",
        "g.txt at byte 1 (line 1): binary (NUL byte)",
        "h.csv: rows without `text` (data.field)",
        "k.csv: tables parted by semicolons (a .csv is read with commas and a .tsv with tabs)",
    ];
    assert_eq!(report.left_out_named, named);
}

#[test]
fn links_neither_loop_nor_repeat() {
    use std::os::unix::fs::symlink;
    let folder = folder(&[("a/one.txt", b"one")]);
    symlink(folder.path(), folder.path().join("a/up")).unwrap();
    symlink(folder.path().join("a/one.txt"), folder.path().join("b.txt")).unwrap();
    symlink("itself", folder.path().join("itself")).unwrap();
    symlink("nothing.txt", folder.path().join("gone.txt")).unwrap();
    let opened = open_at(folder.path()).unwrap();
    assert_eq!(bytes(&opened.train), b"one\0");
    let expected = [
        ("link that leads nowhere", 2),
        ("link to a file already read", 1),
        ("link to a folder already read", 1),
    ];
    assert_eq!(counts(&opened.report), expected);
    assert!(opened.report.left_out_named.contains(&"itself: link that leads nowhere".to_owned()));
}

#[test]
fn a_single_file_is_read_whatever_its_name() {
    let folder = folder(&[("notes", b"hello"), ("a.rows.gz", &gzip(b"packed"))]);
    assert_eq!(bytes(&open_at(&folder.path().join("notes")).unwrap().train), b"hello\0");
    assert_eq!(bytes(&open_at(&folder.path().join("a.rows.gz")).unwrap().train), b"packed\0");
}

#[test]
fn faults_of_a_single_file_name_the_place_and_the_remedy() {
    let folder = folder(&[
        ("latin.txt", b"one\ntwo\ncaf\xe9"),
        ("nul", b"a\n\0"),
        ("empty.txt", b""),
        ("no.jsonl", b"\n{\"text\": \"\"}\n"),
        ("early.txt.gz", &gzip(&[b'a'; 99])[..20]),
    ]);
    let message = |name: &str| open_at(&folder.path().join(name)).unwrap_err().to_string();
    let latin = message("latin.txt");
    assert!(
        latin.contains("latin.txt is not UTF-8 at byte 11 (line 3)") && latin.contains("iconv"),
        "{latin}"
    );
    let nul = message("nul");
    assert!(nul.contains("NUL byte at byte 2 (line 2)"), "{nul}");
    assert!(message("empty.txt").contains("empty.txt is empty"));
    assert!(message("missing.txt").contains("missing.txt does not exist"));
    let no = message("no.jsonl");
    assert!(no.contains("no row of") && no.contains("`text`"), "{no}");
    let early = message("early.txt.gz");
    assert!(early.contains("early.txt.gz ends early"), "{early}");
}

#[test]
fn a_folder_without_text_says_what_it_has_and_a_damaged_file_in_one_is_no_trifle() {
    let nothing = folder(&[("a.bin", b"x"), ("b.bin", b"x"), ("c.txt", b"")]);
    let message = open_at(nothing.path()).unwrap_err().to_string();
    assert!(message.contains("left out 1 empty, 2 other extension"), "{message}");
    let nothing = open_at(tempdir().unwrap().path()).unwrap_err().to_string();
    assert!(nothing.contains("the folder is empty"), "{nothing}");
    let torn = folder(&[("a.txt", b"text"), ("b.txt.zst", &zstd(b"some more text")[..12])]);
    let message = open_at(torn.path()).unwrap_err().to_string();
    assert!(message.contains("b.txt.zst ends early"), "{message}");
    let wrong = folder(&[("a.txt", b"text"), ("b.jsonl", b"{\"text\": \"a\"}\n{\"text\": 1}\n")]);
    let message = open_at(wrong.path()).unwrap_err().to_string();
    assert!(message.contains("b.jsonl, line 2"), "{message}");
}

/// Some texts of several kinds, packed and not.
fn mixed() -> TempDir {
    let line =
        |number: u32| format!("The {} moon rose over é {number}\n", number.wrapping_mul(2_654_435_761) % 977);
    let text: String = (0..3000).map(line).collect();
    let rows: String = (0..500)
        .map(|number| serde_json::json!({"text": line(number), "n": number}).to_string() + "\n")
        .collect();
    folder(&[
        ("a.txt", text.as_bytes()),
        ("b.jsonl.gz", &gzip(rows.as_bytes())),
        ("c/d.md.zst", &zstd(text.as_bytes())),
        ("e.txt", b"\xff"),
    ])
}

struct Kept {
    _folder: TempDir,
    store: Store,
    limits: Limits,
}

fn store() -> Kept {
    let folder = tempdir().unwrap();
    let store = Store::at(folder.path().join("cache"), 1 << 30);
    Kept { _folder: folder, store, limits: ALWAYS }
}

const ALWAYS: Limits = Limits { in_memory: 1000, kept_from: 0, moment: 3600 };

/// How far it was told to be, for each stage.
fn stages(path: &Path, choice: &Choice, fraction: f64, kept: &Kept) -> (Opened, Vec<Stage>) {
    let mut stages: Vec<Stage> = Vec::new();
    let opened = open(&wanted(path, choice, fraction), Some(&kept.store), kept.limits, &mut |progress| {
        assert!(progress.percent() <= 100);
        if stages.last() != Some(&progress.stage) {
            stages.push(progress.stage);
        }
    });
    (opened.unwrap(), stages)
}

#[test]
fn a_text_on_the_disk_is_the_text_in_memory() {
    let (texts, (_guard, _)) = (mixed(), crate::data::tokenizer::tests::wordpiece());
    let file =
        Choice::File(TokenizerText::read(_guard.path().join("tokenizer.json").to_str().unwrap()).unwrap());
    for choice in [Choice::Bytes, file, Choice::Bpe(300)] {
        // Many documents, and one.
        for path in [texts.path().to_owned(), texts.path().join("a.txt")] {
            let kept = store();
            let (disk, told) = stages(&path, &choice, 0.1, &kept);
            assert!(told.starts_with(&[Stage::Reading]) && told.ends_with(&[Stage::Tokenizing]), "{told:?}");
            let memory = open(&wanted(&path, &choice, 0.1), None, Limits::default(), &mut |_| ()).unwrap();
            let all = |tokens: &Tokens| tokens.ids(0..usize::MAX).unwrap();
            assert_eq!(all(&disk.train), all(&memory.train), "{choice:?}");
            assert_eq!(all(&disk.validation), all(&memory.validation), "{choice:?}");
            assert_eq!(disk.report, memory.report);
            assert!(disk.validation.len() > 100 && disk.train.vocabulary() == memory.train.vocabulary());
        }
    }
}

#[test]
fn what_was_made_before_is_found_by_content() {
    let (texts, kept) = (mixed(), store());
    let (first, _) = stages(texts.path(), &Choice::Bpe(300), 0.1, &kept);
    // Read again, for the files are too young to be trusted, and not tokenized again.
    let (second, told) = stages(texts.path(), &Choice::Bpe(300), 0.1, &kept);
    assert_eq!(told, [Stage::Reading]);
    assert_eq!((bytes(&first.train), &first.report), (bytes(&second.train), &second.report));
    // The same content elsewhere.
    let other = mixed();
    assert_eq!(stages(other.path(), &Choice::Bpe(300), 0.1, &kept).1, [Stage::Reading]);
    // Another tokenizer, another split, another text.
    let all = [Stage::Reading, Stage::Learning, Stage::Tokenizing];
    assert_eq!(stages(texts.path(), &Choice::Bpe(301), 0.1, &kept).1, all);
    assert_eq!(stages(texts.path(), &Choice::Bpe(300), 0.2, &kept).1, all);
    fs::write(texts.path().join("a.txt"), "another text").unwrap();
    assert_eq!(stages(texts.path(), &Choice::Bpe(300), 0.1, &kept).1, all);
}

#[test]
fn files_that_have_not_changed_are_not_even_read() {
    let (texts, mut kept) = (mixed(), store());
    let (first, _) = stages(texts.path(), &Choice::Bytes, 0.1, &kept);
    // As if they were older than a moment.
    kept.limits.moment = -3600;
    assert_eq!(stages(texts.path(), &Choice::Bytes, 0.1, &kept).1, [Stage::Reading]);
    let (second, told) = stages(texts.path(), &Choice::Bytes, 0.1, &kept);
    assert!(told.is_empty(), "{told:?}");
    assert_eq!((bytes(&first.train), &first.report), (bytes(&second.train), &second.report));
    fs::write(texts.path().join("a.txt"), "another text").unwrap();
    assert_eq!(stages(texts.path(), &Choice::Bytes, 0.1, &kept).1, [Stage::Reading, Stage::Tokenizing]);
}

#[test]
fn what_is_torn_is_made_anew() {
    let (texts, kept) = (mixed(), store());
    let (first, _) = stages(texts.path(), &Choice::Bytes, 0.0, &kept);
    let folders: Vec<PathBuf> = fs::read_dir(kept.store.folder().join("tokens"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(folders.len(), 1);
    fs::write(folders[0].join("train"), "torn").unwrap();
    let (second, told) = stages(texts.path(), &Choice::Bytes, 0.0, &kept);
    assert_eq!(told, [Stage::Reading, Stage::Tokenizing]);
    assert_eq!(bytes(&second.train), {
        let memory =
            open(&wanted(texts.path(), &Choice::Bytes, 0.0), None, Limits::default(), &mut |_| ()).unwrap();
        bytes(&memory.train)
    });
    // The same file lay under the first.
    assert!(first.train.ids(0..9).is_err());
}

#[test]
fn a_folder_that_cannot_be_written_matters_to_long_texts_alone() {
    let (texts, blocked) = (mixed(), tempdir().unwrap());
    fs::write(blocked.path().join("cache"), "a file").unwrap();
    let store = Store::at(blocked.path().join("cache"), 1);
    let with = |limits: Limits| {
        open(&wanted(texts.path(), &Choice::Bpe(300), 0.1), Some(&store), limits, &mut |_| ())
    };
    assert!(with(Limits { in_memory: 1 << 20, ..ALWAYS }).is_ok());
    let message = with(ALWAYS).unwrap_err().to_string();
    assert!(message.contains("cache") && message.contains("TUI_TRAIN_HOME"), "{message}");
    let nowhere = open(&wanted(texts.path(), &Choice::Bytes, 0.1), None, ALWAYS, &mut |_| ());
    assert!(nowhere.unwrap_err().to_string().contains("TUI_TRAIN_HOME"));
}

#[test]
fn a_vocabulary_that_does_not_fit_is_told_whether_it_was_kept_or_not() {
    let (texts, kept) = (mixed(), store());
    let text = texts.path().join("a.txt");
    for _ in 0..2 {
        let mut wanted = wanted(&text, &Choice::Bpe(300), 0.0);
        wanted.vocab_size = 290;
        let message = open(&wanted, Some(&kept.store), ALWAYS, &mut |_| ()).unwrap_err().to_string();
        assert!(
            message.contains("bpe:300 has 300 tokens") && message.contains("set model.vocab_size = 300"),
            "{message}"
        );
        wanted.vocab_size = 300;
        assert!(open(&wanted, Some(&kept.store), ALWAYS, &mut |_| ()).is_ok());
    }
}

#[test]
fn tokens_that_are_lost_while_they_are_in_use_end_the_data_with_a_reason() {
    let (texts, kept) = (mixed(), store());
    let path = format!("data.path={}", texts.path().display());
    let layers = crate::config::Layers::new().with_assignments(["train.seq_len=16", &path]).unwrap();
    let config = layers.resolve().unwrap().config;
    let dataset = super::super::Dataset::open_with(&config, Some(&kept.store), ALWAYS, &mut |_| ()).unwrap();
    let mut windows = super::super::Windows::new(dataset.clone(), &config, Default::default()).unwrap();
    assert!(windows.next_window().is_some() && dataset.fault().is_ok());
    let tokens = fs::read_dir(kept.store.folder().join("tokens")).unwrap().next().unwrap().unwrap().path();
    for part in ["train", "validation"] {
        fs::File::options().write(true).open(tokens.join(part)).unwrap().set_len(3).unwrap();
    }
    assert!(windows.next_window().is_none());
    assert_eq!(dataset.validation_batches(4, 9).count(), 0);
    let message = dataset.fault().unwrap_err().to_string();
    assert!(message.contains("can no longer be read") && message.contains("made anew"), "{message}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_and_rows_of_other_kinds_are_the_same_text() {
    use crate::data::parquet::tests::{Given, written};

    let words: Vec<String> = (0..2000).map(|row| format!("The moon rose over hill {row}.")).collect();
    let texts: Vec<Option<&str>> =
        words.iter().enumerate().map(|(row, text)| (row % 10 > 0).then_some(&**text)).collect();
    let lines: String = texts
        .iter()
        .map(|text| serde_json::json!({"text": text.unwrap_or_default()}).to_string() + "\n")
        .collect();
    let table = written(&[("text", Given::Texts(&texts))], 1);
    let (tables, rows) = (folder(&[("a.parquet", &table)]), folder(&[("a.jsonl", lines.as_bytes())]));
    for choice in [Choice::Bytes, Choice::Bpe(300)] {
        let kept = store();
        let open = |folder: &TempDir| stages(folder.path(), &choice, 0.1, &kept);
        let ((columnar, told), (lined, _)) = (open(&tables), open(&rows));
        let all = |tokens: &Tokens| tokens.ids(0..usize::MAX).unwrap();
        assert_eq!(all(&columnar.train), all(&lined.train));
        assert_eq!(all(&columnar.validation), all(&lined.validation));
        assert_eq!(counts(&columnar.report), [("rows without text", 200)]);
        assert_eq!(DataReport { source: lined.report.source.clone(), ..columnar.report }, lined.report);
        assert!(told.starts_with(&[Stage::Reading]), "{told:?}");
    }
    let mixed = folder(&[
        ("a.txt", b"text"),
        ("b.parquet", &written(&[("body", Given::Texts(&texts))], 1)),
        ("c.parquet.gz", b"x"),
    ]);
    let expected = [("packed Parquet", 1), ("rows without `text` (data.field)", 1)];
    assert_eq!(counts(&open_at(mixed.path()).unwrap().report), expected);
    fs::write(mixed.path().join("d.parquet"), &table[..99]).unwrap();
    let message = open_at(mixed.path()).unwrap_err().to_string();
    assert!(message.contains("d.parquet ends early"), "{message}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn tables_that_need_another_build_are_counted_and_named() {
    let folder = folder(&[("a.txt", b"text"), ("b.parquet", b"PAR1"), ("c.parquet.gz", b"x")]);
    let report = open_at(folder.path()).unwrap().report;
    let expected = [("Parquet, for which this program was built without a reader", 1), ("packed Parquet", 1)];
    assert_eq!(counts(&report), expected);
    assert!(report.left_out_named[0].starts_with("b.parquet: Parquet"), "{:?}", report.left_out_named);
}

#[test]
fn a_text_in_memory_is_not_read_again() {
    let (texts, mut kept) = (mixed(), store());
    kept.limits.in_memory = 1 << 20;
    let path = texts.path().join("a.txt");
    let mut gone = false;
    let opened =
        open(&wanted(&path, &Choice::Bpe(300), 0.1), Some(&kept.store), kept.limits, &mut |progress| {
            if progress.stage == Stage::Learning && !gone {
                fs::remove_file(&path).unwrap();
                gone = true;
            }
        });
    let opened = opened.unwrap();
    assert!(gone && opened.train.len() > 1000 && opened.validation.len() > 100);
}

#[test]
fn encodings_may_be_mixed_in_a_folder_and_those_that_are_not_utf_8_are_named() {
    let wide = |text: &str| -> Vec<u8> {
        [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let folder = folder(&[
        ("a.txt", "é".as_bytes()),
        ("b.txt", b"caf\xe9 au lait"),
        ("c.txt", &wide("one")),
        ("d.txt", b"two\nthree\n\xf0\x9f\x98"),
        ("e.csv", "\u{feff}text\nfour\n".as_bytes()),
        ("f.csv", b"text\nfive\nna\xefve\n"),
    ]);
    let opened = open_at(folder.path()).unwrap();
    assert_eq!(bytes(&opened.train), "é\0four\0".as_bytes());
    assert_eq!(counts(&opened.report), [("binary (NUL byte)", 1), ("not UTF-8", 3)]);
    let named = [
        "b.txt at byte 3 (line 1): not UTF-8",
        "c.txt at byte 3 (line 1): binary (NUL byte)",
        "d.txt at byte 10 (line 3): not UTF-8",
        "f.csv at byte 12 (line 3): not UTF-8",
    ];
    assert_eq!(opened.report.left_out_named, named);
    let message = open_at(&folder.path().join("c.txt")).unwrap_err().to_string();
    assert!(message.contains("NUL byte at byte 3 (line 1)") && message.contains("UTF-16"), "{message}");
}

#[test]
fn a_folder_of_very_many_small_files_costs_their_names_and_is_told_about_seldom() {
    const FILES: usize = 10_000;
    let folder = tempdir().unwrap();
    for file in 0..FILES {
        if file % 1000 == 0 {
            fs::create_dir(folder.path().join(format!("{:02}", file / 1000))).unwrap();
        }
        let name = format!("{:02}/{file:05}.txt", file / 1000);
        fs::write(folder.path().join(name), if file % 100 == 99 { String::new() } else { file.to_string() })
            .unwrap();
    }
    let (kept, mut told) = (store(), 0);
    let limits = Limits { in_memory: 1000, ..kept.limits };
    let opened =
        open(&wanted(folder.path(), &Choice::Bytes, 0.1), Some(&kept.store), limits, &mut |_| told += 1)
            .unwrap();
    assert_eq!(opened.report.documents, FILES as u64 * 99 / 100);
    assert_eq!(counts(&opened.report), [("empty", FILES as u64 / 100)]);
    assert_eq!(opened.report.left_out_named.len(), 20);
    assert!((2..=4).contains(&told), "{told}");
}
