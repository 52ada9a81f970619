//! Files that TensorBoard loads: records framed as TensorFlow frames them, each a protocol buffer. Few messages with few
//! fields are needed, and they never change: they are written by hand, and no compiler of protocol buffers is.
//!
//! ```text
//! proto      fields of a protocol buffer
//! frame      records with their check sums
//! histogram  many numbers in TensorBoard's buckets
//! hparams    the configuration as hyper-parameters
//! recorder   a run's events as scalars, histograms and the rest
//! live       the folder of a run that grows while it trains
//! ```

pub mod frame;
pub mod histogram;
mod hparams;
pub mod live;
mod proto;
pub mod recorder;

pub use live::Live;
pub use recorder::Recorder;

/// How the files' names begin; TensorBoard knows them by it.
pub const PREFIX: &str = "events.out.tfevents.";

/// The name of a run's file that begins at that second (UTC): files are read in the order of their names.
pub fn file_name(seconds: u64, number: usize) -> String {
    format!("{PREFIX}{seconds:010}.tui-train.{number:04}")
}

/// Seconds since 1970 of a time in RFC 3339; 0 when it is none.
pub fn seconds(time: &str) -> f64 {
    time.parse::<jiff::Timestamp>().map_or(0.0, |time| time.as_millisecond() as f64 / 1000.0)
}
