//! Every screen and overlay, of runs in every state, as recorded fixtures make them.

use crate::{
    app::{
        Msg, Options, RunRef, State,
        action::{Action, Screen},
        check::Check,
        focus::{Overlay, Panel},
        fork::Choice,
        input::{Input, TextLine},
        link::Control,
        palette::Palette,
        recorded,
        run::Waiting,
        tensors::{Beside, History, Opened, View},
    },
    config::Layers,
    protocol::{Answer, Event, Lineage, Reason, StateReport, Strip, TensorState},
    run::queue::Waits,
};

type Named = (&'static str, State);

/// The parameter that is opened.
const TENSOR: &str = "model.layers.0.self_attn.q_proj.weight";

pub(super) fn act(state: &mut State, actions: &[Action]) {
    for action in actions {
        state.update(Msg::Action(*action));
    }
}

fn typed(state: &mut State, text: &str) {
    text.chars().for_each(|sign| drop(state.update(Msg::Input(Input::Char(sign)))));
}

fn fresh(screen: Screen) -> State {
    State::new(Layers::new(), Options::default(), screen).unwrap()
}

/// A run whose first window did not fit.
pub(super) fn out_of_memory() -> State {
    let mut state = fresh(Screen::Train);
    state.update(Msg::Watching { run: RunRef { id: "l".into(), name: "large".into(), path: "l".into() } });
    let mut events: Vec<Event> =
        recorded::demo(0).into_iter().filter(|event| matches!(event, Event::Header(_))).collect();
    let mut end = recorded::ended(Reason::OutOfMemory, 0);
    if let Event::RunEnded(ended) = &mut end {
        ended.message = Some(
            "out of memory on flex: 512 GiB were asked for; train.micro_batch = 2 with train.accumulate = 512 keeps the \
             effective batch of 1024 and needs ~11.0 GiB instead of ~2.50 TiB"
                .into(),
        );
    }
    events.push(end);
    state.update(Msg::Events(events));
    state.update(Msg::Alive(false));
    state
}

/// Everything there is.
pub(super) fn all() -> Vec<Named> {
    [train(), tensors(), opened_sides(), setup(), runs(), overlays()].into_iter().flatten().collect()
}

/// The Train screen, one run in each state and the charts as they can be turned.
pub(super) fn train() -> Vec<Named> {
    let watching = || recorded::watching(Screen::Train, "adamw");
    let mut paused = watching();
    paused.update(Msg::Events(vec![recorded::command("pause", 300, None)]));
    act(&mut paused, &[Action::StepUpdate]);
    let mut starting = fresh(Screen::Train);
    starting.update(Msg::Watching {
        run: RunRef { id: "s".into(), name: "just-begun".into(), path: "s".into() },
    });
    let mut diverged = watching();
    diverged.update(Msg::Events(not_finite(301, 310)));
    let mut end = vec![recorded::ended(Reason::NotFinite, 310)];
    if let Event::RunEnded(ended) = &mut end[0] {
        ended.message = Some("10 updates in a row were skipped: the gradient is not finite".into());
    }
    diverged.update(Msg::Events(end));
    diverged.update(Msg::Alive(false));
    let mut crashed = watching();
    crashed.update(Msg::Alive(false));
    let told = ["the worker was killed by signal 9", "worker.log: allocating 12 GiB"];
    crashed.update(Msg::Crash(told.map(str::to_owned).to_vec()));
    let mut looking = watching();
    looking.update(Msg::Connected(Control::ReadOnly("another UI drives this run".into())));
    let mut cursor = watching();
    for _ in 0..2 {
        cursor.update(Msg::Point { panel: Panel::Loss, update: 140 });
    }
    act(&mut cursor, &[Action::ZoomIn]);
    let mut log_x = watching();
    act(&mut log_x, &[Action::LogX, Action::LogAxis, Action::NextXAxis]);
    let mut overlaid = recorded::watching(Screen::Runs, "adamw");
    overlaid.screen = Screen::Train;
    act(&mut overlaid, &[Action::Overlay]);
    let zoomed = |panel| {
        let mut state = watching();
        state.focus.set(Screen::Train, panel);
        act(&mut state, &[Action::Zoom]);
        state
    };
    let mut gpu_zoomed = recorded::on_gpu();
    gpu_zoomed.focus.set(Screen::Train, Panel::Memory);
    act(&mut gpu_zoomed, &[Action::Zoom]);
    vec![
        ("queued", queued()),
        ("train", watching()),
        ("empty_train", fresh(Screen::Train)),
        ("starting", starting),
        ("paused", paused),
        ("ended", recorded::short()),
        ("diverged", diverged),
        ("crashed", crashed),
        ("looking", looking),
        ("classifying", recorded::classifying()),
        ("gpu", recorded::on_gpu()),
        ("gpu_zoomed", gpu_zoomed),
        ("cursor", cursor),
        ("log_x", log_x),
        ("overlaid", overlaid),
        ("zoomed_schedule", zoomed(Panel::Schedule)),
        ("zoomed_memory", zoomed(Panel::Memory)),
        ("zoomed_events", zoomed(Panel::Journal)),
    ]
}

/// A run that waits in the queue while another one, which was left for it, is live.
fn queued() -> State {
    let mut state = recorded::watching(Screen::Train, "adamw");
    state.update(Msg::Watching { run: RunRef { id: "q".into(), name: "next".into(), ..RunRef::default() } });
    let waits =
        Waits { place: 2, of: 3, behind: vec!["demo".into()], after: Some("first".into()), runner: true };
    state.update(Msg::Waits(Some(Waiting::InLine(waits))));
    state
}

/// Updates whose loss and gradient are no numbers.
pub(super) fn not_finite(first: u64, last: u64) -> Vec<Event> {
    let nan = |at| {
        let mut event = recorded::demo(1).into_iter().nth(1).unwrap();
        if let Event::Update(update) = &mut event {
            (update.update, update.skipped) = (at, true);
            (update.loss, update.grad_norm) = (f64::NAN, f64::INFINITY);
            (update.time, update.tokens) = (at as f64 * 0.1, at * 1024);
        }
        event
    };
    (first..=last).map(nan).collect()
}

/// The table of state tensors.
pub(super) fn tensors() -> Vec<Named> {
    let mut layers = recorded::watching(Screen::State, "adafactor");
    let first = [Action::GroupLayers, Action::Down, Action::Down, Action::Down, Action::SortNext];
    act(&mut layers, &first);
    layers.tensors.folded.insert("model.layers.0".into());
    let mut filtered = recorded::watching(Screen::State, "adamw");
    act(&mut filtered, &[Action::Filter]);
    typed(&mut filtered, "*mlp*");
    let mut mistaken = recorded::watching(Screen::State, "adamw");
    act(&mut mistaken, &[Action::Filter]);
    typed(&mut mistaken, "[mlp");
    let mut classifying = recorded::classifying();
    act(&mut classifying, &[Action::Show(Screen::State)]);
    classifying.tensors.step(10);
    vec![
        ("state", recorded::watching(Screen::State, "adafactor")),
        ("state_8bit", recorded::watching(Screen::State, "adamw8bit")),
        ("state_none", recorded::watching(Screen::State, "sgd")),
        ("state_layers", layers),
        ("state_filtered", filtered),
        ("state_mistake", mistaken),
        ("state_many", many(1000)),
        ("classifying_state", classifying),
        ("empty_state", fresh(Screen::State)),
    ]
}

/// A table of so many parameters, sorted by a number.
pub(super) fn many(count: usize) -> State {
    let mut state = recorded::watching(Screen::State, "adamw");
    let report = recorded::state_report("adamw", 300);
    let tensors = (0..count).map(|at| TensorState {
        name: format!("model.layers.{}.mlp.experts.{}.weight", at / 16, at % 16),
        step: 300 - (at % 7) as u64,
        ..report.tensors[at % report.tensors.len()].clone()
    });
    state.tensors.clear();
    state.tensors.merge(StateReport { tensors: tensors.collect(), ..report.clone() }, "live");
    act(&mut state, &[Action::SortNext, Action::SortNext, Action::SortNext]);
    state.tensors.step(count as isize);
    state
}

pub(super) fn opened(optimizer: &str) -> State {
    let mut state = recorded::watching(Screen::State, optimizer);
    let detail = Some(Box::new(recorded::detail(optimizer, TENSOR)));
    state.tensors.opened = Some(Opened { detail, cursor: 5, ..Opened::new(TENSOR) });
    state
}

/// An opened parameter, each with another side of it shown.
pub(super) fn opened_sides() -> Vec<Named> {
    // Rows of a parameter that are more than a strip has values.
    let mut grouped = opened("adafactor");
    if let Some(detail) = grouped.tensors.opened.as_mut().and_then(|opened| opened.detail.as_mut()) {
        for strip in &mut detail.strips {
            strip.axis = "element; 2 to a cell".into();
            strip.length = 2 * strip.values.len() as u64 - 1;
        }
    }
    let mut waiting = recorded::watching(Screen::State, "adamw");
    waiting.tensors.opened = Some(Opened::new(TENSOR));
    vec![
        ("opened", opened("adafactor")),
        ("opened_8bit", opened("adamw8bit")),
        ("opened_grouped", grouped),
        ("opened_waiting", waiting),
        ("stepped", stepped()),
        ("spread", side("adafactor", View::Spread)),
        ("spread_8bit", side("adamw8bit", View::Spread)),
        ("gradient", side("adafactor", View::Gradient)),
        ("history", side("adafactor", View::History)),
        ("beside", side("adafactor", View::Beside)),
    ]
}

/// One update after another state was seen, while the run is paused.
pub(super) fn stepped() -> State {
    let mut state = opened("adafactor");
    state.update(Msg::Events(vec![recorded::command("pause", 300, None)]));
    let mut next = recorded::detail("adafactor", TENSOR);
    next.update = 301;
    next.strips.iter_mut().for_each(|strip| strip.values.iter_mut().for_each(|value| *value *= 1.25));
    state.update(Msg::Answer { id: 9, answer: Answer::Opened(Box::new(next)) });
    state
}

fn side(optimizer: &str, view: View) -> State {
    let mut state = opened(optimizer);
    let mut history = History::default();
    for update in (50..=300).step_by(50) {
        let mut report = recorded::state_report(optimizer, update);
        for found in &mut report.tensors {
            let scale = 1.0 + 200.0 / update as f64;
            let stats = found.state.values_mut().filter_map(|state| state.stats.as_mut());
            stats.for_each(|stats| stats.rms *= scale);
        }
        history.push(TENSOR, &report);
    }
    if let Some(opened) = &mut state.tensors.opened {
        opened.view = view;
        opened.history.load(history);
    }
    let mut other = recorded::detail("adamw", TENSOR);
    let strips = std::mem::take(&mut other.strips);
    for axis in ["row, mean |x|", "column, mean |x|"] {
        other.strips.extend(strips.iter().map(|strip| Strip { axis: axis.into(), ..strip.clone() }));
    }
    let detail = Some(Ok(Box::new(other)));
    state.tensors.beside = Some(Beside { run: "b".into(), name: "nano-adamw".into(), detail });
    state
}

/// The draft of the next run.
pub(super) fn setup() -> Vec<Named> {
    let watching = || recorded::watching(Screen::Setup, "adamw");
    let mut changed = watching();
    act(&mut changed, &[Action::NextOptimizer, Action::NextOptimizer, Action::AccumulateUp]);
    let mut classification = watching();
    classification.form.assign("model.preset", "distilbert-nano").unwrap();
    let mut mistake = watching();
    mistake.form.assign("train.micro_batch", "4").unwrap();
    act(&mut mistake, &[Action::Edit]);
    mistake.form.editing = Some(TextLine::new("0"));
    mistake.update(Msg::Submit);
    let mut typing = watching();
    typing.form.assign("train.micro_batch", "4").unwrap();
    act(&mut typing, &[Action::Edit]);
    typed(&mut typing, "0");
    let mut large = watching();
    large.form.assign("model.preset", "tinyllama-1.1b").unwrap();
    large.form.assign("train.micro_batch", "1").unwrap();
    let mut plan = watching();
    plan.focus.set(Screen::Setup, Panel::Plan);
    vec![
        ("setup", changed),
        ("first_setup", fresh(Screen::Setup)),
        ("setup_classification", classification),
        ("setup_mistake", mistake),
        ("setup_typing", typing),
        ("setup_large", large),
        ("setup_plan", plan),
    ]
}

/// The list of runs and what is made of it.
pub(super) fn runs() -> Vec<Named> {
    let mut scatter = recorded::watching(Screen::Runs, "adamw");
    act(&mut scatter, &[Action::SortPrevious, Action::Scatter]);
    let mut filtered = scatter.clone();
    act(&mut filtered, &[Action::Filter]);
    typed(&mut filtered, "adaf");
    let mut queued = recorded::watching(Screen::Runs, "adamw");
    let mut rows = recorded::run_rows();
    rows[0].state = "queued".into();
    (rows[1].state, rows[1].val_loss) = ("failed".into(), None);
    rows[2].problem = Some("run.toml cannot be read".into());
    queued.update(Msg::Runs(rows));
    let mut fork = recorded::watching(Screen::Runs, "adamw");
    let mut rows = recorded::run_rows();
    let run = rows[2].id.clone();
    rows[1].forked_from = Some(Lineage { run, update: 100, tokens: 100 * 1024, time: 10.0 });
    rows[1].note = Some("warm start from AdamW's second moment".into());
    fork.update(Msg::Runs(rows));
    act(&mut fork, &[Action::AlignFork]);
    vec![
        ("runs_fork", fork),
        ("runs", recorded::watching(Screen::Runs, "adamw")),
        ("runs_scatter", scatter),
        ("runs_filtered", filtered),
        ("runs_queued", queued),
        ("empty_runs", fresh(Screen::Runs)),
    ]
}

/// What lies over a screen.
pub(super) fn overlays() -> Vec<Named> {
    let over = |overlay: Overlay| {
        let mut state = recorded::watching(Screen::Train, "adamw");
        // What lies below is another picture's subject.
        (state.run, state.watching) = Default::default();
        state.overlay = overlay;
        state
    };
    let lists = |state: &mut State, action: Action| {
        state.update(Msg::Action(action));
    };
    let mut delete = recorded::watching(Screen::Runs, "adamw");
    (delete.runs.scatter, delete.runs.marked) = (true, Vec::new());
    delete.runs.select(2);
    lists(&mut delete, Action::Delete);
    let mut unqueue = recorded::watching(Screen::Runs, "adamw");
    let mut rows = recorded::run_rows();
    rows[0].state = "queued".into();
    unqueue.update(Msg::Runs(rows));
    lists(&mut unqueue, Action::Unqueue);
    let mut search = over(Overlay::None);
    lists(&mut search, Action::SearchHelp);
    typed(&mut search, "memory");
    let mut notice = over(Overlay::None);
    notice.say(
        "a fork of run 20260301T101500-demo at update 600 that ends with it makes no update: set train.max_updates to \
         more than 600",
        true,
    );
    let check = |answer| Overlay::Check(Check { number: 1, of: "run demo".into(), answer });
    let palette = |text: &str| Overlay::Palette(Palette { line: TextLine::new(text), ..Palette::default() });
    let wrong = Overlay::Palette(Palette {
        line: TextLine::new("lr fast"),
        error: Some("`fast` is not a learning rate: write for example `:lr 1e-4`".into()),
        ..Palette::default()
    });
    let updates = vec![600, 400, 200];
    let fork = over(Overlay::Fork(Choice { run: "a".into(), name: "demo".into(), updates, selected: 1 }));
    let mut quit_other = queued();
    lists(&mut quit_other, Action::Quit);
    let mut written = over(Overlay::Samples { back: 1, scroll: 0 });
    written.run.samples.extend([250, 300, 350].map(recorded::sample));
    vec![
        ("help", over(Overlay::Help { scroll: 0 })),
        ("help_end", over(Overlay::Help { scroll: 1000 })),
        ("help_search", search),
        ("long_notice", notice),
        ("palette", over(palette("lr 1e-4"))),
        ("palette_all", over(palette(""))),
        ("palette_wrong", over(wrong)),
        ("fork", fork),
        ("quit", over(Overlay::Quit)),
        ("quit_other", quit_other),
        ("start_beside", over(Overlay::StartBeside)),
        ("delete", delete),
        ("unqueue", unqueue),
        ("check_running", over(check(None))),
        ("check", over(check(Some(Ok(Box::new(recorded::check())))))),
        ("check_failed", over(check(Some(Err("texts/a.txt is empty: give a file with text in it".into()))))),
        ("samples_none", over(Overlay::Samples { back: 0, scroll: 0 })),
        ("samples", written),
    ]
}
