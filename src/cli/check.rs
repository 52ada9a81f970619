//! `tui-train check`: whether training does what it says, measured here and on this data.

use super::{FAILED, output, progress::Waiting, settings::Settings};
use crate::{
    config::Arch,
    protocol::AccumulationCheck,
    run::{
        table::Table,
        text::{count, loss, number},
    },
    worker::check,
};

/// What to check.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Compare the gradient of one batch of B sequences with that of B micro-batches of one
    ///
    /// B is the effective batch, train.micro_batch x train.accumulate, and the sequences are those of the run's first
    /// update. The exit code is 0 when both gradients are the same but for rounding, and 1 when they are not.
    Accumulation(Accumulation),
}

/// The configuration whose first window is taken.
#[derive(Debug, clap::Args)]
struct Accumulation {
    #[command(flatten)]
    settings: Settings,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Checks, prints what was found, and returns whether it holds as the exit code.
///
/// # Errors
/// The configuration or its data cannot be used.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let What::Accumulation(Accumulation { settings, json }) = args.what;
    let mut config = settings.resolve()?.config;
    if let Some(code) = super::elsewhere(&mut config)? {
        return Ok(code);
    }
    let waiting = Waiting::on("computing the gradient twice");
    let found = check::accumulation(&config)?;
    drop(waiting);
    if json {
        output::json(&found)?
    } else {
        output::text(&page(&found, config.model.arch))?
    };
    Ok(if found.holds { 0 } else { FAILED })
}

fn page(found: &AccumulationCheck, arch: Arch) -> String {
    let rows = count(found.rows);
    let mut both = Table::new(&["", &format!(">1 x {rows}"), &format!(">{rows} x 1")]);
    let pair = |name: &str, figures: [String; 2]| std::iter::once(name.to_owned()).chain(figures);
    both.row(pair("loss", found.loss.map(loss)));
    both.row(pair("gradient norm", found.grad_norm.map(number)));
    let one = if arch == Arch::Own { "example" } else { "sequence" };
    let (s, parts) = if found.rows == 1 { ("", "micro-batch") } else { ("s", "micro-batches") };
    let naive = if !found.compares() {
        "no more: there is one micro-batch"
    } else if found.naive_differs() {
        "what averaging the micro-batches' own means would be off by"
    } else {
        "no more: the micro-batches have the same number of targets here"
    };
    let mut figures = Table::new(&["figure", ">value", "meaning"]);
    for (name, value, meaning) in [
        ("largest difference", found.largest_difference, "between two elements of the gradients".to_owned()),
        ("largest gradient", found.largest_gradient, "of any element".to_owned()),
        (
            "tolerance",
            found.tolerance,
            format!(
                "{} x 2^-24 x sqrt({}) of the largest gradient: rounding of the longest sum",
                check::ROUNDINGS,
                count(found.terms)
            ),
        ),
        ("mean of means", found.naive_largest_difference, naive.to_owned()),
    ] {
        figures.row([name.to_owned(), number(value), meaning]);
    }
    let mut worst = Table::new(&["parameter", ">difference", ">largest gradient"]);
    for deviation in &found.worst {
        worst.row([deviation.name.clone(), number(deviation.difference), number(deviation.gradient)]);
    }
    let notes: String = found.notes.iter().map(|note| format!("note: {note}\n")).collect();
    let verdict = if !found.compares() {
        format!("nothing to compare: the window is one {one}, and one micro-batch either way")
    } else if found.holds {
        "holds: accumulating micro-batches gives the gradient of the whole batch, but for rounding".to_owned()
    } else {
        "DOES NOT HOLD: accumulating micro-batches gives another gradient than the whole batch".to_owned()
    };
    format!(
        "{} on {}: the first window, {rows} {one}{s} with {} {}, as 1 batch and as {rows} {parts}\n\n\
         {}\n{}\n{}\n{notes}{verdict}\n",
        found.model,
        found.device,
        count(found.targets),
        if found.targets == 1 { "target" } else { "targets" },
        both.aligned(),
        figures.aligned(),
        worst.aligned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Deviation;

    fn found() -> AccumulationCheck {
        AccumulationCheck {
            schema: 1,
            model: "llama-nano".into(),
            device: "flex".into(),
            rows: 8,
            targets: 500,
            loss: [5.5, 5.5],
            grad_norm: [1.25, 1.25],
            largest_difference: 1e-8,
            largest_gradient: 0.03,
            terms: 512,
            tolerance: 3e-7,
            holds: true,
            naive_largest_difference: 2e-3,
            worst: vec![Deviation { name: "model.norm.weight".into(), difference: 1e-8, gradient: 0.01 }],
            notes: vec!["dropout was switched off".into()],
        }
    }

    #[test]
    fn the_page_ends_with_the_verdict() {
        let page = |found: &AccumulationCheck| super::page(found, Arch::Llama);
        let text = page(&found());
        assert!(text.contains("1 x 8") && text.contains("8 x 1") && text.contains("500 targets"), "{text}");
        assert!(text.contains("means would be off by") && text.contains("note: dropout"), "{text}");
        assert!(text.lines().last().unwrap().starts_with("holds"), "{text}");
        let one = page(&AccumulationCheck { rows: 1, targets: 63, ..found() });
        assert!(one.contains("1 sequence with 63 targets, as 1 batch and as 1 micro-batch\n"), "{one}");
        assert!(one.lines().last().unwrap().starts_with("nothing to compare"), "{one}");
        let own = super::page(&found(), Arch::Own);
        assert!(own.contains("the first window, 8 examples with") && !own.contains("sequence"), "{own}");
        let text = page(&AccumulationCheck { holds: false, naive_largest_difference: 1e-8, ..found() });
        assert!(text.contains("same number of targets"), "{text}");
        assert!(text.lines().last().unwrap().starts_with("DOES NOT HOLD"), "{text}");
    }
}
