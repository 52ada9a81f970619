//! `tui-train attach RUN`: the screens on any run, live or ended; and the screens without a run.

use std::{path::PathBuf, sync::atomic::AtomicUsize};

use anyhow::Context;
use clap::ValueEnum;

use super::{
    look::{self, Look},
    output,
};
use crate::{
    app::{action::Screen, room::Room},
    config::{ConfigError, DeviceName, Layers, own},
    protocol::Host,
    run::{Home, RunDir, is_live},
    shell::{
        self, Launch, Start,
        picture::{self, Kind},
    },
    worker::{nvml::Gpu, recorder::Recorder},
};

/// Which run, and how to look at it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique start of an id, name (the newest of that name), path, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// Look, do not touch
    #[arg(long)]
    readonly: bool,
    /// Play the record of a run that has ended: seconds of it in one second, such as 1 or 10, or max
    #[arg(long, value_name = "SPEED", value_parser = speed, conflicts_with_all = ["once", "svg", "output"])]
    replay: Option<f64>,
    /// Print one frame as text and leave
    #[arg(long)]
    once: bool,
    /// With --once: with the colours of the theme
    #[arg(long, requires = "once")]
    coloured: bool,
    /// Draw one frame into this file and leave: .svg for a picture, .txt for text, .ans for text with colours
    #[arg(short, long, value_name = "PATH", conflicts_with = "once")]
    output: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
    /// Draw one frame as an SVG picture into this file and leave
    #[arg(long, value_name = "PATH", hide = true)]
    svg: Option<PathBuf>,
    /// Columns and rows of the one frame; those of the terminal without
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<(u16, u16)>,
    /// Screen of the one frame
    #[arg(long, value_enum, default_value = "train")]
    screen: Frame,
}

/// A screen by name.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Frame {
    Train,
    State,
    Setup,
    Runs,
}

impl From<Frame> for Screen {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Train => Self::Train,
            Frame::State => Self::State,
            Frame::Setup => Self::Setup,
            Frame::Runs => Self::Runs,
        }
    }
}

/// Largest picture, in columns or rows.
const LARGEST: u16 = 500;

fn speed(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(f64::INFINITY);
    }
    let number = text.strip_suffix('x').unwrap_or(text).parse().ok();
    number
        .filter(|speed: &f64| speed.is_finite() && *speed > 0.0)
        .ok_or_else(|| format!("`{text}` is no speed: write how many times faster, such as 1 or 10, or max"))
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("`{text}` is no size: write columns and rows up to {LARGEST}, such as 120x36");
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=LARGEST).contains(side)).ok_or_else(wrong);
    Ok((side(width)?, side(height)?))
}

/// Opens the screens on a run, or draws one frame.
///
/// # Errors
/// There is no such run, or no terminal to draw on.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let home = Home::from_env()?;
    let run = RunDir::resolve(&home, &args.run)?;
    if args.replay.is_some() && is_live(&run) {
        anyhow::bail!(
            "run {0} is live: `tui-train attach {0}` shows it; it can be replayed when it has ended",
            run.id()
        );
    }
    let layers = draft_after(&run)?;
    let mut launch = Launch::new(home, Start::Watch(run), layers);
    launch.readonly = args.readonly;
    launch.replay = args.replay;
    args.look.apply(&mut launch)?;
    let screen = Some(args.screen.into());
    let size = args.size.or_else(|| crossterm::terminal::size().ok()).unwrap_or((120, 40));
    if let Some(path) = args.svg {
        let picture = picture::frame(&launch, screen, Kind::Svg, size)?;
        std::fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
        return Ok(0);
    }
    if let Some(path) = args.output {
        let kind = Kind::of(&path).map_err(ConfigError::Conflict)?;
        picture::put(&path, &picture::frame(&launch, screen, kind, size)?)?;
        output::message(&format!("wrote {}", path.display()));
        return Ok(0);
    }
    if args.once {
        let kind = if args.coloured { Kind::Coloured } else { Kind::Text };
        let frame = picture::frame(&launch, screen, kind, size)?;
        if args.coloured {
            output::frame(frame.trim_end())?
        } else {
            output::line(frame.trim_end())?
        };
        return Ok(0);
    }
    if !look::can_draw() && args.replay.is_none() {
        return in_lines(&launch, screen, size);
    }
    terminal()?;
    screens(launch)
}

