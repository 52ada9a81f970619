//! tui-train: a terminal UI that drives a live training run.
//!
//! A run is a process and its directory is the record: the worker appends to `events.jsonl`, and every screen,
//! export and comparison is a pure function of that file. Only commands and on-demand questions travel over a
//! local socket, each with an id and an answer.
//!
//! ```text
//! config     what a person may set: types, defaults, validation, one table of fields
//! protocol   plain data between processes: Command, Answer, Event, Summary
//! ledger     pure accounting of memory: parameters, gradients, optimizer state, activations (estimated)
//! data       corpora, labelled rows, tokenizers, batches with a serialisable cursor
//! model      llama and distilbert, under Hugging Face's parameter names
//! optim      driver, one file an optimizer, state views, schedule, clip
//! backend    devices, the hot operations, libtorch behind a feature, the counting allocator
//! worker     engine, control socket, checkpoints, telemetry: everything that runs inside a run's process
//! run        run directory: create, lock, tail, list, record, export, control client
//! app        pure state of the UI, one file a subject
//! ui         screens, panels, keymap, theme, format
//! shell      terminal guard, loop, input, signals
//! cli        one file a subcommand
//! ```
//!
//! Arrows go one way: `config <- {protocol, ledger} <- {data, backend} <- {model, optim} <- worker <- cli` and
//! `{protocol, ledger} <- run <- worker`, `{run, ledger} <- app <- ui <- shell <- cli`. The folders `config`, `protocol`,
//! `ledger`, `run`, `app`, `ui` and `shell` name no Burn type; only `ui` and `shell` name ratatui types.
//! `tests/layering.rs` reads the `use` lines and enforces it.

//!
//! # A model of your own
//!
//! Implement [`Task`] for the type that holds your data, and call [`main`]: the program is then this one with your model,
//! with every command, screen, optimizer and export. `run` trains it, `plan` counts its memory, `resume` goes on with it bit
//! for bit. Whatever Burn module it is, its parameters are called after their fields.
//!
//! ```no_run
//! use burn::{
//!     module::Module,
//!     nn::{Linear, LinearConfig, loss::{MseLoss, Reduction}},
//!     tensor::{Device, Tensor, TensorData, activation::relu},
//! };
//! use tui_train::{Part, Result, Setting, Settings, Task};
//!
//! #[derive(Module, Debug)]
//! struct Mlp {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! /// The sine of a number.
//! struct Sine;
//!
//! impl Task for Sine {
//!     const NAME: &'static str = "sine";
//!     const SETTINGS: &'static [Setting] = &[Setting::integer("task.width", 1, 4096, "64", "width of the hidden layer")];
//!     const DEFAULTS: &'static str = "# learns the sine\ntrain.max_updates = 500";
//!     type Model = Mlp;
//!     type Batch = Vec<f32>;
//!
//!     fn open(_: Settings<'_>) -> Result<Self> {
//!         Ok(Self)
//!     }
//!
//!     fn examples(&self, part: Part) -> u64 {
//!         if part == Part::Train { 1000 } else { 100 }
//!     }
//!
//!     fn batch(&self, part: Part, examples: &[u64]) -> Vec<f32> {
//!         let shift = if part == Part::Train { 0.0 } else { 0.5 };
//!         examples.iter().map(|&at| (at as f32 + shift) * 0.006).collect()
//!     }
//!
//!     fn model(settings: Settings<'_>, device: &Device) -> Result<Mlp> {
//!         let width = settings.integer("width")?;
//!         let (hidden, out) = (LinearConfig::new(1, width), LinearConfig::new(width, 1));
//!         Ok(Mlp { hidden: hidden.init(device), out: out.init(device) })
//!     }
//!
//!     fn loss(model: &Mlp, batch: &Vec<f32>, device: &Device) -> Tensor<1> {
//!         let column = |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, [batch.len(), 1]), device);
//!         let found = model.out.forward(relu(model.hidden.forward(column(batch.clone()))));
//!         MseLoss::new().forward(found, column(batch.iter().map(|x| x.sin()).collect()), Reduction::Sum)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     tui_train::main::<Sine>()
//! }
//! ```
//!
//! It trains on libtorch where it links it: depend on this package with its feature `libtorch`, build as for
//! `tui-train-libtorch`, and start your program where the loader finds libtorch, by `LD_LIBRARY_PATH` or a run path of yours.
//!
//! # A loop of your own
//!
//! Say what it does to a [`Recorder`]: then `tui-train` lists, shows, compares and exports its runs, and
//! `tui-train attach` draws the screens while it trains.
//!
//! ```no_run
//! use tui_train::{Loop, Progress, Reason};
//!
//! # fn main() -> tui_train::Result<()> {
//! let mut run = Loop::new("descent").updates(100).setting("rate", 0.1).parameter("x", &[1]).start()?;
//! let mut x = 5.0_f32;
//! while run.updates() < 100 && !run.should_stop() {
//!     let gradient = 2.0 * x;
//!     x -= 0.1 * gradient;
//!     let loss = f64::from(x * x);
//!     run.update(Progress { loss, learning_rate: 0.1, grad_norm: f64::from(gradient.abs()), tokens: 1 })?;
//! }
//! run.finish(Reason::Finished)?;
//! # Ok(())
//! # }
//! ```

pub mod app;
pub mod backend;
pub mod cli;
pub mod config;
pub mod data;
pub mod ledger;
pub mod model;
pub mod optim;
pub mod protocol;
pub mod run;
pub mod shell;
pub mod ui;
pub mod worker;

pub use anyhow::Result;

pub use cli::attach::Screens;
pub use config::{
    fields::{Field as Setting, Kind},
    own::Settings,
};
pub use model::task::{Part, Task};
pub use protocol::Reason;
pub use worker::recorder::{Loop, Progress, Recorder};

/// The whole of a program: this one's command line with that task chosen, which parses the arguments and returns the exit
/// code. It is also what a run's own process starts with, so call it first.
///
/// A program that wants the ledger held against what was really allocated has [`backend::allocator::Counting`] as its
/// global allocator.
pub fn main<T: Task>() -> std::process::ExitCode {
    cli::exit_code(match worker::own::register::<T>() {
        Ok(()) => cli::main(),
        Err(error) => cli::refused(&error),
    })
}
