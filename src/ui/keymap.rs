//! The one table of keys: it drives what a key does, the help overlay and the hints at the bottom. What a person's own
//! settings make of it is a [`Keymap`].

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::keys::{Key, Keymap, Row};
use crate::app::{
    Msg, State,
    action::{Action, Screen},
    focus::{Context, Panel},
    input::Input,
};

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    pub context: Context,
    pub keys: &'static [Key],
    pub action: Action,
    /// The word in the hints at the bottom; empty: not shown there.
    pub hint: &'static str,
}

const fn key(code: KeyCode) -> Key {
    Key { code, control: false }
}

const fn letter(c: char) -> Key {
    key(KeyCode::Char(c))
}

const fn bind(context: Context, keys: &'static [Key], action: Action, hint: &'static str) -> Binding {
    Binding { context, keys, action, hint }
}

use Context::{
    Check, Delete, Fork, Global, Help, Quit, Runs, Samples, Setup, StartBeside, State as Tensors, Train,
    Unqueue,
};

/// Every key, in the order of the help.
pub const BINDINGS: &[Binding] = &[
    bind(Train, &[letter('p'), letter(' ')], Action::PauseResume, "pause"),
    bind(Train, &[letter('.')], Action::StepUpdate, ""),
    bind(Train, &[letter(',')], Action::StepMicroBatch, ""),
    bind(Train, &[letter('c')], Action::Checkpoint, "checkpoint"),
    bind(Train, &[letter('x')], Action::Stop, "stop"),
    bind(Train, &[letter('y')], Action::LogAxis, "log y"),
    bind(Train, &[letter('S')], Action::Smoothing, "smooth"),
    bind(Train, &[letter('t')], Action::NextXAxis, "x axis"),
    bind(Train, &[letter('+'), letter('=')], Action::ZoomIn, ""),
    bind(Train, &[letter('-')], Action::ZoomOut, ""),
    bind(Train, &[letter('<')], Action::Earlier, ""),
    bind(Train, &[letter('>')], Action::Later, ""),
    bind(Train, &[letter('0')], Action::WholeRun, ""),
    bind(Train, &[letter('X')], Action::LogX, ""),
    bind(Train, &[letter('o')], Action::Overlay, "overlay"),
    bind(Train, &[letter('w')], Action::Samples, "texts"),
    bind(Train, &[letter('R')], Action::ResumeRun, ""),
    bind(Tensors, &[letter('p'), letter(' ')], Action::PauseResume, ""),
    bind(Tensors, &[letter('.')], Action::StepUpdate, ""),
    bind(Tensors, &[letter(',')], Action::StepMicroBatch, ""),
    bind(Tensors, &[letter('/')], Action::Filter, "filter"),
    bind(Tensors, &[letter('n')], Action::NextMatch, ""),
    bind(Tensors, &[letter('N')], Action::PreviousMatch, ""),
    bind(Tensors, &[letter('>')], Action::SortNext, "sort"),
    bind(Tensors, &[letter('<')], Action::SortPrevious, ""),
    bind(Tensors, &[letter('r')], Action::SortReverse, "reverse"),
    bind(Tensors, &[letter('L')], Action::GroupLayers, "layers"),
    bind(Tensors, &[key(KeyCode::Enter)], Action::Open, "open"),
    bind(Tensors, &[letter('v')], Action::NextView, ""),
    bind(Tensors, &[letter('b')], Action::Beside, ""),
    bind(Setup, &[letter('s'), key(KeyCode::Enter)], Action::Start, "start"),
    bind(Setup, &[letter('Q')], Action::Queue, "queue"),
    bind(Setup, &[letter('e')], Action::Edit, "edit"),
    bind(Setup, &[letter('o')], Action::NextOptimizer, "optimizer"),
    bind(Setup, &[letter(']')], Action::AccumulateUp, ""),
    bind(Setup, &[letter('[')], Action::AccumulateDown, "accumulate"),
    bind(Setup, &[key(KeyCode::Backspace), key(KeyCode::Delete)], Action::Reset, "reset"),
    bind(Setup, &[letter('R')], Action::Recent, "recent"),
    bind(Runs, &[letter('m'), letter(' ')], Action::Mark, "mark"),
    bind(Runs, &[key(KeyCode::Enter)], Action::Open, "watch"),
    bind(Runs, &[letter('d'), key(KeyCode::Delete)], Action::Unqueue, ""),
    bind(Runs, &[letter('/')], Action::Filter, "filter"),
    bind(Runs, &[letter('>')], Action::SortNext, "sort"),
    bind(Runs, &[letter('<')], Action::SortPrevious, ""),
    bind(Runs, &[letter('o')], Action::SortReverse, ""),
    bind(Runs, &[letter('w')], Action::Scatter, "memory"),
    bind(Runs, &[letter('R')], Action::ResumeRun, "resume"),
    bind(Runs, &[letter('F')], Action::Fork, "fork"),
    bind(Runs, &[letter('E'), key(KeyCode::F(2))], Action::Rename, ""),
    bind(Runs, &[letter('a')], Action::Note, ""),
    bind(Runs, &[letter('z')], Action::AlignFork, ""),
    bind(Runs, &[letter('D')], Action::Delete, "delete"),
    bind(Runs, &[letter('r')], Action::Refresh, ""),
    bind(Runs, &[letter('y')], Action::LogAxis, "log y"),
    bind(Runs, &[letter('S')], Action::Smoothing, "smooth"),
    bind(Runs, &[letter('t')], Action::NextXAxis, "x axis"),
    bind(Quit, &[letter('d')], Action::Detach, ""),
    bind(Quit, &[letter('s')], Action::StopAndLeave, ""),
    bind(Quit, &[key(KeyCode::Esc), letter('c')], Action::Back, ""),
    bind(StartBeside, &[key(KeyCode::Enter), letter('s')], Action::Start, ""),
    bind(StartBeside, &[letter('Q')], Action::Queue, ""),
    bind(StartBeside, &[key(KeyCode::Esc), letter('c')], Action::Back, ""),
    bind(Unqueue, &[key(KeyCode::Enter), letter('d')], Action::Unqueue, ""),
    bind(Unqueue, &[key(KeyCode::Esc), letter('c')], Action::Back, ""),
    bind(Delete, &[letter('d'), key(KeyCode::Enter)], Action::Delete, ""),
    bind(Delete, &[key(KeyCode::Esc), letter('c')], Action::Back, ""),
    bind(Fork, &[key(KeyCode::Enter), letter('F')], Action::Fork, ""),
    bind(Fork, &[key(KeyCode::Esc), letter('c')], Action::Back, ""),
    bind(Help, &[key(KeyCode::Esc), letter('q')], Action::Back, ""),
    bind(Help, &[letter('/')], Action::SearchHelp, ""),
    bind(Check, &[key(KeyCode::Esc), letter('q')], Action::Back, ""),
    bind(Samples, &[key(KeyCode::Left), letter('h')], Action::Left, ""),
    bind(Samples, &[key(KeyCode::Right), letter('l')], Action::Right, ""),
    bind(Samples, &[key(KeyCode::Esc), letter('q'), letter('w')], Action::Back, ""),
    bind(Global, &[letter('1')], Action::Show(Screen::Train), ""),
    bind(Global, &[letter('2')], Action::Show(Screen::State), ""),
    bind(Global, &[letter('3')], Action::Show(Screen::Setup), ""),
    bind(Global, &[letter('4')], Action::Show(Screen::Runs), ""),
    bind(Global, &[key(KeyCode::Tab)], Action::FocusNext, "focus"),
    bind(Global, &[key(KeyCode::BackTab)], Action::FocusPrevious, ""),
    bind(Global, &[letter('e')], Action::Zoom, "zoom"),
    bind(Global, &[key(KeyCode::Enter)], Action::Open, ""),
    bind(Global, &[letter('f')], Action::Freeze, "freeze"),
    bind(Global, &[letter('p')], Action::PauseResume, ""),
    bind(Global, &[letter('x')], Action::Stop, ""),
    bind(Global, &[letter('c')], Action::Checkpoint, ""),
    bind(Global, &[letter('s')], Action::Start, ""),
    bind(Global, &[letter('/')], Action::Filter, ""),
    bind(Global, &[letter('A')], Action::CheckAccumulation, ""),
    bind(Global, &[letter('T')], Action::Theme(None), ""),
    bind(Global, &[letter('Y')], Action::Copy, ""),
    bind(Global, &[letter('C')], Action::CopyCommand, ""),
    bind(Global, &[letter(':')], Action::Palette, "commands"),
    bind(Global, &[letter('?'), key(KeyCode::F(1))], Action::Help, "help"),
    bind(Global, &[letter('q')], Action::Quit, "quit"),
    bind(Global, &[Key { code: KeyCode::Char('c'), control: true }], Action::Interrupt, ""),
    bind(Global, &[Key { code: KeyCode::Char('z'), control: true }], Action::Suspend, ""),
    bind(Global, &[key(KeyCode::Esc)], Action::Back, ""),
    bind(Global, &[key(KeyCode::Up), letter('k')], Action::Up, ""),
    bind(Global, &[key(KeyCode::Down), letter('j')], Action::Down, ""),
    bind(Global, &[key(KeyCode::Left), letter('h')], Action::Left, ""),
    bind(Global, &[key(KeyCode::Right), letter('l')], Action::Right, ""),
    bind(Global, &[key(KeyCode::PageUp)], Action::PageUp, ""),
    bind(Global, &[key(KeyCode::PageDown)], Action::PageDown, ""),
    bind(Global, &[key(KeyCode::Home), letter('g')], Action::Home, ""),
    bind(Global, &[key(KeyCode::End), letter('G')], Action::End, ""),
];

