//! The curves of a run as one picture: loss with validation, learning rate, gradient norm, memory.

use super::{
    chart::{self, Line, Panel, Stroke, Unit},
    curves::{Curves, Point},
    kept::Progress,
};
use crate::{
    protocol::Header,
    run::{RunDir, RunError, label::Label, text},
};

/// The picture.
///
/// # Errors
/// The run has no record yet, or it cannot be read.
pub fn render(run: &RunDir, progress: Progress<'_>) -> Result<String, RunError> {
    let curves = Curves::read(run, progress)?;
    let plain = |name: &str, points, stroke| Line { name: name.to_owned(), points, stroke };
    let updates = curves.loss.iter().chain(&curves.validation).map(|point| point.0);
    let span: Option<(u64, u64)> = updates.clone().min().zip(updates.max());
    let planned = curves.header.as_ref().map(|header| header.ledger.total_bytes_estimated);
    let ledger: Vec<Point> = match (span, planned) {
        (Some((first, last)), Some(bytes)) => vec![(first, bytes as f64), (last, bytes as f64)],
        _ => Vec::new(),
    };
    let mut memory: Vec<_> =
        curves.memory.iter().map(|(name, points)| plain(name, points, Stroke::Plain)).collect();
    if !memory.is_empty() && !ledger.is_empty() {
        memory.push(plain("~ledger of training (estimated)", &ledger, Stroke::Dashed));
    }
    let mut loss = vec![plain("training", &curves.loss, Stroke::Plain)];
    if !curves.validation.is_empty() {
        loss.push(plain("validation", &curves.validation, Stroke::Dots));
    }
    let panel = |title, unit_name, unit, height, lines| Panel {
        title,
        unit_name,
        unit,
        may_be_logarithmic: unit == Unit::Number,
        height,
        lines,
    };
    let rate = vec![plain("rate that was used", &curves.rate, Stroke::Plain)];
    let norm = vec![plain("global norm before clipping", &curves.norm, Stroke::Plain)];
    let panels = [
        panel("Loss", "nats a target", Unit::Number, 260.0, loss),
        Panel {
            may_be_logarithmic: false,
            ..panel("Learning rate", "learning rate", Unit::Number, 120.0, rate)
        },
        panel("Gradient norm", "norm", Unit::Number, 120.0, norm),
        panel("Memory", "bytes, 1024-based", Unit::Bytes, 140.0, memory),
    ];
    let made = curves.header.as_ref().map(|header| header.name.clone());
    let title = Label::of(run).name.or(made).unwrap_or_else(|| run.name());
    let subtitle = curves.header.as_deref().map(about).unwrap_or_default();
    Ok(chart::picture(&title, &subtitle, &panels))
}

/// The run in a line.
fn about(header: &Header) -> String {
    format!(
        "run {}, started {}: {}, {} parameters, {}, {}",
        header.run,
        header.started,
        header.config.model.name(),
        text::count(header.ledger.parameters),
        header.config.optimizer.name,
        header.device
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Event, Host},
        run::{EventWriter, sample},
    };

    fn of(run: &RunDir) -> String {
        render(run, &mut |_, _| {}).unwrap()
    }

    fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.filter_map(|node| node.text().map(str::to_owned)).collect()
    }

    #[test]
    fn a_run_without_a_record_has_no_picture_and_one_without_updates_says_so() {
        let (_folder, run) = sample::run("none");
        assert!(render(&run, &mut |_, _| {}).is_err());
        EventWriter::create(&run, &sample::header(&run)).unwrap();
        let texts = texts(&of(&run));
        assert_eq!(texts.iter().filter(|text| *text == "nothing was recorded").count(), 4, "{texts:?}");
    }

    #[test]
    fn every_curve_has_its_axes_unit_and_legend() {
        let (_folder, run) = sample::run_with("<b>&\"'\u{1b}]0;x\u{7}</svg><script>", &[]);
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for update in 1..=40 {
            let loss = if update == 9 { f64::NAN } else { 5.0 / update as f64 };
            writer.append(&sample::update(update, loss)).unwrap();
            let host = Host { update, host_rss: Some(update << 20), ..Host::default() };
            writer.append(&Event::Host(host)).unwrap();
        }
        writer.append(&sample::validation(20, 0.5)).unwrap();
        let svg = of(&run);
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert!(!document.descendants().any(|node| node.has_tag_name("script")));
        let texts = texts(&svg);
        for text in [
            "Loss",
            "nats a target",
            "training (1 not finite)",
            "validation",
            "Learning rate",
            "Gradient norm",
            "resident (operating system)",
            "~ledger of training (estimated)",
            "20 MiB",
            "update",
        ] {
            assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
        }
        let (width, height) =
            (960.0, document.root_element().attribute("height").unwrap().parse::<f64>().unwrap());
        // The loss is two pieces, around what is not finite, and nothing lies outside the picture.
        let paths: Vec<_> = document.descendants().filter_map(|node| node.attribute("d")).collect();
        let curve = paths.iter().find(|path| path.matches('L').count() == 37).unwrap();
        assert_eq!(curve.matches('M').count(), 2);
        for place in curve.split(['M', 'L']).filter(|place| !place.is_empty()) {
            let (x, y) = place.split_once(' ').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..width).contains(&x) && (0.0..height).contains(&y), "{place}");
        }
        assert_eq!(svg, of(&run), "the same run is the same picture");
    }

    #[test]
    fn a_long_run_makes_no_large_picture() {
        let (_folder, run) = sample::run("long");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for update in 1..=20_000 {
            writer.append(&sample::update(update, 2.0 + (update as f64).sin())).unwrap();
        }
        let svg = of(&run);
        assert!(svg.len() < 200_000, "{}", svg.len());
        let texts = texts(&svg);
        assert_eq!(texts.iter().filter(|text| text.starts_with("line: mean; band")).count(), 3, "{texts:?}");
    }
}
