//! A run that asks for more memory than it can have.

use std::process::Command;

use crate::support::{Sandbox, device_name};

/// One layer asks for 512 GiB at once.
const LARGE: [&str; 8] = [
    "model.hidden_size=8",
    "model.intermediate_size=1048576",
    "model.num_attention_heads=1",
    "model.num_key_value_heads=1",
    "model.num_hidden_layers=1",
    "train.seq_len=128",
    "train.micro_batch=1024",
    "train.max_updates=40",
];

#[test]
fn a_batch_that_is_too_large_ends_the_run_with_a_reason_and_not_the_next_one() {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["run", "--headless", "--name", "large"];
    arguments.extend(LARGE.iter().flat_map(|setting| ["--set", setting]));
    let program = sandbox.command(&arguments);
    // A machine that promises more memory than it has would not refuse: 300 GB of addresses for all that this starts.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 300000000 && exec \"$0\" \"$@\""]);
    limited.arg(program.get_program()).args(program.get_args());
    limited.current_dir(program.get_current_dir().unwrap());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let output = limited.output().unwrap();
    let told =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    // What is advised keeps the effective batch, fits into this machine as far as can be estimated, and is not what ran out.
    assert!(told.contains("keeps the effective batch of 1024"), "{told}");
    let command =
        told.lines().find(|line| line.contains("tui-train run ")).unwrap_or_else(|| panic!("{told}"));
    assert!(command.contains("--name large") && !told.contains("tui-train resume"), "{told}");
    let settings: Vec<&str> =
        command.split_whitespace().filter(|word| word.contains('.') && word.contains('=')).collect();
    assert!(settings.iter().all(|word| *word != "train.micro_batch=1024"), "{settings:?}");
    let mut plan = vec!["plan", "--json"];
    plan.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let plan = sandbox.json(&plan);
    let plan = plan["optimizers"].as_array().unwrap().iter().find(|plan| plan["name"] == "adamw").unwrap();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kilobytes: u64 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(plan["total_bytes_estimated"].as_u64().unwrap() < kilobytes * 1024, "{plan} in {memory}");
    let run = sandbox.json(&["show", "large", "--json"]);
    if device_name() == "flex" {
        // Rust's own allocation ends the process.
        let log = std::fs::read_to_string(sandbox.runs()[0].join("worker.log")).unwrap();
        assert!(log.contains("memory allocation of 549755813888 bytes failed"), "{log}");
        sandbox.wait_for_list("the crash", |runs| runs[0]["state"] == "crashed");
    } else {
        assert_eq!(run["reason"], "out_of_memory", "{run}");
        assert!(told.contains("512 GiB were asked for"), "{told}");
    }
    let events = sandbox.train("next", &["train.max_updates=3", "schedule.warmup_updates=0"]);
    assert_eq!(events.last().unwrap()["reason"], "finished");
}
