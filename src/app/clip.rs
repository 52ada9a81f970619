//! What is copied: the figure that somebody looks at, and the command that goes on with a run or repeats it.

use super::{
    Effect, State,
    action::Screen,
    focus::Panel,
    run::Status,
    series::Series,
    tensors::{Column, Line},
};
use crate::{
    config::own,
    run::{
        goes_on::{assignments, bare},
        text::{plain, shell_word},
    },
};

impl State {
    /// Copies the figure under the cursor, or the selected row's.
    pub(super) fn copy(&mut self) -> Vec<Effect> {
        match self.figure() {
            Some((what, text)) => vec![Effect::Copy { what, text }],
            None => {
                self.say("there is no figure here yet: nothing is copied", true);
                Vec::new()
            }
        }
    }

    /// Copies the command that goes on with the run, looks at it while it is live, or trains it again; on the Setup
    /// screen the one that trains the draft.
    pub(super) fn copy_command(&mut self) -> Vec<Effect> {
        let (run, stands, told) = match self.screen {
            Screen::Setup => match self.draft_command() {
                Ok(text) => return vec![Effect::Copy { what: "the command of the draft".into(), text }],
                Err(why) => {
                    self.say(format!("the draft has no command: {why}"), true);
                    return Vec::new();
                }
            },
            Screen::Runs => match self.runs.rows.get(self.runs.selected) {
                Some(row) => (row.id.clone(), stands_of_row(&row.state), row.resume_command.clone()),
                None => return self.no_run(),
            },
            Screen::Train | Screen::State => match (&self.watching, self.status()) {
                (Some(run), Some(status)) => {
                    let ended = self.view().ended.as_ref();
                    let told = ended.and_then(|ended| ended.summary.resume_command.clone());
                    (run.id.clone(), stands_of(status), told)
                }
                _ => return self.no_run(),
            },
        };
        // A run that ran out of memory would do so again: its summary says by what it goes on.
        if let Some(text) = told {
            return vec![Effect::Copy { what: "the command that goes on with it".into(), text }];
        }
        let (what, verb) = match stands {
            Stands::Live => ("the command that shows it", "attach"),
            Stands::Over => ("the command that goes on with it", "resume"),
            Stands::Complete => return vec![Effect::CopyAgain { run }],
        };
        vec![Effect::Copy {
            what: what.into(),
            text: format!("{} {verb} {}", own::program(), shell_word(&run)),
        }]
    }

    fn no_run(&mut self) -> Vec<Effect> {
        self.say("no run is open or selected: there is no command to copy", true);
        Vec::new()
    }

    fn draft_command(&self) -> Result<String, String> {
        let (resolved, name) = self.form.start()?;
        let mut command = format!("{} run{}", own::program(), assignments(&resolved.explicit));
        if name != resolved.config.run_name() {
            command.push_str(&format!(" --name {}", shell_word(&name)));
        }
        Ok(command)
    }

    /// What is looked at, in words, and it as text.
    fn figure(&self) -> Option<(String, String)> {
        let view = self.view();
        match self.panel() {
            Panel::Loss => self.reading("loss", &view.loss),
            Panel::Gradient => self.reading("gradient norm", &view.grad_norm),
            Panel::Speed => self.reading(&format!("{}/s", view.counted().as_str()), &view.speed),
            Panel::Schedule => self.reading("learning rate", &view.rate),
            Panel::Memory => {
                let peaks = view.peaks;
                let all = [
                    ("peak on the GPU of this process, bytes", peaks.gpu_process),
                    ("peak of the allocator, bytes", peaks.allocator),
                    ("peak resident, bytes", peaks.host_rss),
                ];
                let state = view.header.as_ref().map(|header| header.ledger.state_bytes);
                let known = all.into_iter().chain([("optimizer state, bytes", state)]);
                known.into_iter().find_map(|(what, bytes)| Some((what.to_owned(), bytes?.to_string())))
            }
            Panel::Journal => {
                let entry = view.journal.iter().rev().nth(self.journal_scroll)?;
                Some((format!("what happened at update {}", entry.update), plain(&entry.text)))
            }
            Panel::Tensors if self.tensors.opened.is_some() => self.strip_values(),
            Panel::Tensors => {
                let lines = self.tensors.lines();
                let line = lines.get(self.tensors.selected.min(lines.len().checked_sub(1)?))?;
                row_figure(line, self.tensors.sort)
            }
            Panel::Form | Panel::Plan => {
                let key = self.form.field()?.key;
                Some((format!("setting {key}"), format!("{key}={}", bare(&self.form.value(key)))))
            }
            Panel::List | Panel::Curves => Some(("the run's id".to_owned(), self.runs.selected_id()?)),
            Panel::Compare => {
                let verdict = &self.runs.comparison.as_ref()?.verdict;
                Some(("the verdict".to_owned(), plain(verdict)))
            }
        }
    }

