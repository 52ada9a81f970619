//! A run from a stranger: whatever it says of itself, it does nothing to a terminal.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Sandbox;

/// Title, C1 colour, bell, turned text, a line of its own.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{1b}[2J\u{202e}evil\u{2066}\nrun finished\r";

fn harmful(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Puts the poison behind every text that is free to be one.
fn poison(value: &mut Value, key: &str) {
    match value {
        Value::String(text) if !matches!(key, "type" | "level" | "outcome" | "reason" | "dtype") => {
            text.push_str(EVIL);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| poison(value, key)),
        // Settings are read as settings, and refused when they are none.
        Value::Object(map) => map
            .iter_mut()
            .filter(|(key, _)| !matches!(&***key, "config" | "explicit"))
            .for_each(|(key, value)| poison(value, key)),
        _ => {}
    }
}

/// A run whose record, names and log are poisoned; crashed unless its end is kept.
fn stranger(sandbox: &Sandbox, ended: bool) -> PathBuf {
    let name = if ended { "ended" } else { "crashed" };
    sandbox.train(name, &["train.max_updates=12", "schedule.warmup_updates=0", "log.state_every=5"]);
    let run = sandbox.runs().into_iter().find(|run| run.to_string_lossy().ends_with(name)).unwrap();
    let mut lines: Vec<Value> = std::fs::read_to_string(run.join("events.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let alert = r#"{"type":"alert","update":3,"time":1.0,"level":"warning","message":"hot"}"#;
    lines.insert(2, serde_json::from_str(alert).unwrap());
    let command =
        r#"{"type":"command","id":1,"name":"pause","outcome":"rejected","update":3,"time":1.0,"why":"no"}"#;
    lines.insert(3, serde_json::from_str(command).unwrap());
    if !ended {
        lines.retain(|line| line["type"] != "run_ended");
    }
    lines.iter_mut().for_each(|line| poison(line, ""));
    let record: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(run.join("events.jsonl"), record).unwrap();
    for file in ["meta.json", "checkpoints/00000012/checkpoint.json"] {
        let mut value: Value = serde_json::from_slice(&std::fs::read(run.join(file)).unwrap()).unwrap();
        poison(&mut value, "");
        std::fs::write(run.join(file), value.to_string()).unwrap();
    }
    std::fs::write(run.join("worker.log"), format!("last words {EVIL}")).unwrap();
    let evil = run.with_file_name(format!("20260101T000000Z-{name}{}x", EVIL.replace('/', "")));
    std::fs::rename(&run, &evil).unwrap();
    evil
}

fn harmless(what: &str, text: &str) {
    let found = text.chars().find(|&c| harmful(c));
    assert_eq!(found, None, "{what}: {text:?}");
}

#[test]
fn nothing_a_stranger_wrote_reaches_the_terminal_as_a_command() {
    for ended in [true, false] {
        let sandbox = Sandbox::new();
        let run = stranger(&sandbox, ended);
        sandbox.train("other", &["train.max_updates=12", "schedule.warmup_updates=0"]);
        let path = run.to_str().unwrap();
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["list"],
            vec!["list", "--json"],
            vec!["show", path],
            vec!["show", path, "--json"],
            vec!["inspect", path],
            vec!["inspect", path, "--json"],
            vec!["inspect", path, "--tensor", "nothing*"],
            vec!["compare", path, "other"],
            vec!["compare", path, "other", "--json"],
            vec!["stop", path],
            vec!["show", "no-such-run"],
            vec!["attach", path, "--once", "--size", "200x60", "--screen", "setup"],
            vec!["attach", path, "--once", "--size", "200x60", "--screen", "runs"],
            vec!["attach", path, "--once", "--size", "200x60", "--screen", "state"],
            vec!["attach", path, "--once", "--size", "200x60"],
        ];
        for format in ["json", "md", "csv", "jsonl", "svg", "html", "commands"] {
            commands.push(vec!["export", path, "--format", format]);
        }
        let mut said = String::new();
        for arguments in &commands {
            let output = sandbox.run(arguments);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            harmless(&format!("{arguments:?}"), &text);
            harmless(&format!("{arguments:?}"), &String::from_utf8_lossy(&output.stderr));
            assert!(output.status.code().is_some_and(|code| code != 101), "{arguments:?} panicked");
            said += &text;
        }
        assert!(said.contains("owned"), "the words themselves are shown");
        if !ended {
            assert!(said.contains("last words"), "the log is shown");
        }
    }
}

#[test]
fn a_pipe_or_a_device_in_the_place_of_weights_holds_nobody_up() {
    let sandbox = Sandbox::new();
    sandbox.train("piped", &["train.max_updates=4", "schedule.warmup_updates=0"]);
    let run = sandbox.runs().pop().unwrap();
    let weights = run.join("checkpoints/00000004/model.safetensors");
    for device in [false, true] {
        std::fs::remove_file(&weights).unwrap();
        if device {
            std::os::unix::fs::symlink("/dev/zero", &weights).unwrap();
        } else {
            let path = std::ffi::CString::new(weights.to_str().unwrap()).unwrap();
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }
        let exported = sandbox.path("out.safetensors");
        let exported = exported.to_str().unwrap();
        for arguments in [
            vec!["resume", "piped", "--headless", "--set", "train.max_updates=6"],
            vec!["fork", "piped", "--headless", "--set", "train.max_updates=6"],
            vec!["export", "piped", "--format", "safetensors", "-o", exported],
        ] {
            let output = sandbox.run(&arguments);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
            assert!(said.contains("it is no file"), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_copy_is_spoken_of_as_itself() {
    let sandbox = Sandbox::new();
    sandbox.train("first", &["train.max_updates=4", "schedule.warmup_updates=0"]);
    let run = sandbox.runs().pop().unwrap();
    let record = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let id = run.file_name().unwrap().to_str().unwrap();
    // It had been stopped.
    let stopped = record.replace("\"reason\":\"finished\"", "\"reason\":\"stopped\"");
    let stopped = stopped.replace(
        "\"show_command\"",
        &format!("\"resume_command\":\"tui-train resume {id}\",\"show_command\""),
    );
    std::fs::write(run.join("events.jsonl"), stopped).unwrap();
    let beside = run.with_file_name(format!("{id}-backup"));
    let elsewhere = sandbox.path("else where");
    for copy in [&beside, &elsewhere] {
        let copied = std::process::Command::new("cp").arg("-r").args([&run, copy]).status().unwrap();
        assert!(copied.success());
    }
    let shown = |run: &Path| sandbox.json(&["show", run.to_str().unwrap(), "--json"]);
    let backup = format!("{id}-backup");
    assert_eq!(shown(&run)["resume_command"], format!("tui-train resume {id}"));
    assert_eq!(shown(&beside)["resume_command"], format!("tui-train resume {backup}"));
    assert_eq!(shown(&beside)["run"], backup.as_str());
    let path = std::fs::canonicalize(&elsewhere).unwrap();
    assert_eq!(shown(&elsewhere)["show_command"], format!("tui-train show '{}'", path.display()));
    // Among the runs of another state folder an id would mean the first.
    let other = sandbox.path("other/runs").join(id);
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::rename(&elsewhere, &other).unwrap();
    let path = std::fs::canonicalize(&other).unwrap();
    assert_eq!(shown(&other)["resume_command"], format!("tui-train resume {}", path.display()));
    let listed = sandbox.json(&["list", "--json"]);
    let of =
        |run: &str| listed["runs"].as_array().unwrap().iter().find(|row| row["run"] == run).unwrap().clone();
    assert_eq!(of(&backup)["resume_command"], format!("tui-train resume {backup}"));
}

#[test]
fn a_copied_run_writes_and_removes_nothing_outside_its_folder() {
    let sandbox = Sandbox::new();
    sandbox.train("copied", &["train.max_updates=4", "schedule.warmup_updates=0"]);
    let run = sandbox.runs().pop().unwrap();
    let precious = sandbox.path("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("checkpoint.json"), "{}").unwrap();
    // A checkpoint that is a link, and a record that names one elsewhere.
    std::os::unix::fs::symlink(&precious, run.join("checkpoints/00000001")).unwrap();
    let record = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let elsewhere = record.replace("checkpoints/00000004", "../../../precious");
    assert_ne!(record, elsewhere);
    std::fs::write(run.join("events.jsonl"), elsewhere).unwrap();
    let copied = tui_train::run::RunDir::open(&run).unwrap();
    tui_train::run::checkpoint::prune(&copied, 1, false).unwrap();
    assert!(!run.join("checkpoints/00000001").exists(), "the link is gone");
    assert!(precious.join("checkpoint.json").exists(), "what it pointed at is not");
    for arguments in [vec!["show", "copied"], vec!["inspect", "copied"], vec!["attach", "copied", "--once"]] {
        assert!(sandbox.run(&arguments).status.success(), "{arguments:?}");
    }
    let names = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(names(&precious), 1);
}
