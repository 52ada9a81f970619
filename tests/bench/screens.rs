//! How long it takes from a key, or from what a run tells, to the frame that shows it: every screen at 200x60 with a
//! million updates of history, a thousand parameters and a thousand runs.
//!
//! `cargo bench --bench screens` measures five hundred frames of each and fails where the median is over 1 ms or the
//! worst over 5 ms; `-- gradient` takes the cases whose names hold that. Of three rounds the quietest counts: what else the machine does is not the screens'.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use ratatui::{Terminal, backend::TestBackend};
use tui_train::{
    app::{
        Msg, State,
        action::{Action, Screen},
        input::Input,
        tensors::View,
    },
    ui::{self, theme::Theme},
};

mod made;

const FRAMES: usize = 500;
const ROUNDS: usize = 3;
const MEDIAN: Duration = Duration::from_millis(1);
const WORST: Duration = Duration::from_millis(5);

/// A screen, and what it is told before its frame of that number.
struct Case {
    name: &'static str,
    state: State,
    told: fn(&State, usize) -> Msg,
}

fn act(state: &mut State, actions: &[Action]) {
    for action in actions {
        state.update(Msg::Action(*action));
    }
}

/// One of two actions, in turn.
fn turn(frame: usize, actions: [Action; 2]) -> Msg {
    Msg::Action(actions[frame % 2])
}

fn next_update(state: &State, _: usize) -> Msg {
    Msg::Events(made::events(state.run.done() + 1))
}

fn new_statistics(_: &State, frame: usize) -> Msg {
    // The names in view, as a worker answers.
    let mut report = made::report(made::UPDATES + frame as u64);
    report.tensors.truncate(60);
    Msg::Events(vec![tui_train::protocol::Event::State(report)])
}

fn cases() -> Vec<Case> {
    let base = made::watching();
    let mut all = Vec::new();
    let mut add = |name: &'static str, state: &State, told: fn(&State, usize) -> Msg| {
        all.push(Case { name, state: state.clone(), told });
    };

    add("train, an update", &base, next_update);
    add("train, zoomed in and out", &base, |_, frame| turn(frame, [Action::ZoomIn, Action::ZoomOut]));
    let mut state = base.clone();
    act(&mut state, &[Action::ZoomIn, Action::ZoomIn, Action::Left]);
    add("train, cursor in a part", &state, |_, frame| turn(frame, [Action::Left, Action::Right]));
    add("train, logarithmic or not", &base, |_, frame| turn(frame, [Action::LogX, Action::LogAxis]));
    add("train, by another x", &base, |_, _| Msg::Action(Action::NextXAxis));
    state = base.clone();
    made::mark(&mut state);
    act(&mut state, &[Action::Overlay]);
    add("train, six runs over it", &state, next_update);

    let mut table = base.clone();
    act(&mut table, &[Action::Show(Screen::State)]);
    add("state, down", &table, |_, _| Msg::Action(Action::Down));
    add("state, new statistics", &table, new_statistics);
    add("state, by the next column", &table, |_, _| Msg::Action(Action::SortNext));
    state = table.clone();
    act(&mut state, &[Action::GroupLayers, Action::SortNext, Action::SortNext]);
    add("state, layers folded", &state, |_, _| Msg::Action(Action::Open));
    state = table.clone();
    act(&mut state, &[Action::Filter]);
    add("state, a filter typed", &state, |_, frame| {
        let sign = b"*experts.1*"[frame % 11];
        Msg::Input(if frame.is_multiple_of(11) { Input::Clear } else { Input::Char(sign.into()) })
    });

    let mut opened = table;
    act(&mut opened, &[Action::Home, Action::Open]);
    let tensor = made::name(0);
    let run = "bench".to_owned();
    opened.update(Msg::Detail { run: run.clone(), detail: Ok(made::detail(made::UPDATES)) });
    opened.update(Msg::History { run, tensor, history: Ok(made::history()) });
    made::mark(&mut opened);
    act(&mut opened, &[Action::Beside]);
    let other = opened.runs.marked[0].clone();
    opened.update(Msg::Detail { run: other, detail: Ok(made::detail(made::UPDATES - 9)) });
    let views = ["opened, values", "opened, spread", "opened, gradient", "opened, history", "opened, beside"];
    for (name, view) in views.into_iter().zip(View::ALL) {
        let mut state = opened.clone();
        if let Some(opened) = &mut state.tensors.opened {
            opened.view = view;
        }
        add(name, &state, |_, frame| turn(frame, [Action::Left, Action::Right]));
    }

    state = base.clone();
    act(&mut state, &[Action::Show(Screen::Setup)]);
    add("setup, down", &state, |_, _| Msg::Action(Action::Down));
    add("setup, the next optimizer", &state, |_, _| Msg::Action(Action::NextOptimizer));
    state.form.assign("model.preset", "tinyllama-1.1b").expect("a preset");
    state.form.assign("train.micro_batch", "4").expect("a number");
    act(&mut state, &[Action::Edit]);
    add("setup, a large model typed", &state, |_, frame| {
        Msg::Input(if frame.is_multiple_of(2) { Input::Char('0') } else { Input::Backspace })
    });

    state = base.clone();
    act(&mut state, &[Action::Show(Screen::Runs)]);
    made::mark(&mut state);
    add("runs, down", &state, |_, _| Msg::Action(Action::Down));
    add("runs, the list again", &state, |_, _| Msg::Runs(made::rows()));
    add("runs, by the next column", &state, |_, _| Msg::Action(Action::SortNext));
    add("runs, six curves, smoothed or not", &state, |_, _| Msg::Action(Action::Smoothing));
    act(&mut state, &[Action::Scatter]);
    add("runs, memory against loss", &state, |_, _| Msg::Action(Action::Down));

    state = base.clone();
    act(&mut state, &[Action::Help]);
    add("help, down", &state, |_, _| Msg::Action(Action::Down));
    state = base;
    act(&mut state, &[Action::Palette]);
    add("palette, typed", &state, |_, frame| {
        Msg::Input(if frame.is_multiple_of(2) { Input::Char('s') } else { Input::Clear })
    });
    all
}

