//! The loop: drain what came, update, draw when something changed, wait for a key.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::Ordering::SeqCst,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use crossterm::event::{self, Event};
use ratatui::layout::Rect;

use super::{
    Launch, Start, apart,
    check::Checking,
    draft,
    load::{Job, Loader},
    outside::Outside,
    picture, reference,
    replay::Replay,
    room,
    signals::Signals,
    terminal::{Guard, Wants},
    watch::Watch,
    watchdog::Watchdog,
};
use crate::{
    app::{Effect, Msg, State, action::Action, room::Room, run::Status},
    config::{DeviceName, own},
    run::{
        Home, Queue, RunDir, launch,
        text::{plain_lines, shell_word},
    },
    ui::{self, theme::Theme},
};

/// Least time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(100);
/// Messages that may wait, a piece of a record each; the threads that read wait when there are more, the run does not.
const WAITING: usize = 4;
/// How long keys are waited for while messages come one after the other.
const CATCH_UP: Duration = Duration::from_millis(1);
/// Exit code when the terminal is gone.
const HUNG_UP: i32 = 129;

/// Opens the UI and returns the exit code when it is left.
///
/// # Errors
/// The terminal cannot be used or the draft's base cannot be resolved.
pub fn run(launch: Launch) -> anyhow::Result<i32> {
    let mut state = launch.state()?;
    // What was queued before a reboot, or before its runner was killed, goes on.
    if !launch.readonly
        && let Err(error) = Queue::of(&launch.home).wake()
    {
        state.say(format!("the queued runs cannot be started: {error:#}"), true);
    }
    let signals = Signals::register()?;
    let theme = launch.look();
    let (sender, messages) = sync_channel(WAITING);
    let mut session = Session {
        loader: Loader::start(launch.home.clone(), sender.clone())?,
        home: launch.home,
        readonly: launch.readonly,
        gpu: launch.gpu,
        state,
        theme,
        sender,
        messages,
        checking: None,
        watch: None,
        replay: None,
        watched: None,
        watches: 0,
        started: Instant::now(),
        code: None,
        suspend: false,
        outside: Outside::new(launch.call, launch.title),
        resized: false,
    };
    if let Start::Watch(run) = launch.start {
        match launch.replay {
            Some(speed) => session.replay(run, speed),
            None => session.follow(run),
        }
    }
    let watchdog = Watchdog::start(Arc::clone(&signals.hangup), HUNG_UP, Arc::clone(&signals.interrupt))?;
    let mut guard = Guard::take(Wants { mouse: launch.mouse, title: launch.title })?;
    let outcome = session.run(&mut guard, &signals, &watchdog);
    watchdog.dismiss();
    drop(guard);
    session.farewell();
    outcome
}

struct Session {
    home: Home,
    readonly: bool,
    gpu: fn(DeviceName) -> Option<Room>,
    state: State,
    theme: Theme,
    sender: SyncSender<(u64, Msg)>,
    messages: Receiver<(u64, Msg)>,
    loader: Loader,
    checking: Option<Checking>,
    watch: Option<Watch>,
    replay: Option<Replay>,
    watched: Option<RunDir>,
    /// Number of the present watch; messages of earlier ones are dropped.
    watches: u64,
    started: Instant,
    code: Option<i32>,
    /// Ctrl+Z was pressed.
    suspend: bool,
    outside: Outside,
    /// The terminal has another size: it may have lost what it showed.
    resized: bool,
}