    /// What a series holds under the cursor, or last.
    fn reading(&self, what: &str, series: &Series) -> Option<(String, String)> {
        let at = self.cursor().or_else(|| series.last_place().map(|place| place.update))?;
        let read = series.reading(at)?;
        let place = if read.count > 1 {
            format!("mean {what} of updates {} to {}", read.first, read.place.update)
        } else {
            format!("{what} at update {}", read.place.update)
        };
        Some((place, exact(read.mean)))
    }

    /// The values under the cursor of the opened parameter's strips.
    fn strip_values(&self) -> Option<(String, String)> {
        let opened = self.tensors.opened.as_ref()?;
        let detail = opened.detail.as_ref()?;
        let values: Vec<String> = detail
            .strips
            .iter()
            .filter_map(|strip| Some(format!("{} {}", strip.name, exact(*strip.values.get(opened.cursor)?))))
            .collect();
        let what = format!("values {} of {} after update {}", opened.cursor, opened.tensor, detail.update);
        (!values.is_empty()).then(|| (what, values.join(", ")))
    }
}

/// Where a run stands, as far as going on with it is concerned.
enum Stands {
    Live,
    /// It can be resumed.
    Over,
    /// It has made all of its updates, or none yet.
    Complete,
}

const fn stands_of(status: Status) -> Stands {
    match status {
        Status::Starting | Status::Live | Status::Paused => Stands::Live,
        Status::Queued => Stands::Complete,
        Status::Ended(reason) if reason.is_complete() => Stands::Complete,
        Status::TakenOut | Status::Ended(_) | Status::Crashed => Stands::Over,
    }
}

fn stands_of_row(state: &str) -> Stands {
    match state {
        "live" | "paused" => Stands::Live,
        "done" | "queued" => Stands::Complete,
        _ => Stands::Over,
    }
}

/// The figure of a row that the table is ordered by, else the one that says most.
fn row_figure(line: &Line<'_>, column: Column) -> Option<(String, String)> {
    let stats = line.state.and_then(|(_, state)| state.stats);
    let (what, text) = match column {
        Column::Step => ("step", line.parameter.step.to_string()),
        Column::Min => ("min", exact(stats?.min)),
        Column::Max => ("max", exact(stats?.max)),
        Column::Zeros => ("zeros", stats?.zeros.to_string()),
        Column::NonFinite => ("values that are no numbers", stats?.nonfinite.to_string()),
        Column::Change => ("change of the rms", exact(line.change()?)),
        Column::Ratio => ("update ratio", exact(line.parameter.update_ratio?)),
        Column::Error => ("error", exact(line.error()?)),
        Column::Untouched => ("rows never touched", exact(line.untouched()?)),
        Column::Rms | Column::Name | Column::State | Column::Shape | Column::Dtype if stats.is_some() => {
            ("rms", exact(stats?.rms))
        }
        _ => match (line.group, line.state) {
            (Some(group), _) => ("bytes", group.bytes.to_string()),
            (None, Some((_, state))) => ("bytes", state.bytes.to_string()),
            (None, None) => return None,
        },
    };
    let name = line.group.map_or(line.parameter.name.as_str(), |group| group.layer);
    let state = line.state.map_or_else(String::new, |(state, _)| format!(" {state}"));
    Some((format!("{what} of {name}{state}"), text))
}