/// Where screens cannot be drawn: one frame as text, and while the run is live a line for what happens. The run goes on
/// when this is interrupted.
fn in_lines(launch: &Launch, screen: Option<Screen>, size: (u16, u16)) -> anyhow::Result<i32> {
    let Start::Watch(run) = &launch.start else { return terminal().map(|()| 0) };
    let live = is_live(run);
    let from = std::fs::metadata(run.events()).map_or(0, |meta| meta.len());
    if !output::line(picture::frame(launch, screen, Kind::Text, size)?.trim_end())? || !live {
        return Ok(0);
    }
    output::message(&format!(
        "{}: what happens in lines; Ctrl+C leaves, and the run goes on",
        if look::is_dumb() { "TERM = dumb cannot draw screens" } else { "standard output is no terminal" }
    ));
    super::follow::follow(run, from, false, &AtomicUsize::new(0))
}

/// Opens the screens on a run that was just started.
///
/// # Errors
/// There is no terminal to draw on.
pub fn open(run: RunDir, look: &Look) -> anyhow::Result<i32> {
    terminal()?;
    let layers = draft_after(&run)?;
    let mut launch = Launch::new(Home::from_env()?, Start::Watch(run), layers);
    look.apply(&mut launch)?;
    screens(launch)
}

/// The screens on a run that this very process trains.
#[derive(Debug)]
pub struct Screens(std::thread::JoinHandle<anyhow::Result<i32>>);

impl Screens {
    /// Opens them on a thread of their own. Nothing else may print from now on; leaving the screens does not end the loop.
    ///
    /// # Errors
    /// There is no terminal to draw on.
    pub fn open(of: &Recorder) -> anyhow::Result<Self> {
        terminal()?;
        let mut launch = Launch::new(Home::from_env()?, Start::Watch(of.run().clone()), layers()?);
        Look::default().apply(&mut launch)?;
        Ok(Self(std::thread::Builder::new().name("screens".into()).spawn(move || shell::run(launch))?))
    }

    /// Waits until they are left.
    ///
    /// # Errors
    /// They could not be drawn.
    pub fn wait(self) -> anyhow::Result<()> {
        let left =
            self.0.join().map_err(|_| anyhow::anyhow!("the thread that draws the screens panicked"))?;
        left.map(|_| ())
    }
}

/// Opens the Setup screen with the demo chosen.
///
/// # Errors
/// The environment holds a setting that cannot be used, or there is no terminal to draw on.
pub fn setup(look: &Look) -> anyhow::Result<i32> {
    terminal()?;
    let mut launch = Launch::new(Home::from_env()?, Start::Setup, layers()?);
    look.apply(&mut launch)?;
    screens(launch)
}

/// Opens the Runs screen; the draft starts from these settings.
///
/// # Errors
/// There is no terminal to draw on.
pub fn list(home: Home, layers: Layers, look: &Look) -> anyhow::Result<i32> {
    terminal()?;
    let mut launch = Launch::new(home, Start::Runs, layers);
    look.apply(&mut launch)?;
    screens(launch)
}

/// What the next run's draft starts from.
fn layers() -> anyhow::Result<Layers> {
    Ok(Layers::new().with_environment(super::settings::environment())?)
}

/// The draft after a run starts from that run's settings, where they start one of this program's at all.
fn draft_after(run: &RunDir) -> anyhow::Result<Layers> {
    if own::present(&run.config()?).is_err() { layers() } else { Ok(run.layers()?) }
}

fn screens(launch: Launch) -> anyhow::Result<i32> {
    shell::run(Launch { gpu: gpu_memory, ..launch })
}

/// The memory of a GPU, if the driver tells.
fn gpu_memory(device: DeviceName) -> Option<Room> {
    let mut host = Host::default();
    Gpu::open(device).read(&mut host);
    let (total, used) = (host.gpu_device_total?, host.gpu_device_used?);
    Some(Room { total, free: total.saturating_sub(used) })
}

fn terminal() -> anyhow::Result<()> {
    if look::can_draw() {
        return Ok(());
    }
    let why =
        if look::is_dumb() { "TERM = dumb cannot draw screens" } else { "standard output is no terminal" };
    anyhow::bail!("{why}: use --once for one frame as text, or `tui-train show RUN`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_above_0_or_max() {
        assert_eq!((speed("10"), speed("0.5x"), speed("max")), (Ok(10.0), Ok(0.5), Ok(f64::INFINITY)));
        for wrong in ["", "0", "-1", "nan", "inf", "fast", "x"] {
            assert!(speed(wrong).unwrap_err().contains("max"), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_columns_and_rows() {
        assert_eq!(size("120x36"), Ok((120, 36)));
        for wrong in ["", "120", "0x5", "5x0", "x", "axb", "70000x5", "501x5"] {
            assert!(size(wrong).unwrap_err().contains("120x36"), "{wrong}");
        }
    }
}
