//! Names and notes that a person gives a run after it was made.

use crate::support::Sandbox;

#[test]
fn a_run_is_renamed_and_noted_and_every_reader_knows() {
    let sandbox = Sandbox::new();
    sandbox.train("first", &["train.max_updates=3", "schedule.warmup_updates=0"]);
    let said = |arguments: &[&str]| {
        let output = sandbox.run(arguments);
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code().unwrap(), told)
    };
    let (code, told) = said(&["rename", "latest", "baseline"]);
    assert!(code == 0 && told.contains("first is now called baseline"), "{told}");
    let (code, told) = said(&["rename", "latest", "latest"]);
    assert!(code == 2 && told.contains("stands for the newest run"), "{told}");
    assert_eq!(said(&["note", "baseline", "before the new data"]).0, 0);
    assert_eq!(said(&["note", "baseline"]), (0, "before the new data\n".into()));
    assert_eq!(said(&["show", "first"]).0, 2, "it is not called that any more");
    for command in [&["show", "baseline"][..], &["list"]] {
        let (_, told) = said(command);
        assert!(told.contains("baseline") && told.contains("before the new data"), "{command:?}: {told}");
    }
    for format in ["md", "html", "json"] {
        let (_, told) = said(&["export", "baseline", "--format", format]);
        assert!(told.contains("baseline") && told.contains("before the new data"), "{format}: {told}");
    }
    assert!(said(&["export", "baseline", "--format", "svg"]).1.contains("<title>baseline</title>"));
    assert_eq!(said(&["note", "baseline", ""]).0, 0);
    assert!(said(&["note", "baseline"]).1.contains("there is no note"));
}

#[test]
fn a_run_without_a_checkpoint_is_refused_with_the_reason() {
    let sandbox = Sandbox::new();
    sandbox.train("base", &["train.max_updates=3", "schedule.warmup_updates=0"]);
    std::fs::remove_dir_all(sandbox.runs()[0].join("checkpoints")).unwrap();
    for arguments in [&["fork", "base", "--headless"][..], &["export", "base", "--format", "safetensors"]] {
        let output = sandbox.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains("has no checkpoint: "), "{told}");
    }
}
