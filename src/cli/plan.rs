//! `tui-train plan`: the ledger for every optimizer, without training.

use serde::Serialize;
use serde_json::json;

use super::{output, progress::Waiting, settings::Settings};
use crate::{
    config::{Config, DeviceName, Task},
    ledger,
    protocol::{Ledger, SCHEMA},
    run::{
        libtorch::{self, Chosen, LibtorchError},
        table::Table,
        text::{bytes, count, dash},
    },
};

/// The configuration to plan.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints one row an optimizer. Everything is exact but the activations and so the total (`~`).
///
/// # Errors
/// The configuration cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let waiting = Waiting::on("asking the devices");
    let config = settled(args.settings.resolve()?.config, libtorch::choose);
    drop(waiting);
    if args.json { output::json(&as_json(&config)) } else { output::text(&as_table(&config)) }
}

/// The configuration with the device that a run of it would get, where it is left to the program: what the passes keep
/// depends on it. A device that was named stays, whether it can train here or not.
fn settled(mut config: Config, choose: impl FnOnce(DeviceName) -> Result<Chosen, LibtorchError>) -> Config {
    if config.train.device == DeviceName::Auto {
        let chosen = libtorch::choose_for(&config, choose);
        config.train.device = chosen.map_or(DeviceName::Flex, |chosen| chosen.device);
    }
    config
}

/// One optimizer in JSON.
#[derive(Serialize)]
struct Planned<'a> {
    name: &'static str,
    #[serde(flatten)]
    ledger: &'a Ledger,
}

fn as_json(config: &Config) -> serde_json::Value {
    let all = ledger::all(config);
    let model = ledger::ledger(config);
    let optimizers: Vec<_> =
        all.iter().map(|(name, ledger)| Planned { name: name.as_str(), ledger }).collect();
    json!({
        "schema": SCHEMA,
        "model": config.model.name(),
        "device": config.train.device.to_string(),
        "parameters": model.parameters,
        "tensors": model.parameter_tensors,
        "micro_batch": config.train.micro_batch,
        "accumulate": config.train.accumulate,
        "seq_len": config.train.seq_len,
        "optimizers": optimizers,
    })
}

fn as_table(config: &Config) -> String {
    let ledger = ledger::ledger(config);
    let train = &config.train;
    let of = match config.model.arch.task() {
        Task::Own => "examples".to_owned(),
        _ => format!("sequences of {} tokens", train.seq_len),
    };
    let mut text = format!(
        "{}: {} parameters in {} tensors; {} x {} {of} an update\n\n",
        config.model.name(),
        count(ledger.parameters),
        ledger.parameter_tensors,
        train.micro_batch,
        train.accumulate
    );
    let mut table = Table::new(&[
        "optimizer",
        ">state elements",
        ">state",
        ">parameters",
        ">gradients",
        ">accumulation",
        ">activations",
        ">total",
    ]);
    // What the passes of a task's own model keep, no shape tells.
    let known = config.model.arch.task() != Task::Own;
    for (name, ledger) in ledger::all(config) {
        let activations = bytes(ledger.activation_bytes_estimated);
        let mark = if name == config.optimizer.name { "*" } else { "" };
        table.row([
            format!("{name}{mark}"),
            count(ledger.state_elements),
            bytes(ledger.state_bytes),
            bytes(ledger.parameter_bytes),
            bytes(ledger.gradient_bytes),
            bytes(ledger.accumulation_bytes),
            if known { format!("~{activations}") } else { dash() },
            format!("{}{}", if known { "~" } else { "> " }, bytes(ledger.total_bytes_estimated)),
        ]);
    }
    text.push_str(&table.aligned());
    text.push_str(&match known {
        true => {
            let device = config.train.device;
            format!("\n* chosen.  ~ estimated for {device}; everything else is counted from shapes.\n")
        }
        false => "\n* chosen.  Counted from shapes; what the passes keep comes on top, a run measures it.\n"
            .to_owned(),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn config(device: &str) -> Config {
        let setting = format!("train.device={device}");
        Layers::new().with_assignment(&setting).unwrap().resolve().unwrap().config
    }

    #[test]
    fn the_plan_is_that_of_the_device_a_run_would_get() {
        let libtorch =
            |_| Ok(Chosen { program: "worker".into(), device: DeviceName::LibtorchCpu, notes: Vec::new() });
        let auto = settled(config("auto"), libtorch);
        assert_eq!(auto, config("libtorch-cpu"));
        assert_eq!(as_json(&auto)["device"], "libtorch-cpu");
        let total =
            |config: &Config| as_json(config)["optimizers"][0]["total_bytes_estimated"].as_u64().unwrap();
        assert!(total(&auto) < total(&config("flex")));
        assert!(as_table(&auto).contains("~ estimated for libtorch-cpu"));
    }

    #[test]
    fn nobody_is_asked_about_a_device_that_was_named_and_a_plan_does_not_fail_for_libtorch() {
        for named in ["flex", "libtorch-cpu", "libtorch-cuda:7"] {
            let mut asked = false;
            let settled = settled(config(named), |_| {
                asked = true;
                Err(LibtorchError::NotFound)
            });
            assert_eq!((settled, asked), (config(named), false));
        }
        let broken = |_| Err(LibtorchError::NotFound);
        assert_eq!(settled(config("auto"), broken), config("flex"));
    }
}
