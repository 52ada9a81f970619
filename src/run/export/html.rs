//! A run as one page for a browser: summary, curves, memory, configuration, and what happened. It needs no network and no
//! other file, runs nothing, and follows the reader's light or dark setting.

use std::fmt::Write as _;

use super::{
    escape::{lines, markup},
    kept::Progress,
    markdown, svg,
};
use crate::{
    protocol::Level,
    run::{RunDir, RunError, Standing, summary::collapsed, table::Table, text::count},
};

/// Nothing may be loaded or run, whatever a run says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1a1a;--faint:#5a5a5a;--rule:#dcdcdc;--box:#f5f5f5;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--paper:#14161b;--ink:#e6e6e6;--faint:#a0a4ad;--rule:#2c3038;--box:#1c1f26;\
--bad:#ff8a80}}
body{margin:0 auto;max-width:60rem;padding:1.5rem;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif}
h1{font-size:1.6rem;margin:0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .5rem}
p{margin:.4rem 0}
.faint{color:var(--faint)}
.bad{color:var(--bad)}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .9rem .2rem 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top;\
overflow-wrap:anywhere}
td.right,th.right{text-align:right}
th{font-weight:600}
pre,code{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:.9rem}
pre{background:var(--box);padding:.8rem;overflow-x:auto}
li{overflow-wrap:anywhere}
svg{width:100%;height:auto}
summary{cursor:pointer}
";

/// The page of a run.
///
/// # Errors
/// The run has no record yet, or it cannot be read.
pub fn render(run: &RunDir, progress: Progress<'_>) -> Result<String, RunError> {
    let standing = Standing::read(run)?;
    let summary = &standing.summary;
    let curves = svg::render(run, progress)?;
    let name = markup(&summary.name);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"generator\" content=\"tui-train {version}\"/>\n\
         <title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n",
        version = markup(&summary.version),
    );
    let forked = summary.forked_from.as_ref().map_or_else(String::new, |from| {
        format!(", forked from <code>{}</code> at update {}", markup(&from.run), count(from.update))
    });
    let _ = writeln!(
        page,
        "<p class=\"faint\">Run <code>{}</code>, started {}{forked}: {}.</p>",
        markup(&summary.run),
        markup(&summary.started),
        markup(&markdown::standing_line(&standing))
    );
    if let Some(note) = &summary.note {
        let _ = writeln!(page, "<p>Note: {}</p>", markup(note));
    }
    if let Some(problem) = &standing.problem {
        let _ = writeln!(page, "<p class=\"bad\">{}</p>", markup(problem));
    }
    if !standing.log.is_empty() {
        let _ = writeln!(page, "<pre>{}</pre>", lines(&standing.log.join("\n")));
    }
    section(&mut page, "Result", &markdown::result(summary).html());
    section(&mut page, "Curves", &curves);
    let texts = super::texts::html(standing.record.samples.iter().rev());
    if !texts.is_empty() {
        section(&mut page, "Texts", &texts);
    }
    section(&mut page, "Memory", &markdown::memory(summary).html());
    page += "<p class=\"faint\">A figure with ~ is an estimate; the others are counted or measured by their source.</p>\n";
    section(&mut page, "Configuration", &markdown::configuration(summary).html());
    let all = summary.config.to_toml()?;
    let _ =
        writeln!(page, "<details><summary>Every setting</summary>\n<pre>{}</pre>\n</details>", lines(&all));
    section(&mut page, "Machine", &markdown::machine(summary).html());
    let mut data = format!("<p>{}</p>\n", markup(&markdown::learned_from(summary)));
    let left_out =
        summary.data.left_out.iter().map(|(why, times)| format!("left out: {why} ({})", count(*times)));
    let named = summary.data.left_out_named.iter().cloned();
    data += &list(left_out.chain(named).collect(), "");
    section(&mut page, "Data", &data);
    let interventions = summary.interventions.iter().map(markdown::intervention).collect();
    section(&mut page, "Interventions", &list(interventions, "<p>None.</p>\n"));
    section(&mut page, "Alerts", &alerts(&standing));
    let _ = writeln!(
        page,
        "<h2>Commands</h2>\n<p>Show this run again: <code>{}</code></p>",
        markup(&summary.show_command)
    );
    if let Some(command) = &summary.resume_command {
        let _ = writeln!(page, "<p>Go on with it: <code>{}</code></p>", markup(command));
    }
    page += "</body>\n</html>\n";
    Ok(page)
}