/// Median and worst of one round.
fn round(case: &Case, frames: usize) -> (Duration, Duration) {
    let theme = Theme::detect(false, |name| (name == "COLORTERM").then(|| "truecolor".to_owned()));
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).expect("a buffer");
    let mut state = case.state.clone();
    let mut times = Vec::with_capacity(frames);
    for frame in 0..frames + 10 {
        let msg = (case.told)(&state, frame);
        let begun = Instant::now();
        state.update(msg);
        terminal.draw(|frame| ui::draw(&state, &theme, frame)).expect("a buffer takes anything");
        // The first frames meet cold caches.
        if frame >= 10 {
            times.push(begun.elapsed());
        }
    }
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}

#[expect(clippy::print_stdout, reason = "what it measures is what it is for")]
fn main() -> ExitCode {
    // Without `--bench` it is only seen to work.
    let measured = std::env::args().any(|argument| argument == "--bench");
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (frames, rounds) = if measured { (FRAMES, ROUNDS) } else { (2, 1) };
    println!("{:<34} {:>10} {:>10}", "200x60, to the frame", "median us", "worst us");
    let mut over = 0;
    let is_wanted = |case: &Case| wanted.iter().all(|part| case.name.contains(part.as_str()));
    for case in cases().into_iter().filter(is_wanted) {
        let all: Vec<_> = (0..rounds).map(|_| round(&case, frames)).collect();
        let median = all.iter().map(|round| round.0).min().unwrap_or_default();
        let worst = all.iter().map(|round| round.1).min().unwrap_or_default();
        let too_slow = median > MEDIAN || worst > WORST;
        over += usize::from(too_slow);
        let mark = if too_slow { "  over the limit" } else { "" };
        println!("{:<34} {:>10} {:>10}{mark}", case.name, median.as_micros(), worst.as_micros());
    }
    // A build that is not optimised says nothing of the limits.
    if over > 0 && measured && !cfg!(debug_assertions) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
