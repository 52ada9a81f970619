//! `tui-train check`: the real binary, what it prints and how it ends.

use crate::support::{SMALL, Sandbox};

fn arguments<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["check", "accumulation"];
    for setting in SMALL.iter().chain(settings) {
        arguments.extend(["--set", *setting]);
    }
    arguments
}

#[test]
fn accumulation_holds_and_says_by_how_much() {
    let sandbox = Sandbox::new();
    let mut wanted = arguments(&["train.accumulate=3"]);
    wanted.push("--json");
    let found = sandbox.json(&wanted);
    assert_eq!((&found["schema"], &found["holds"]), (&1.into(), &true.into()));
    assert_eq!((&found["rows"], &found["targets"]), (&6.into(), &(6 * 16).into()));
    let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("no {key} in {found}"));
    assert!(number("largest_difference") <= number("tolerance"));
    assert!(number("tolerance") < 1e-3 * number("largest_gradient"));
    assert!(number("naive_largest_difference") <= number("tolerance"), "equal micro-batches: {found}");
    for pair in ["loss", "grad_norm"] {
        let both: Vec<f64> = found[pair].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert!(both.len() == 2 && (both[0] - both[1]).abs() < 1e-4, "{pair}: {both:?}");
    }
    let worst = found["worst"].as_array().unwrap();
    assert_eq!(worst.len(), 5);
    assert!(worst[0]["name"].as_str().unwrap().contains("weight"));
    assert_eq!(worst[0]["difference"], found["largest_difference"]);
    assert!(sandbox.runs().is_empty(), "a check is no run");
}

#[test]
fn a_file_of_settings_and_a_text_of_unequal_sequences() {
    let sandbox = Sandbox::new();
    sandbox.file("text.txt", "The quick brown fox jumps over the lazy dog, and then it does so again.");
    let file = sandbox.file(
        "check.toml",
        "[data]\npath = \"text.txt\"\nvalidation_fraction = 0.0\n[train]\nepochs = 1\nseq_len = 16\n\
         [schedule]\nwarmup_updates = 0\n",
    );
    let output = sandbox.run(&["check", "accumulation", &file]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 x 5") && text.contains("5 x 1") && text.contains("71 targets"), "{text}");
    assert!(text.contains("means would be off by"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("holds"), "{text}");
}

#[test]
fn what_cannot_be_checked_is_refused_in_one_sentence() {
    let sandbox = Sandbox::new();
    for (setting, word) in [
        ("train.accumulate=0", "from 1 to 4096"),
        ("train.acumulate=2", "did you mean `train.accumulate`?"),
        ("data.path=/nowhere.txt", "/nowhere.txt"),
        ("model.preset=gpt2-124m", "planned"),
    ] {
        let output = sandbox.run(&["check", "accumulation", "--set", setting]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{setting}: {message}");
        assert!(output.stdout.is_empty() && message.contains(word), "{setting}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "one sentence: {message}");
    }
}

#[test]
fn a_classification_is_checked_without_its_dropout() {
    let sandbox = Sandbox::new();
    let arguments = [
        "check",
        "accumulation",
        "--json",
        "--set",
        "model.preset=distilbert-nano",
        "--set",
        "train.micro_batch=2",
        "--set",
        "train.accumulate=2",
    ];
    let found = sandbox.json(&arguments);
    assert_eq!((&found["holds"], &found["rows"], &found["targets"]), (&true.into(), &4.into(), &4.into()));
    assert!(found["notes"][0].as_str().unwrap().contains("dropout"), "{found}");
}
