//! The memory that the device of the draft has free now, and whether the draft fits into it.

use super::{Effect, State, action::Screen};
use crate::config::{Arch, DeviceName, printed::Key};

/// Seconds between two looks at the memory while the draft is shown.
const LOOK_AGAIN: f64 = 5.0;
/// A draft that needs more than this share of what is free is tight: the estimate of its activations may be off by that.
const TIGHT: f64 = 0.8;
/// Less than this share of the whole is no change that is worth a frame.
const NOISE: u64 = 200;

/// Memory of a device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub total: u64,
    pub free: u64,
}

/// Whether something has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Fits,
    Tight,
    DoesNot,
}

impl Fit {
    /// The words on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::DoesNot => "does not fit",
        }
    }
}

impl Room {
    /// Whether so many bytes have room in what is free.
    pub fn fit(self, bytes: u64) -> Fit {
        match bytes as f64 / self.free as f64 {
            _ if bytes > self.free => Fit::DoesNot,
            share if share > TIGHT => Fit::Tight,
            _ => Fit::Fits,
        }
    }
}

/// What was asked and told of the memory of the draft's device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rooms {
    /// The device that was asked for, and when, in seconds of the UI's clock.
    asked: Option<(DeviceName, f64)>,
    /// An answer is on its way.
    waiting: bool,
    /// The device that was asked for, the one that it is, and its memory.
    told: Option<(DeviceName, DeviceName, Option<Room>)>,
    /// When the memory of this machine was asked for beside a run that trains on its processor.
    machine_asked: Option<f64>,
    /// It is what the answer that is on its way tells.
    of_machine: bool,
    /// The memory of this machine, as it was told last.
    machine: Option<Room>,
}

impl State {
    /// The draft's device. By itself a task of its own trains in the program that has it, which is on flex.
    fn wanted_device(&self) -> DeviceName {
        let config = &self.form.resolved.config;
        match config.train.device {
            DeviceName::Auto if config.model.arch == Arch::Own => DeviceName::Flex,
            named => named,
        }
    }

    /// The device that the draft would train on and its memory, as far as that is known.
    pub fn room(&self) -> Option<(DeviceName, Room)> {
        let wanted = self.wanted_device();
        let (asked, is, room) = self.rooms.told?;
        (asked == wanted).then_some(()).and(room).map(|room| (is, room))
    }

    /// The memory of this machine, while the watched run trains on its processor: what is free changes with all that runs
    /// here, and of a run that has ended nobody knows what was free then.
    pub fn machine(&self) -> Option<Room> {
        self.rooms.machine.filter(|_| self.trains_on_processor())
    }

    fn trains_on_processor(&self) -> bool {
        self.is_live() && self.run.header.as_ref().is_some_and(|header| !on_gpu(&header.device))
    }

    /// What the draft has otherwise than the last run: key, value here and value there. A device that was chosen by
    /// itself and came to the same is no change.
    pub fn changes(&self) -> Vec<(Key, String, String)> {
        let wanted = self.wanted_device();
        let is = self.rooms.told.filter(|(asked, ..)| *asked == wanted).map(|(_, is, _)| is.to_string());
        let mut changes = self.form.differences();
        changes.retain(|(key, _, there)| {
            *key != "train.device" || is.as_deref() != Some(there.trim_matches('"'))
        });
        changes
    }

    /// Whether the draft has room on its device, as far as that is known.
    pub fn fit(&self) -> Option<Fit> {
        let (_, room) = self.room()?;
        Some(room.fit(self.form.ledger()?.total_bytes_estimated))
    }

    /// Asks for the memory of the draft's device while the draft is shown, at once when it is another device, else now and
    /// then; and for that of this machine while a run is shown that trains on its processor.
    pub(super) fn ask_room(&mut self) -> Option<Effect> {
        if self.rooms.waiting {
            return None;
        }
        if self.screen == Screen::Train && self.trains_on_processor() {
            return self.ask_machine();
        }
        if self.screen != Screen::Setup {
            return None;
        }
        let wanted = self.wanted_device();
        let known = self.rooms.asked.filter(|(device, _)| *device == wanted);
        if known.is_some_and(|(_, asked)| self.now - asked < LOOK_AGAIN) {
            return None;
        }
        (self.rooms.asked, self.rooms.waiting) = (Some((wanted, self.now)), true);
        // What `auto` comes to is found out once.
        let is = self.rooms.told.filter(|(asked, ..)| *asked == wanted).map_or(wanted, |(_, is, _)| is);
        Some(Effect::LoadRoom { asked: wanted, device: is })
    }

