//! Exports as people ask for them, and what stands in their way.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tui_train::run::{RunDir, tensorboard};

use crate::support::Sandbox;

fn trained() -> Sandbox {
    let sandbox = Sandbox::new();
    let more =
        ["train.max_updates=6", "schedule.warmup_updates=0", "log.state_every=3", "log.tensorboard=true"];
    sandbox.train("one", &more);
    sandbox
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The records of the files in a folder, each checked.
fn records(folder: &Path) -> usize {
    let files = names(folder).into_iter().map(|name| fs::read(folder.join(name)).unwrap());
    files.map(|bytes| tensorboard::frame::read(&bytes).unwrap().len()).sum()
}

#[test]
fn every_format_is_a_function_of_the_run_and_says_nothing_else() {
    let sandbox = trained();
    for format in ["csv", "jsonl", "svg", "html"] {
        let printed = sandbox.run(&["export", "one", "--format", format]);
        assert!(printed.status.success(), "{}", said(&printed));
        // Standard error is no terminal here.
        assert_eq!(said(&printed), "", "{format}");
        let target = sandbox.path(&format!("run.{format}"));
        let written = sandbox.run(&["export", "one", "--format", format, "-o", target.to_str().unwrap()]);
        assert!(written.status.success() && written.stdout.is_empty(), "{}", said(&written));
        assert!(said(&written).starts_with("wrote "), "{}", said(&written));
        assert_eq!(fs::read(&target).unwrap(), printed.stdout, "{format}");
    }
    let page = fs::read_to_string(sandbox.path("run.html")).unwrap();
    roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
    roxmltree::Document::parse(&fs::read_to_string(sandbox.path("run.svg")).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(sandbox.path("run.jsonl")).unwrap().lines().count(), 6);

    let run = RunDir::open(&sandbox.runs()[0]).unwrap();
    let output = sandbox.run(&["export", "one", "--format", "tensorboard"]);
    assert!(output.status.success() && said(&output).contains("tensorboard --logdir"), "{}", said(&output));
    let exported = sandbox.path("one-tensorboard");
    // Both have the version, the settings, the updates, the end and the histograms.
    assert!(records(&exported) > 20 && records(&run.tensorboard()) > 20);
    assert_eq!(names(&exported).len(), 1);
}

#[test]
fn what_stands_there_is_replaced_only_when_asked() {
    let sandbox = trained();
    let target = sandbox.file("taken.csv", "mine");
    let export = |more: &[&str]| {
        sandbox.run(&[&["export", "one", "--format", "csv", "-o", target.as_str()], more].concat())
    };
    let refused = export(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("taken.csv exists already") && said(&refused).contains("--force"));
    assert_eq!(said(&refused).lines().count(), 1);
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    assert!(export(&["--force"]).status.success());
    assert!(fs::read_to_string(&target).unwrap().starts_with("update,"));

    for format in ["tensorboard", "safetensors"] {
        let board = |more: &[&str]| sandbox.run(&[&["export", "one", "--format", format], more].concat());
        assert!(board(&[]).status.success());
        let taken = board(&[]);
        assert!(
            taken.status.code() == Some(2) && said(&taken).contains("exists already"),
            "{}",
            said(&taken)
        );
        assert!(board(&["--force"]).status.success());
        let folder = sandbox.path(&format!("one-{format}"));
        fs::write(folder.join("precious"), "mine").unwrap();
        let kept = board(&["--force"]);
        assert!(kept.status.code() == Some(2) && said(&kept).contains("holds precious"), "{}", said(&kept));
        assert!(names(&folder).len() > 1, "{format}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told_in_a_sentence() {
    let sandbox = trained();
    let closed = sandbox.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    // Whoever may write anywhere may not write there.
    let closed =
        if fs::write(closed.join("try"), "x").is_ok() { Path::new("/sys").to_owned() } else { closed };
    let own = sandbox.runs()[0].join("events.jsonl");
    let record = fs::read(&own).unwrap();
    let refused = sandbox.run(&["export", "one", "--format", "csv", "--force", "-o", own.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("belongs to the run itself"), "{}", said(&refused));
    assert_eq!(fs::read(&own).unwrap(), record);
    for (format, target, words) in [
        ("csv", sandbox.path(""), "is a folder: name a file in it"),
        ("html", closed.join("run.html"), "name another place with -o"),
        ("tensorboard", closed.join("board"), "name another place with -o"),
        ("svg", sandbox.path("no/such/run.svg"), "make its folder first"),
        ("jsonl", PathBuf::from("/dev/full"), "make room"),
    ] {
        let output = sandbox.run(&["export", "one", "--format", format, "-o", target.to_str().unwrap()]);
        let told = said(&output);
        assert!(output.status.code().is_some_and(|code| code == 1 || code == 2), "{format}: {told}");
        assert!(told.contains(words) && told.lines().count() == 1, "{format}: {told}");
        if format != "csv" {
            assert!(
                told.contains("cannot write") && told.contains(target.to_str().unwrap()),
                "{format}: {told}"
            );
        }
    }
}

#[test]
fn a_disk_that_fills_midway_is_left_as_it_was() {
    let sandbox = trained();
    let place = sandbox.path("place");
    fs::create_dir(&place).unwrap();
    for format in ["csv", "jsonl", "md", "json", "svg", "html", "tensorboard", "safetensors"] {
        let export = sandbox.command(&["export", "one", "--format", format, "-o", "place/out"]);
        // No file may be larger than 512 B: what is written fails midway, as on a full disk.
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"").arg(export.get_program());
        shell.args(export.get_args()).current_dir(sandbox.path(""));
        for (name, value) in export.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let output = shell.process_group(0).output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{format}: {told}");
        assert!(told.contains("cannot write place/out") && told.lines().count() == 1, "{format}: {told}");
        assert!(names(&place).is_empty(), "{format}: {:?}", names(&place));
    }
}

#[test]
fn completions_and_manual_pages_are_made_of_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = sandbox.run(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && script.contains("export") && script.contains("tensorboard"),
            "{shell}"
        );
        if shell == "bash" {
            let checked =
                Command::new("bash").args(["-n", &sandbox.file("script", &script)]).output().unwrap();
            assert!(checked.status.success(), "{}", said(&checked));
        }
    }
    let page = sandbox.run(&["man"]);
    let text = String::from_utf8_lossy(&page.stdout).into_owned();
    assert!(page.status.success() && text.contains(".TH") && text.contains("export"), "{text}");
    let page = String::from_utf8(sandbox.run(&["man", "export"]).stdout).unwrap();
    assert!(page.contains("tui\\-train\\-export") && page.contains("tensorboard"), "{page}");
    let unknown = sandbox.run(&["man", "dance"]);
    assert!(unknown.status.code() == Some(2) && said(&unknown).contains("there is no command `dance`"));
    fs::create_dir(sandbox.path("man1")).unwrap();
    assert!(sandbox.run(&["man", "-o", "man1"]).status.success());
    let pages = names(&sandbox.path("man1"));
    assert!(
        pages.contains(&"tui-train.1".to_owned()) && pages.contains(&"tui-train-export.1".to_owned()),
        "{pages:?}"
    );
    let help = String::from_utf8(sandbox.run(&["export", "--help"]).stdout).unwrap();
    assert!(help.contains("Examples:"), "{help}");
}