impl Session {
    fn run(&mut self, guard: &mut Guard, signals: &Signals, watchdog: &Watchdog) -> anyhow::Result<i32> {
        let mut drawn = None;
        let mut area = Rect::default();
        self.loader.ask(Job::Runs);
        loop {
            watchdog.turn();
            self.drain();
            if signals.hangup.load(SeqCst) {
                // The terminal may be gone; the run goes on without us.
                return Ok(HUNG_UP);
            }
            if signals.suspend.swap(false, SeqCst) || std::mem::take(&mut self.suspend) {
                guard.suspend()?;
                signals.goes_on.store(false, SeqCst);
                self.outside.forget();
                drawn = None;
            } else if signals.goes_on.swap(false, SeqCst) {
                guard.retake()?;
                self.outside.forget();
                drawn = None;
            }
            if signals.interrupt.swap(false, SeqCst) {
                self.update(Msg::Action(Action::Interrupt));
            }
            self.update(Msg::Tick { now: self.started.elapsed().as_secs_f64() });
            if let Some(code) = self.code {
                return Ok(code);
            }
            for sequence in self.outside.take(&self.state) {
                guard.glass.say(&sequence)?;
            }
            if drawn != Some(self.state.revision) {
                if std::mem::take(&mut self.resized) {
                    guard.glass.clear()?;
                }
                area = guard.glass.draw(&self.state, &self.theme())?;
                let known = drawn.is_some();
                drawn = Some(self.state.revision);
                if !known {
                    self.update(Msg::Size { width: area.width, height: area.height });
                }
            }
            if self.wait_for_input(Instant::now() + FRAME)? {
                // All that was typed so far belongs to one frame.
                loop {
                    self.input(event::read()?, area);
                    if self.code.is_some() || self.suspend || !event::poll(Duration::ZERO)? {
                        break;
                    }
                }
            }
        }
    }

    /// Whether there is something to read before it is time for the next frame. What the threads tell meanwhile is taken,
    /// so that a long record does not pile up while nothing else happens.
    fn wait_for_input(&mut self, until: Instant) -> io::Result<bool> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let comes = self.drain();
            if event::poll(if comes { left.min(CATCH_UP) } else { left })? {
                return Ok(true);
            }
            if !comes || left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// Takes what the threads have told; returns whether there was anything.
    fn drain(&mut self) -> bool {
        // Bounded, so that a run that writes faster than it is read cannot keep the keys waiting.
        for taken in 0..WAITING {
            let Ok((number, msg)) = self.messages.try_recv() else { return taken > 0 };
            if let Msg::Started { run, notes } = &msg {
                match RunDir::open(run) {
                    Ok(run) => self.follow(run),
                    Err(error) => self.update(Msg::Failed(error.to_string())),
                }
                if !notes.is_empty() {
                    self.update(Msg::Done(notes.join("; ")));
                }
            } else if number == 0 || number == self.watches {
                self.update(msg);
            }
        }
        true
    }

    fn input(&mut self, event: Event, area: Rect) {
        match event {
            Event::Key(key) => {
                if let Some(msg) = ui::pressed(&self.state, &self.theme(), area, key) {
                    self.update(msg);
                }
            }
            Event::Mouse(mouse) => {
                for msg in ui::mouse::messages(&self.state, &self.theme(), area, mouse) {
                    self.update(msg);
                }
            }
            Event::Resize(width, height) => {
                self.resized = true;
                self.update(Msg::Size { width, height });
            }
            Event::FocusGained | Event::FocusLost | Event::Paste(_) => {}
        }
    }

