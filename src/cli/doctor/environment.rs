//! What surrounds a run: the terminal, the folder that keeps the record, and the device that is always there.

use std::{
    io::IsTerminal,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use rustix::fs::Access;

use super::Check;
use crate::{
    backend::devices,
    config::{Layers, presets, schedule},
    data::{Cursor, Dataset, Windows},
    run::{Home, text},
    ui::{
        layout::{MIN_HEIGHT, MIN_WIDTH},
        theme::{Colours, Theme},
    },
    worker::trainer,
};

/// Free bytes that the checkpoints of a small model need.
const ROOM: u64 = 1 << 30;
/// The demo's model at its smallest, trained for one update: what is checked is this machine, and no task of a program's
/// own, whose data may be anywhere.
const TINY: [&str; 5] = [
    "train.device=flex",
    "train.seq_len=16",
    "train.micro_batch=1",
    "model.num_hidden_layers=1",
    "schedule.warmup_updates=0",
];

pub(super) fn all() -> Vec<Check> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut checks = vec![terminal(&variable), characters(&variable)];
    checks.extend(folder());
    checks.push(flex());
    checks
}

fn terminal(variable: &impl Fn(&str) -> Option<String>) -> Check {
    let name = "terminal";
    if variable("TERM").as_deref() == Some("dumb") {
        let command = Some("export TERM=xterm-256color");
        return Check::note(name, "TERM = dumb: the screens draw with colours and a cursor", command);
    }
    let colours = match Theme::detect(false, variable).colours {
        Colours::None => "no colours (NO_COLOR)",
        Colours::Sixteen => "16 colours",
        Colours::True => "true colour",
    };
    if !std::io::stdout().is_terminal() {
        let found = format!("standard output is no terminal, its size is not known; {colours}");
        return Check::note(name, found, None);
    }
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col < MIN_WIDTH || size.ws_row < MIN_HEIGHT => {
            let found = format!(
                "{}x{} is too small for the screens, which need {MIN_WIDTH}x{MIN_HEIGHT}; {colours}",
                size.ws_col, size.ws_row
            );
            Check::note(name, found, Some("tui-train run --headless"))
        }
        Ok(size) => Check::ok(name, format!("{}x{}, {colours}", size.ws_col, size.ws_row)),
        Err(error) => Check::note(name, format!("its size is not known ({error}); {colours}"), None),
    }
}

/// The first of these that is set decides, as in every program.
fn characters(variable: &impl Fn(&str) -> Option<String>) -> Check {
    let name = "characters";
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| Some((name, variable(name)?)));
    let utf8 = |locale: &str| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    match set {
        Some((by, locale)) if utf8(&locale) => Check::ok(name, format!("UTF-8 ({by} = {locale})")),
        Some((by, locale)) => Check::note(
            name,
            format!("{by} = {locale} is not UTF-8: the screens are drawn as with --ascii"),
            Some("export LC_ALL=C.UTF-8"),
        ),
        None => Check::note(
            name,
            "no locale is set: lines and bars may come out wrong without --ascii",
            Some("export LC_ALL=C.UTF-8"),
        ),
    }
}

/// Whether runs can be kept, and for how long. Nothing is made.
fn folder() -> Vec<Check> {
    let (name, command) = ("state folder", Some("export TUI_TRAIN_HOME=\"$PWD/tui-train\""));
    let home = match Home::from_env() {
        Ok(home) => home,
        Err(error) => return vec![Check::failed(name, error.to_string(), command)],
    };
    let runs = home.runs();
    // What is missing is made inside the nearest folder that is there.
    let Some(there) = runs.ancestors().find(|path| path.exists()) else {
        return vec![Check::failed(name, format!("{} cannot be reached", runs.display()), command)];
    };
    let may = Access::WRITE_OK | Access::EXEC_OK;
    let refused = if there.is_dir() {
        rustix::fs::access(there, may).err().map(|error| error.to_string())
    } else {
        Some("is no folder".to_owned())
    };
    let folder = match refused {
        Some(why) => {
            let found = format!("{} cannot be written: {}: {why}", home.path().display(), there.display());
            return vec![Check::failed(name, found, command)];
        }
        None => Check::ok(name, format!("{} can be written", home.path().display())),
    };
    vec![folder, room(there)]
}

fn room(path: &Path) -> Check {
    let name = "free space";
    match rustix::fs::statvfs(path) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let found = format!("{} where the state folder is", text::bytes(free));
            if free >= ROOM {
                return Check::ok(name, found);
            }
            let found = format!("{found}: too little for many checkpoints");
            Check::note(name, found, Some("export TUI_TRAIN_HOME=FOLDER-ON-ANOTHER-DISK"))
        }
        Err(error) => Check::note(name, format!("not known: {error}"), None),
    }
}

/// One update of a tiny model.
fn flex() -> Check {
    let name = "flex";
    let trained = catch_unwind(AssertUnwindSafe(one_update))
        .unwrap_or_else(|_| Err(anyhow::anyhow!("the update ended in a panic")));
    match trained {
        Ok(loss) if loss.is_finite() => {
            let threads = devices::threads();
            Check::ok(name, format!("the embedded device trained one update, on {threads} threads"))
        }
        Ok(loss) => Check::failed(name, format!("the loss of one update is {loss}"), None),
        Err(error) => Check::failed(name, format!("cannot train: {error:#}"), None),
    }
}

/// Its loss in nats.
fn one_update() -> anyhow::Result<f64> {
    let demo = Layers::new().with_assignment(&format!("model.preset={}", presets::DEMO))?;
    let config = demo.with_assignments(TINY)?.resolve()?.config;
    let device = devices::open(config.train.device)?;
    let mut training = trainer::build(&config, &device.device)?;
    let mut windows = Windows::new(Dataset::open(&config)?, &config, Cursor::default())?;
    let window = windows.next_window().ok_or_else(|| anyhow::anyhow!("the demo has no text"))?;
    for (batch, pass) in window.passes(1) {
        training.micro_batch(batch, pass);
    }
    Ok(training.update(schedule::of(&config, 1, 1), false).loss)
}