/// Every digit of a number, with an exponent where zeros would hide it.
fn exact(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && value.is_finite() && !(1e-4..1e15).contains(&size) {
        format!("{value:e}")
    } else {
        // What is no number is written as it is everywhere: nan, inf.
        format!("{value}").to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{Msg, action::Action, recorded, runs::RunRow},
        protocol::Reason,
    };

    fn copied(state: &mut State, action: Action) -> (String, String) {
        match &state.update(Msg::Action(action))[..] {
            [Effect::Copy { what, text }] => (what.clone(), text.clone()),
            other => panic!("{other:?}: {:?}", state.notice),
        }
    }

    #[test]
    fn the_figure_under_the_cursor_is_copied_with_every_digit() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let newest = state.run.update.as_ref().unwrap().clone();
        let (what, text) = copied(&mut state, Action::Copy);
        assert_eq!((what.as_str(), text.parse()), ("loss at update 300", Ok(newest.loss)));
        state.update(Msg::Point { panel: Panel::Gradient, update: 120 });
        let (what, text) = copied(&mut state, Action::Copy);
        assert!(what.starts_with("gradient norm at update 120"), "{what}");
        assert_eq!(text.parse(), Ok(state.run.grad_norm.reading(120).unwrap().mean));
        for panel in [Panel::Speed, Panel::Schedule, Panel::Memory, Panel::Journal] {
            state.update(Msg::Click { panel, row: None });
            assert!(!copied(&mut state, Action::Copy).1.is_empty(), "{panel:?}");
        }
    }

    #[test]
    fn rows_fields_and_runs_have_a_figure_and_an_empty_screen_has_none() {
        let mut state = recorded::watching(Screen::State, "adafactor");
        let (what, text) = copied(&mut state, Action::Copy);
        assert!(what.starts_with("rms of ") && text.parse::<f64>().unwrap() > 0.0, "{what} {text}");
        state.update(Msg::Sort(Column::Step));
        assert!(copied(&mut state, Action::Copy).0.starts_with("step of "));
        let mut state = recorded::watching(Screen::Setup, "adamw");
        state.form.assign("train.accumulate", "4").unwrap();
        assert_eq!(copied(&mut state, Action::Copy).1, "train.accumulate=4");
        let mut state = recorded::watching(Screen::Runs, "adamw");
        assert_eq!(copied(&mut state, Action::Copy).1, state.runs.rows[0].id);
        let mut state =
            State::new(crate::config::Layers::new(), crate::app::Options::default(), Screen::Train).unwrap();
        assert!(state.update(Msg::Action(Action::Copy)).is_empty());
        assert!(state.notice.unwrap().text.contains("nothing is copied"));
    }

    #[test]
    fn the_command_goes_on_with_a_run_shows_it_repeats_it_or_trains_the_draft() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let id = state.watching.as_ref().unwrap().id.clone();
        assert_eq!(copied(&mut state, Action::CopyCommand).1, format!("tui-train attach {id}"));
        state.update(Msg::Events(vec![recorded::ended(Reason::Stopped, 300)]));
        assert_eq!(copied(&mut state, Action::CopyCommand).1, format!("tui-train resume {id}"));
        let mut smaller = recorded::ended(Reason::OutOfMemory, 300);
        if let crate::protocol::Event::RunEnded(ended) = &mut smaller {
            ended.summary.resume_command = Some("tui-train fork demo --set train.micro_batch=1".into());
        }
        state.update(Msg::Events(vec![smaller]));
        let (_, text) = copied(&mut state, Action::CopyCommand);
        assert_eq!(text, "tui-train fork demo --set train.micro_batch=1");
        state.update(Msg::Action(Action::Show(Screen::Runs)));
        let row = state.runs.rows[0].clone();
        assert_eq!(copied(&mut state, Action::CopyCommand).1, format!("tui-train attach {}", row.id));
        let told = Some("tui-train fork sgd --set train.micro_batch=2".to_owned());
        state.runs.rows[0] =
            RunRow { state: "failed".into(), resume_command: told.clone(), ..(*row).clone() }.into();
        assert_eq!(Some(copied(&mut state, Action::CopyCommand).1), told);
        state.update(Msg::Action(Action::Show(Screen::Train)));
        state.update(Msg::Events(vec![recorded::ended(Reason::Finished, 300)]));
        let again = state.update(Msg::Action(Action::CopyCommand));
        assert_eq!(again, [Effect::CopyAgain { run: id }]);
        state.update(Msg::Action(Action::Show(Screen::Setup)));
        state.form.assign("train.accumulate", "4").unwrap();
        state.form.assign("data.path", "my texts/a.txt").unwrap();
        let (_, text) = copied(&mut state, Action::CopyCommand);
        assert!(text.starts_with("tui-train run --set"), "{text}");
        assert!(
            text.contains("--set train.accumulate=4") && text.contains("'data.path=my texts/a.txt'"),
            "{text}"
        );
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (value, text) in [(2.5, "2.5"), (1e-30, "1e-30"), (0.0, "0"), (f64::NAN, "nan"), (-3e20, "-3e20")]
        {
            assert_eq!(exact(value), text);
        }
    }
}