    fn update(&mut self, msg: Msg) {
        for effect in self.state.update(msg) {
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Quit { code } => self.code = Some(code),
            Effect::PauseReplay { paused } => {
                if let Some(replay) = &self.replay {
                    replay.pause(paused);
                }
            }
            Effect::Suspend => self.suspend = true,
            Effect::Send { id, command } => {
                if let Some(watch) = &self.watch {
                    watch.send(id, command);
                }
            }
            Effect::Start { resolved, name } => {
                let home = self.home.clone();
                self.apart("start", move || match launch::start(&home, &resolved, &name) {
                    Ok(run) => Msg::Started { run: run.path().display().to_string(), notes: Vec::new() },
                    Err(error) => Msg::Failed(format!("{error:#}")),
                });
            }
            Effect::Queue { drafts } => {
                let home = self.home.clone();
                self.apart("queue", move || match launch::queue(&home, &drafts) {
                    Ok(runs) => Msg::Queued(Ok(runs.iter().map(RunDir::name).collect())),
                    Err(error) => Msg::Queued(Err(format!("{error:#}"))),
                });
            }
            Effect::Unqueue { run } => {
                let home = self.home.clone();
                self.apart("queue", move || apart::unqueue(&home, &run));
            }
            Effect::Fork { run, update, set, name, queued } => {
                let home = self.home.clone();
                self.apart("fork", move || apart::fork(&home, &run, update, &set, &name, queued));
            }
            Effect::LoadCheckpoints { run } => self.loader.ask(Job::Checkpoints { run }),
            Effect::LoadFork { run, update } => self.loader.ask(Job::ForkBase { run, update }),
            Effect::Relabel { run, label } => self.loader.ask(Job::Relabel { run, label }),
            Effect::StopRun { run } => self.apart("stop", move || apart::stop(&run)),
            Effect::LookAlive { runs } => self.loader.ask(Job::Alive { runs }),
            Effect::Watch { run } => match RunDir::resolve(&self.home, &run) {
                Ok(run) => self.follow(run),
                Err(error) => self.state.say(error.to_string(), true),
            },
            Effect::Unwatch => {
                self.watches += 1;
                (self.watch, self.replay, self.watched) = (None, None, None);
            }
            Effect::Check { number, settings } => {
                match Checking::start(number, settings, self.sender.clone()) {
                    Ok(checking) => self.checking = Some(checking),
                    Err(error) => {
                        let answer = Err(format!("the check cannot be started: {error}"));
                        self.update(Msg::Checked { number, answer });
                    }
                }
            }
            Effect::StopCheck => self.checking = None,
            Effect::LoadRoom { asked, device } => {
                let gpu = self.gpu;
                self.apart("room", move || {
                    let (device, room) = room::of(device, gpu);
                    Msg::Room { asked, device, room }
                });
            }
            Effect::LoadDraft { run } => {
                let home = self.home.clone();
                self.apart("draft", move || {
                    let settings = RunDir::resolve(&home, &run).and_then(|run| run.explicit());
                    Msg::Draft { run, settings: settings.map_err(|error| error.to_string()) }
                });
            }
            Effect::SaveDraft { path, text } => {
                self.apart("draft", move || match draft::save(&path, &text) {
                    Ok(path) => Msg::Done(format!("written: {path}")),
                    Err(error) => Msg::Failed(format!("{error:#}")),
                });
            }
            Effect::Resume { run, set } => {
                let home = self.home.clone();
                self.apart("resume", move || apart::resume(&home, &run, &set));
            }
            Effect::Delete { run } => self.loader.ask(Job::Delete { run }),
            Effect::LoadRuns => self.loader.ask(Job::Runs),
            Effect::LoadCurves { run } => self.loader.ask(Job::Curves { run }),
            Effect::Compare { runs } => self.loader.ask(Job::Compare { runs }),
            Effect::LoadState { run } => self.loader.ask(Job::State { run }),
            Effect::LoadDetail { run, tensor, width } => {
                self.loader.ask(Job::Detail { run, tensor, width });
            }
            Effect::LoadHistory { run, tensor } => self.loader.ask(Job::History { run, tensor }),
            Effect::Export { run, format } => self.loader.ask(Job::Export { run, format }),
            Effect::Picture { path } => {
                let written = picture::write(&self.state, &self.theme(), self.state.size(), path.as_ref());
                let msg = written.map_or_else(
                    |error| Msg::Failed(format!("{error:#}")),
                    |path| Msg::Done(format!("written: {}", path.display())),
                );
                self.update(msg);
            }
            Effect::Copy { what, text } => {
                let (told, error) = self.outside.copy(&what, &text);
                self.state.say(told, error);
            }
            Effect::CopyAgain { run } => match RunDir::resolve(&self.home, &run) {
                Ok(run) => {
                    let (file, name) = (run.run_toml().display().to_string(), run.name());
                    let text =
                        format!("{} run {} --name {}", own::program(), shell_word(&file), shell_word(&name));
                    self.effect(Effect::Copy { what: "the command that trains it again".into(), text });
                }
                Err(error) => self.state.say(error.to_string(), true),
            },
            Effect::Call { text } => self.outside.call(&text),
        }
    }