/// The name of a context in the help.
pub const fn heading(context: Context) -> &'static str {
    match context {
        Context::Global => "Everywhere",
        Context::Train => "Train",
        Context::State => "State",
        Context::Setup => "Setup",
        Context::Runs => "Runs",
        Context::Help => "Help",
        Context::Quit => "Leaving a live run",
        Context::StartBeside => "Starting beside a live run",
        Context::Unqueue => "Leaving the queue",
        Context::Delete => "Deleting a run",
        Context::Fork => "Forking a run",
        Context::Check => "Accumulation check",
        Context::Samples => "Texts the model wrote",
        Context::Text => "Typing",
        Context::Palette => "Commands",
    }
}

/// What a key does where the UI is now.
pub fn translate(keys: &Keymap, state: &State, event: KeyEvent) -> Option<Msg> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let key = Key { code: event.code, control: event.modifiers.contains(KeyModifiers::CONTROL) };
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let context = state.context();
    if matches!(context, Context::Text | Context::Palette) {
        return typed(context, key);
    }
    let action = lookup(keys, context, key)?;
    // Enter opens what has the focus: there is nothing to start in the plan, but it can be enlarged.
    let plan = action == Action::Start && context == Setup && state.panel() == Panel::Plan;
    Some(Msg::Action(if plan && key.code == KeyCode::Enter { Action::Open } else { action }))
}

