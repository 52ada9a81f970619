//! The loop: drain what came, update, draw when something changed, wait for a key.

mod effects;
mod farewell;

use std::{
    io,
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
    Launch, Start,
    check::Checking,
    load::{Job, Loader},
    outside::Outside,
    reference,
    replay::Replay,
    signals::Signals,
    terminal::{Guard, Wants},
    watch::Watch,
    watchdog::Watchdog,
};
use crate::{
    app::{Msg, State, action::Action, room::Room},
    config::DeviceName,
    run::{Home, Queue, RunDir},
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

    /// How the screens look now.
    fn theme(&self) -> Theme {
        self.theme.named(self.state.theme)
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
}
