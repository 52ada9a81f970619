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