/// The action of a key: the context's own, else the one that holds everywhere.
pub fn lookup(keys: &Keymap, context: Context, key: Key) -> Option<Action> {
    let everywhere = || keys.find(Context::Global, key).filter(|action| reaches(context, *action));
    keys.find(context, key).or_else(everywhere)
}

/// Whether a key that holds everywhere holds there, too.
pub(super) fn reaches(context: Context, action: Action) -> bool {
    let overlaid = matches!(context, Help | Quit | StartBeside | Unqueue | Delete | Fork | Check | Samples);
    // Under an overlay a key must not reach the run.
    let harmless = matches!(
        action,
        Action::Help
            | Action::Back
            | Action::Interrupt
            | Action::Suspend
            | Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::Home
            | Action::End
    );
    !overlaid || harmless
}

/// While a line is typed every key belongs to it but Esc, Enter, Tab and Ctrl+C.
fn typed(context: Context, key: Key) -> Option<Msg> {
    let msg = match (key.code, key.control) {
        (KeyCode::Char('c'), true) => Msg::Action(Action::Interrupt),
        (KeyCode::Char('z'), true) => Msg::Action(Action::Suspend),
        (KeyCode::Char('u'), true) => Msg::Input(Input::Clear),
        (KeyCode::Char('a'), true) => Msg::Input(Input::Home),
        (KeyCode::Char('e'), true) => Msg::Input(Input::End),
        (KeyCode::Char(_), true) => return None,
        (KeyCode::Char(c), false) => Msg::Input(Input::Char(c)),
        (KeyCode::Enter, _) => Msg::Submit,
        (KeyCode::Tab, _) => Msg::SubmitAndNext,
        (KeyCode::Esc, _) => Msg::Cancel,
        (KeyCode::Up, _) if context == Context::Palette => Msg::Action(Action::Up),
        (KeyCode::Down, _) if context == Context::Palette => Msg::Action(Action::Down),
        (KeyCode::PageUp, _) if context == Context::Palette => Msg::Action(Action::PageUp),
        (KeyCode::PageDown, _) if context == Context::Palette => Msg::Action(Action::PageDown),
        (KeyCode::Backspace, _) => Msg::Input(Input::Backspace),
        (KeyCode::Delete, _) => Msg::Input(Input::Delete),
        (KeyCode::Left, _) => Msg::Input(Input::Left),
        (KeyCode::Right, _) => Msg::Input(Input::Right),
        (KeyCode::Home, _) => Msg::Input(Input::Home),
        (KeyCode::End, _) => Msg::Input(Input::End),
        _ => return None,
    };
    Some(msg)
}