    /// How the screens look now.
    fn theme(&self) -> Theme {
        self.theme.named(self.state.theme)
    }

    /// Does on a thread of its own what may take longer than a frame.
    fn apart(&mut self, name: &str, work: impl FnOnce() -> Msg + Send + 'static) {
        let sender = self.sender.clone();
        let thread = std::thread::Builder::new().name(name.into());
        // Nobody waits for the answer any more when the UI is gone.
        let spawned = thread.spawn(move || _ = sender.send((0, work())));
        if let Err(error) = spawned {
            self.update(Msg::Failed(format!("no thread can be started: {error}")));
        }
    }

    fn follow(&mut self, run: RunDir) {
        self.watches += 1;
        (self.watch, self.replay) = (None, None);
        self.update(Msg::Watching { run: reference(&run) });
        match Watch::start(run.clone(), self.readonly, self.watches, self.sender.clone()) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => self.state.say(format!("no thread can be started: {error}"), true),
        }
        self.watched = Some(run);
    }

    /// Plays a run's record instead of watching the run.
    fn replay(&mut self, run: RunDir, speed: f64) {
        self.watches += 1;
        self.update(Msg::Watching { run: reference(&run) });
        self.update(Msg::Replaying { speed });
        match Replay::start(run.clone(), speed, self.watches, self.sender.clone()) {
            Ok(replay) => self.replay = Some(replay),
            Err(error) => self.state.say(format!("no thread can be started: {error}"), true),
        }
        self.watched = Some(run);
    }

    /// Says on the normal screen where the run is and how to see it again.
    fn farewell(&self) {
        for run in &self.state.others.runs {
            say(&format!(
                "run {} goes on without the screens\n  stop it:     tui-train stop {}\n",
                run.id, run.id
            ));
        }
        // Whoever stopped a run may take it that nothing trains any more.
        let waiting = Queue::of(&self.home).waiting().unwrap_or_default();
        if let (Some(_), Some(next)) = (self.state.leaving, waiting.first()) {
            let (count, verb) = (waiting.len(), if waiting.len() == 1 { "waits" } else { "wait" });
            say(&format!(
                "the queue goes on: {count} {verb} there, and the next one starts by itself\n  take it out: tui-train stop {next}\n"
            ));
        }
        let (Some(run), Some(status)) = (&self.watched, self.state.status()) else { return };
        let program = own::program();
        let mut text = if status == Status::Queued {
            format!(
                "run {} waits in the queue and starts by itself\n  look again:  {program} attach {}\n  take it out: {program} stop {}\n",
                run.id(),
                run.id(),
                run.id()
            )
        } else if status.is_live() && crate::run::is_live(run) {
            format!(
                "run {} goes on without the screens\n  look again:  {program} attach {}\n  stop it:     {program} stop {}\n",
                run.id(),
                run.id(),
                run.id()
            )
        } else {
            let go_on = match status {
                Status::Ended(reason) if reason.is_complete() => String::new(),
                _ if self.state.replay.is_some() => String::new(),
                _ => format!("  go on:       {program} resume {}\n", run.id()),
            };
            let status = if self.state.replay.is_some() { "replayed" } else { status.as_str() };
            format!(
                "run {}: {}\n{go_on}  look again:  {program} attach {}\n  the figures: {program} show {}\n",
                run.id(),
                status.replace('_', " "),
                run.id(),
                run.id()
            )
        };
        text.push_str(&format!("  its folder:  {}\n", run.path().display()));
        say(&text);
    }
}

/// Lines for the normal screen. The terminal may be gone.
fn say(text: &str) {
    let _ = io::stderr().write_all(plain_lines(text).as_bytes());
}