    fn ask_machine(&mut self) -> Option<Effect> {
        let now = self.now;
        if self.rooms.machine_asked.is_some_and(|asked| now - asked < LOOK_AGAIN) {
            return None;
        }
        self.rooms.machine_asked = Some(now);
        (self.rooms.of_machine, self.rooms.waiting) = (true, true);
        Some(Effect::LoadRoom { asked: DeviceName::Flex, device: DeviceName::Flex })
    }

    /// Takes the answer. Returns whether the screen says something else now.
    pub(super) fn room_told(&mut self, asked: DeviceName, is: DeviceName, room: Option<Room>) -> bool {
        self.rooms.waiting = false;
        let far =
            |old: Room, new: Room| old.total != new.total || old.free.abs_diff(new.free) > old.total / NOISE;
        let mut seen = false;
        if !matches!(is, DeviceName::LibtorchCuda(_))
            && let Some(new) = room
            && self.rooms.machine.is_none_or(|old| far(old, new))
        {
            self.rooms.machine = Some(new);
            seen = self.screen == Screen::Train;
        }
        // The draft may be of another device.
        if std::mem::take(&mut self.rooms.of_machine) {
            return seen;
        }
        let same = match (self.rooms.told, room) {
            (Some((before, was, Some(old))), Some(new)) => (before, was) == (asked, is) && !far(old, new),
            (Some((before, was, None)), None) => (before, was) == (asked, is),
            _ => false,
        };
        if !same {
            self.rooms.told = Some((asked, is, room));
        }
        if asked == DeviceName::Auto {
            self.form.auto_is(is);
        }
        !same
    }
}

