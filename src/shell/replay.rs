//! A thread that plays the record of a run that has ended, as fast as it was written or a number of times faster.

use std::{
    collections::VecDeque,
    sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel},
    time::{Duration, Instant},
};

use crate::{
    app::Msg,
    protocol::Event,
    run::{RunDir, Tail, standing},
};

/// Time between two pieces of the record.
const TURN: Duration = Duration::from_millis(40);
/// Bytes of the record that are read at once.
const PIECE: u64 = 1 << 20;
/// Lines of the worker's log that are shown when it died.
const LOG_LINES: usize = 8;

/// The thread's handle; dropping it ends the thread.
#[derive(Debug)]
pub struct Replay {
    pauses: Sender<bool>,
}

impl Replay {
    /// Starts to play. `speed` is seconds of the run in one second. Messages carry `number`, as those of a watch do.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        run: RunDir,
        speed: f64,
        number: u64,
        messages: SyncSender<(u64, Msg)>,
    ) -> std::io::Result<Self> {
        let (pauses, orders) = channel();
        std::thread::Builder::new().name("replay".into()).spawn(move || {
            let mut player = Player::new(&run, speed);
            let (mut paused, mut last) = (false, Instant::now());
            loop {
                let now = Instant::now();
                let passed = if paused { 0.0 } else { (now - last).as_secs_f64() };
                last = now;
                let (events, over) = match player.play(passed) {
                    Ok(played) => played,
                    Err(error) => (vec![], Some(Msg::Failed(format!("the record cannot be read: {error}")))),
                };
                let shown = if events.is_empty() { None } else { Some(Msg::Events(events)) };
                let ends = over.is_some();
                let crash = ends && !player.ended;
                let told = shown.into_iter().chain(over).chain(crash.then(|| crashed(&run)));
                for msg in told {
                    if messages.send((number, msg)).is_err() {
                        return;
                    }
                }
                if ends {
                    return;
                }
                match orders.recv_timeout(TURN) {
                    Ok(order) => paused = order,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Self { pauses })
    }

    /// Stops the clock, or lets it go on.
    pub fn pause(&self, paused: bool) {
        // A replay that is over has no clock.
        let _ = self.pauses.send(paused);
    }
}

fn crashed(run: &RunDir) -> Msg {
    let (told, log) = standing::crash_report(run, LOG_LINES);
    Msg::Crash(std::iter::once(told).chain(log).collect())
}

/// The record, and how much of it has been shown.
struct Player {
    tail: Tail,
    speed: f64,
    /// Events that were read and are not due yet.
    waiting: VecDeque<Event>,
    /// Seconds of the run that have been played.
    clock: f64,
    /// When the last event that was shown is due, by that clock, and the time it carries.
    shown: (f64, f64),
    ended: bool,
}

impl Player {
    fn new(run: &RunDir, speed: f64) -> Self {
        let tail = Tail::open(run);
        Self { tail, speed, waiting: VecDeque::new(), clock: 0.0, shown: (0.0, 0.0), ended: false }
    }

    /// The events that are due after that many seconds more, and a message when they are the last.
    fn play(&mut self, seconds: f64) -> std::io::Result<(Vec<Event>, Option<Msg>)> {
        if seconds > 0.0 {
            self.clock += seconds * self.speed;
        }
        let mut due = Vec::new();
        loop {
            while let Some(event) = self.waiting.front() {
                let at = self.due(event);
                if at.0 > self.clock && self.speed.is_finite() {
                    return Ok((due, None));
                }
                self.shown = at;
                self.ended = match event {
                    Event::RunEnded(_) => true,
                    Event::Resumed { .. } => false,
                    _ => self.ended,
                };
                due.extend(self.waiting.pop_front());
            }
            // One piece a turn at most, so that a pause is obeyed at every speed.
            if !due.is_empty() {
                return Ok((due, None));
            }
            let before = self.tail.position();
            self.tail.each(PIECE, |event| self.waiting.push_back(event))?;
            if self.waiting.is_empty() && self.tail.position() == before {
                return Ok((due, Some(Msg::Alive(false))));
            }
        }
    }

    /// When an event is due by the clock, and the time of the run then. A resumed run goes on from the seconds of its checkpoint.
    fn due(&self, event: &Event) -> (f64, f64) {
        let (due, before) = self.shown;
        match time(event).filter(|time| time.is_finite()) {
            Some(now) => (due + (now - before).max(0.0), now),
            None => (due, before),
        }
    }
}

/// Seconds since the run started, where an event says so.
const fn time(event: &Event) -> Option<f64> {
    match event {
        Event::Update(update) => Some(update.time),
        Event::Validation(validation) => Some(validation.time),
        Event::Sample(sample) => Some(sample.time),
        Event::Host(host) => Some(host.time),
        Event::Alert(alert) => Some(alert.time),
        Event::Checkpoint(checkpoint) => Some(checkpoint.time),
        Event::Command(command) => Some(command.time),
        Event::Snapshot(snapshot) => Some(snapshot.time),
        Event::Header(_) | Event::Window(_) | Event::State(_) | Event::Resumed(_) | Event::RunEnded(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{EventWriter, sample};

    fn updates(events: &[Event]) -> Vec<u64> {
        let update =
            |event: &Event| if let Event::Update(update) = event { Some(update.update) } else { None };
        events.iter().filter_map(update).collect()
    }

    /// A run of ten updates, half a second each.
    fn recorded() -> (tempfile::TempDir, RunDir) {
        let (folder, run) = sample::run("replayed");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        (1..=10).for_each(|update| writer.append(&sample::update(update, 2.0)).unwrap());
        writer.append(&sample::run_ended(&run)).unwrap();
        (folder, run)
    }

    #[test]
    fn events_come_when_their_time_has_come() {
        let (_folder, run) = recorded();
        let mut player = Player::new(&run, 2.0);
        let first = player.play(0.0).unwrap().0;
        assert!(matches!(&first[..], [Event::Header(_)]));
        assert_eq!(updates(&player.play(0.25).unwrap().0), [1]);
        assert_eq!(updates(&player.play(0.1).unwrap().0), [0; 0]);
        assert_eq!(updates(&player.play(0.9).unwrap().0), [2, 3, 4, 5]);
        let (rest, over) = player.play(100.0).unwrap();
        assert_eq!((updates(&rest), over.is_none(), player.ended), (vec![6, 7, 8, 9, 10], true, true));
        assert!(matches!(player.play(0.0).unwrap(), (none, Some(Msg::Alive(false))) if none.is_empty()));
    }

    #[test]
    fn at_most_speed_nothing_waits_for_a_clock() {
        let (_folder, run) = recorded();
        let mut player = Player::new(&run, f64::INFINITY);
        assert_eq!(updates(&player.play(0.0).unwrap().0).len(), 10);
    }

    #[test]
    fn a_resumed_run_plays_on_though_its_seconds_begin_anew() {
        let (_folder, run) = sample::run("resumed");
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        for event in [sample::update(8, 2.0), Event::resumed(8), sample::update(2, 1.0)] {
            writer.append(&event).unwrap();
        }
        let mut player = Player::new(&run, 1.0);
        player.play(4.0).unwrap();
        assert_eq!(player.shown.0, 4.0);
        let (_, over) = player.play(0.0).unwrap();
        assert!(over.is_some() && !player.ended, "it never ended: it crashed");
    }
}