/// A key and a word at the bottom of the screen, and what a click on them does.
#[derive(Debug, Clone)]
pub struct Hint {
    pub key: String,
    pub word: &'static str,
    pub msg: Option<Msg>,
}

/// Keys and words for the bottom of the screen.
pub fn hints(keys: &Keymap, context: Context) -> Vec<Hint> {
    let fixed = |key: &str, word, msg| Hint { key: key.to_owned(), word, msg };
    let back = |word| keys.first(Action::Back, context).map(|key| (key.to_string(), word));
    let back = |word| back(word).map(|(key, word)| fixed(&key, word, Some(Msg::Action(Action::Back))));
    let both = |one: Action, other: Action, word| match [one, other].map(|action| keys.first(action, context))
    {
        [Some(one), Some(other)] => Some(fixed(&format!("{one}/{other}"), word, None)),
        _ => None,
    };
    match context {
        Context::Text => {
            return vec![
                fixed("Enter", "take", Some(Msg::Submit)),
                fixed("Tab", "take, next", Some(Msg::SubmitAndNext)),
                fixed("Esc", "drop", Some(Msg::Cancel)),
                fixed("Ctrl+U", "clear", Some(Msg::Input(Input::Clear))),
            ];
        }
        Context::Palette => {
            return vec![
                fixed("Enter", "do", Some(Msg::Submit)),
                fixed("Up/Down", "choose", None),
                fixed("Esc", "close", Some(Msg::Cancel)),
            ];
        }
        Context::Help => {
            let search = keys.first(Action::SearchHelp, context);
            let search =
                search.map(|key| fixed(&key.to_string(), "search", Some(Msg::Action(Action::SearchHelp))));
            return both(Action::Up, Action::Down, "scroll")
                .into_iter()
                .chain(search)
                .chain(back("close"))
                .collect();
        }
        Context::Check => return back("close").into_iter().collect(),
        Context::Fork => {
            let draft = keys.first(Action::Fork, context);
            let draft = draft.map(|key| fixed(&key.to_string(), "draft it", Some(Msg::Action(Action::Fork))));
            return both(Action::Up, Action::Down, "choose")
                .into_iter()
                .chain(draft)
                .chain(back("cancel"))
                .collect();
        }
        Context::Samples => {
            let turn = both(Action::Left, Action::Right, "earlier, later");
            let scroll = both(Action::Up, Action::Down, "scroll");
            return turn.into_iter().chain(scroll).chain(back("close")).collect();
        }
        Context::Quit | Context::StartBeside | Context::Unqueue | Context::Delete => {
            return back("cancel").into_iter().collect();
        }
        _ => {}
    }
    // The context's own keys first; help and quit are wanted most of the others. A key that means something of its own
    // here means that.
    let free = |row: &&Row| row.keys.first().is_some_and(|key| keys.find(context, *key).is_none());
    let own = shown(keys, context).filter_map(|row| {
        let mut hint = hint(row)?;
        // The keys that go up and down share a word.
        if let (Action::AccumulateDown, Some(up)) = (row.action, keys.first(Action::AccumulateUp, context)) {
            hint.key = format!("{} {up}", hint.key);
        }
        Some(hint)
    });
    let mut own: Vec<Hint> = own.collect();
    if context == Setup {
        // No key does what words must follow.
        let at = own.iter().position(|hint| hint.word == "reset").unwrap_or(own.len());
        own.insert(at, fixed(":grid", "", Some(Msg::Command("grid "))));
    }
    own.into_iter().chain(shown(keys, Global).rev().filter(free).filter_map(hint)).collect()
}

/// The same while a parameter is opened, where the keys of the table have nothing to do.
pub fn opened_hints(keys: &Keymap) -> Vec<Hint> {
    let own = [(Action::NextView, "side"), (Action::Beside, "beside a run"), (Action::Back, "close")];
    let own = own.into_iter().filter_map(|(action, word)| {
        let key = keys.first(action, Tensors)?.to_string();
        Some(Hint { key, word, msg: Some(Msg::Action(action)) })
    });
    own.chain(shown(keys, Global).rev().filter_map(hint)).collect()
}

/// The rows of one context that have a word at the bottom.
fn shown(keys: &Keymap, context: Context) -> impl DoubleEndedIterator<Item = &Row> {
    keys.rows().iter().filter(move |row| row.context == context && !row.hint.is_empty())
}

fn hint(row: &Row) -> Option<Hint> {
    let key = row.keys.first()?.to_string();
    Some(Hint { key, word: row.hint, msg: Some(Msg::Action(row.action)) })
}

#[cfg(test)]
mod tests;