/// Whether a device, as a record names it, has memory of its own.
pub fn on_gpu(device: &str) -> bool {
    device.starts_with("libtorch-cuda")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{Msg, Options, form::Earlier, recorded},
        config::Layers,
    };

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_fits_is_held_against_what_is_free() {
        let room = Room { total: 16 * GIB, free: 10 * GIB };
        assert_eq!(room.fit(8 * GIB), Fit::Fits);
        assert_eq!(room.fit(8 * GIB + 1), Fit::Tight);
        assert_eq!(room.fit(10 * GIB), Fit::Tight);
        assert_eq!(room.fit(10 * GIB + 1), Fit::DoesNot, "however much there is in all");
        assert_eq!(Room { total: 0, free: 0 }.fit(1), Fit::DoesNot);
    }

    fn looks(effects: &[Effect]) -> Vec<(DeviceName, DeviceName)> {
        let look = |effect: &Effect| match effect {
            Effect::LoadRoom { asked, device } => Some((*asked, *device)),
            _ => None,
        };
        effects.iter().filter_map(look).collect()
    }

    #[test]
    fn a_device_that_was_chosen_by_itself_is_no_change() {
        let mut state = State::new(Layers::new(), Options::default(), Screen::Setup).unwrap();
        let mut before = state.form.resolved.config.clone();
        before.train.device = DeviceName::Flex;
        state.form.last = Some(Earlier::new("", "before", &before));
        let changed = |state: &State| -> Vec<String> {
            state.changes().into_iter().map(|(key, ..)| key.into_owned()).collect()
        };
        assert_eq!(changed(&state), ["train.device"], "what it comes to is not known yet");
        let told = |device| Msg::Room { asked: DeviceName::Auto, device, room: None };
        state.update(told(DeviceName::Flex));
        assert!(changed(&state).is_empty());
        state.update(told(DeviceName::LibtorchCuda(0)));
        assert_eq!(changed(&state), ["train.device"], "it would train elsewhere than before");
        state.form.assign("train.device", "libtorch-cpu").unwrap();
        assert_eq!(changed(&state), ["train.device"], "and so it would where somebody chose");
    }

    #[test]
    fn the_draft_is_counted_for_what_auto_comes_to() {
        let mut state = State::new(Layers::new(), Options::default(), Screen::Setup).unwrap();
        let total = |state: &State| state.form.ledger().unwrap().total_bytes_estimated;
        let flex = total(&state);
        let revision = state.revision;
        let is = DeviceName::LibtorchCpu;
        state.update(Msg::Room { asked: DeviceName::Auto, device: is, room: None });
        assert!(total(&state) < flex && state.revision > revision);
        let libtorch = total(&state);
        state.form.assign("train.device", "libtorch-cpu").unwrap();
        assert_eq!(total(&state), libtorch, "the plan is that of the run that starts");
        state.form.assign("train.device", "flex").unwrap();
        state.update(Msg::Room { asked: DeviceName::Flex, device: DeviceName::Flex, room: None });
        assert_eq!(total(&state), flex);
        state.form.assign("train.device", "auto").unwrap();
        assert_eq!(total(&state), libtorch);
    }

    #[test]
    fn the_machine_is_looked_at_beside_a_run_on_its_processor() {
        let mut state = recorded::watching(Screen::Train, "adamw");
        let flex = DeviceName::Flex;
        let before = state.room();
        assert_eq!(looks(&state.update(Msg::Tick { now: 7.0 })), [(flex, flex)]);
        assert!(looks(&state.update(Msg::Tick { now: 60.0 })).is_empty(), "the answer is awaited");
        let room = Room { total: 16 * GIB, free: 3 * GIB };
        let revision = state.revision;
        state.update(Msg::Room { asked: flex, device: flex, room: Some(room) });
        assert!(state.revision > revision);
        assert_eq!(state.machine(), Some(room));
        assert_eq!(state.room(), before, "what is known of the draft's device stays");
        assert_eq!(looks(&state.update(Msg::Tick { now: 61.0 })), [(flex, flex)]);
        let mut gpu = recorded::on_gpu();
        assert!(looks(&gpu.update(Msg::Tick { now: 70.0 })).is_empty());
        assert_eq!(gpu.machine(), None, "that is not where it trains");
        assert_eq!(recorded::short().machine(), None, "it has ended");
    }

    #[test]
    fn it_is_looked_at_while_the_draft_is_shown_and_a_small_change_draws_nothing() {
        let mut state = State::new(Layers::new(), Options::default(), Screen::Setup).unwrap();
        let auto = DeviceName::Auto;
        assert_eq!(looks(&state.update(Msg::Tick { now: 0.0 })), [(auto, auto)]);
        assert!(looks(&state.update(Msg::Tick { now: 60.0 })).is_empty(), "the answer is awaited");
        let answer = |free| Msg::Room {
            asked: auto,
            device: DeviceName::Flex,
            room: Some(Room { total: 16 * GIB, free }),
        };
        state.update(answer(9 * GIB));
        assert_eq!(state.room(), Some((DeviceName::Flex, Room { total: 16 * GIB, free: 9 * GIB })));
        assert_eq!(
            looks(&state.update(Msg::Tick { now: 61.0 })),
            [(auto, DeviceName::Flex)],
            "once is enough"
        );
        let revision = state.revision;
        state.update(answer(9 * GIB + 1000));
        assert_eq!(state.revision, revision);
        state.form.assign("train.device", "libtorch-cuda:1").unwrap();
        assert_eq!(state.room(), None, "that was of another device");
        let cuda = DeviceName::LibtorchCuda(1);
        assert_eq!(looks(&state.update(Msg::Tick { now: 61.1 })), [(cuda, cuda)]);
        state.update(Msg::Room { asked: cuda, device: cuda, room: None });
        assert!(state.room().is_none() && state.revision > revision);
        state.screen = Screen::Train;
        assert!(looks(&state.update(Msg::Tick { now: 99.0 })).is_empty());
    }
}