fn section(page: &mut String, title: &str, content: &str) {
    let _ = writeln!(page, "<section>\n<h2>{title}</h2>\n<div class=\"wide\">\n{content}</div>\n</section>");
}

fn list(items: Vec<String>, none: &str) -> String {
    if items.is_empty() {
        return none.to_owned();
    }
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", markup(item))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Every alert, those that only inform, too.
fn alerts(standing: &Standing) -> String {
    if standing.record.alerts.is_empty() {
        return "<p>None.</p>\n".to_owned();
    }
    let mut table = Table::new(&[">update", "level", "message"]);
    for alert in collapsed(standing.record.alerts.iter()) {
        let level = match alert.level {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        table.row([count(alert.update), level.to_owned(), alert.message]);
    }
    table.html()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Alert, CommandRecord, Event},
        run::{EventWriter, sample},
    };

    const HOSTILE: &str = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u{1b}[31m";

    fn hostile() -> (tempfile::TempDir, RunDir) {
        let (folder, run) = sample::run_with(HOSTILE, &["train.accumulate=4"]);
        let mut header = sample::header(&run);
        header.data.source = HOSTILE.into();
        header.data.left_out.insert(HOSTILE.into(), 3);
        header.hardware.insert(HOSTILE.into(), HOSTILE.into());
        (header.device, header.version, header.started) = (HOSTILE.into(), HOSTILE.into(), HOSTILE.into());
        header.config.model.weights = Some(HOSTILE.into());
        let mut writer = EventWriter::create(&run, &header).unwrap();
        writer.append(&sample::update(1, 2.0)).unwrap();
        let alert = Alert { update: 1, time: 0.0, level: Level::Warning, message: HOSTILE.into() };
        writer.append(&Event::Alert(alert)).unwrap();
        let command = CommandRecord {
            micro_batches: 0,
            id: 1,
            name: HOSTILE.into(),
            outcome: "rejected".into(),
            update: 1,
            time: 0.0,
            value: None,
            why: Some(HOSTILE.into()),
        };
        writer.append(&Event::Command(command)).unwrap();
        std::fs::write(run.worker_log(), HOSTILE).unwrap();
        (folder, run)
    }

    fn of(run: &RunDir) -> String {
        render(run, &mut |_, _| {}).unwrap()
    }

    #[test]
    fn nothing_a_run_says_becomes_markup() {
        let (_folder, run) = hostile();
        let page = of(&run);
        let document = roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            let name = node.tag_name().name();
            assert!(!matches!(name, "script" | "img" | "iframe" | "link" | "object"), "{name}");
            assert!(node.attributes().all(|of| !of.name().starts_with("on")), "{name}");
        }
        let told = page.matches("&lt;script&gt;alert(1)").count();
        assert!(told >= 10, "the words themselves are shown, {told} times");
        assert!(!page.contains('\u{1b}'));
    }

    #[test]
    fn the_page_needs_nothing_else_and_says_what_happened() {
        let (_folder, run) = hostile();
        let page = of(&run);
        let document = roxmltree::Document::parse(page.strip_prefix("<!DOCTYPE html>").unwrap()).unwrap();
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            for attribute in ["src", "href", "action", "data"] {
                assert_eq!(node.attribute(attribute), None, "{}", node.tag_name().name());
            }
        }
        assert!(!page.contains("url(") && !page.contains("@import"));
        let headings: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("h2"))
            .filter_map(|node| node.text())
            .collect();
        assert_eq!(
            headings,
            [
                "Result",
                "Curves",
                "Memory",
                "Configuration",
                "Machine",
                "Data",
                "Interventions",
                "Alerts",
                "Commands"
            ]
        );
        let cells: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("td"))
            .filter_map(|node| node.text())
            .collect();
        for cell in ["train.accumulate", "optimizer state", "warning", "validation loss"] {
            assert!(cells.contains(&cell), "{cell}: {cells:?}");
        }
        assert!(page.contains("prefers-color-scheme") && page.contains("accumulate = 4"));
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("svg")).count(), 1);
    }
}
