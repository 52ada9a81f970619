//! `tui-train list`: all runs, newest first.

use serde_json::json;

use super::{output, progress::Waiting};
use crate::{
    protocol::SCHEMA,
    run::{
        Home, Queue, RunEntry, list,
        table::Table,
        text::{bytes_or_dash, count, dash, loss_or_dash, plain, rate},
    },
};

/// How to print them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints one row a run.
///
/// # Errors
/// The folder of runs cannot be found or read.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let home = Home::from_env()?;
    let waiting = Waiting::on("reading the runs");
    let runs = list(&home)?;
    drop(waiting);
    if args.json {
        return output::json(&json!({"schema": SCHEMA, "runs": runs}));
    }
    if runs.is_empty() {
        output::message(&format!(
            "there are no runs in {} yet: `tui-train run` starts one",
            home.runs().display()
        ));
        return Ok(0);
    }
    let line = Queue::of(&home);
    let waiting = line.waiting()?.len();
    if waiting > 0 && !line.has_runner()? {
        output::message(&format!(
            "{waiting} runs are queued and nothing starts them: `tui-train` or the next `tui-train run` does"
        ));
    }
    output::text(&table(&runs))
}

fn table(runs: &[RunEntry]) -> String {
    let noted = runs.iter().any(|run| run.note.is_some());
    let mut heads = vec![
        "run",
        "name",
        "state",
        ">update",
        "optimizer",
        ">batch",
        ">train loss",
        ">val loss",
        ">tokens/s",
        ">peak",
    ];
    heads.extend(noted.then_some("note"));
    let mut table = Table::new(&heads);
    let mut notes = String::new();
    for run in runs {
        let update = match run.total_updates {
            Some(total) => format!("{}/{}", count(run.update), count(total)),
            None => count(run.update),
        };
        let batch = match (run.micro_batch, run.accumulate) {
            (Some(micro_batch), Some(accumulate)) => format!("{micro_batch} x {accumulate}"),
            _ => dash(),
        };
        let cells = [
            run.run.clone(),
            run.name.clone(),
            run.state.to_string(),
            update,
            run.optimizer.clone().unwrap_or_else(dash),
            batch,
            loss_or_dash(run.final_train_loss),
            loss_or_dash(run.final_val_loss),
            run.tokens_per_second.map_or_else(dash, rate),
            bytes_or_dash(run.peak_bytes),
        ];
        table.row(cells.into_iter().chain(run.note.clone()));
        if let Some(problem) = &run.problem {
            notes += &format!("{}: {}\n", plain(&run.run), plain(problem));
        }
    }
    let gap = if notes.is_empty() { "" } else { "\n" };
    table.aligned() + gap + &notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{EventWriter, sample};

    #[test]
    fn a_row_has_the_figures_and_a_problem_stands_below() {
        let (folder, run) = sample::run_with("a name", &["train.accumulate=4"]);
        EventWriter::create(&run, &sample::header(&run)).unwrap().append(&sample::update(1500, 2.5)).unwrap();
        std::fs::write(run.worker_log(), "out of luck\n").unwrap();
        let text = table(&list(&Home::at(folder.path())).unwrap());
        let lines: Vec<_> = text.lines().collect();
        for part in [run.id(), "a name", "crashed", "1,500/600", "adamw", "8 x 4", "2.5000", "1,024"] {
            assert!(lines[1].contains(part), "{part}: {text}");
        }
        assert_eq!(lines[3], format!("{}: out of luck", run.id()));
        assert!(!lines[0].contains("note"), "{text}");
        crate::run::label::annotate(&run, "the bad one").unwrap();
        let text = table(&list(&Home::at(folder.path())).unwrap());
        assert!(text.lines().nth(1).unwrap().ends_with("  the bad one"), "{text}");
    }
}
