//! `tui-train compare RUN RUN...`: what differs, and the verdict.

use super::{BAD_USAGE, output, progress::Waiting};
use crate::run::{
    Home, RunDir,
    compare::{Comparison, compare},
    table::Table,
    text::{bytes_or_dash, count, dash, loss_or_dash, plain, rate},
};

/// Which runs, and how to print them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Runs, each by id, unique prefix, name, path, or `latest`; the first is the one the others are held against
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    runs: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Prints the verdict, the figures behind it, and the settings that differ.
///
/// # Errors
/// A run cannot be found or read, or is named twice.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let home = Home::from_env()?;
    let runs = args.runs.iter().map(|text| RunDir::resolve(&home, text)).collect::<Result<Vec<_>, _>>()?;
    for (index, run) in runs.iter().enumerate() {
        if runs[..index].contains(run) {
            output::message(&format!("error: run {} is named twice: name different runs", run.id()));
            return Ok(BAD_USAGE);
        }
    }
    let waiting = Waiting::on("reading the records");
    let comparison = compare(&runs)?;
    drop(waiting);
    if args.json { output::json(&comparison) } else { output::text(&page(&comparison)) }
}

/// The verdict, the figures behind it, and the settings that differ.
pub(super) fn page(comparison: &Comparison) -> String {
    let verdict = &comparison.verdict;
    let mut figures = Table::new(&["run", ">memory", ">loss", ">at update", ">tokens/s"]);
    for run in &verdict.figures {
        figures.row([
            run.label.clone(),
            bytes_or_dash(run.memory_bytes),
            loss_or_dash(run.loss),
            run.loss_update.map_or_else(dash, count),
            run.tokens_per_second.map_or_else(dash, rate),
        ]);
    }
    let mut page = format!(
        "{}\n\n{}\nmemory: {}; loss: {}\n",
        verdict.text,
        figures.aligned(),
        verdict.memory_source,
        verdict.loss_source
    );
    for (run, figures) in comparison.runs.iter().zip(&verdict.figures) {
        if let Some(note) = run["note"].as_str() {
            page += &format!("note on {}: {}\n", figures.label, plain(note));
        }
    }
    if comparison.differences.is_empty() {
        return page + "\nThe settings are the same.\n";
    }
    let labels = verdict.figures.iter().map(|figures| figures.label.as_str());
    let mut differences = Table::new(&std::iter::once("setting").chain(labels).collect::<Vec<_>>());
    for difference in &comparison.differences {
        differences.row(std::iter::once(difference.key.clone()).chain(difference.told()));
    }
    page.push('\n');
    page + &differences.aligned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{EventWriter, sample};

    #[test]
    fn the_page_has_the_verdict_the_figures_and_the_differences() {
        let made: Vec<_> = ["adamw", "sgd"]
            .map(|name| sample::run_with(name, &[&format!("optimizer.name={name}")]))
            .into_iter()
            .collect();
        for (_, run) in &made {
            let mut writer = EventWriter::create(run, &sample::header(run)).unwrap();
            writer.append(&sample::update(10, 3.0)).unwrap();
            writer.append(&sample::validation(10, 2.5)).unwrap();
            writer.append(&sample::run_ended(run)).unwrap();
        }
        crate::run::label::annotate(&made[1].1, "without momentum").unwrap();
        let page = page(&compare(&made.iter().map(|(_, run)| run.clone()).collect::<Vec<_>>()).unwrap());
        assert!(page.starts_with("Against adamw (adamw), sgd (sgd) needs"), "{page}");
        let row = page.lines().find(|line| line.starts_with("optimizer.name")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["optimizer.name", "adamw", "sgd"]);
        assert!(page.contains("memory: ~ledger"), "{page}");
        assert!(page.contains("\nnote on sgd (sgd): without momentum\n"), "{page}");
    }
}
