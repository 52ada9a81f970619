//! Examples of a task that the program was given: by number, made into batches of whatever the task makes them.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

use super::{Batch, DataError};
use crate::config::{Config, own};

/// The data of a task.
pub trait Examples: Send + Sync {
    /// How many there are to train on, or held out.
    fn count(&self, held_out: bool) -> u64;

    /// These examples, in this order; each number is below the count.
    fn batch(&self, held_out: bool, examples: &[u64]) -> Made;
}

/// Examples as the task's model takes them.
#[derive(Debug)]
pub struct Made {
    pub payload: Payload,
    /// Targets that count: what the loss is a mean over.
    pub targets: u64,
}

/// A batch of a task, whose type the task alone knows. Copies share it.
#[derive(Clone)]
pub struct Payload(Arc<dyn Any + Send + Sync>);

impl Payload {
    /// Hides the type.
    pub fn new<T: Any + Send + Sync>(batch: T) -> Self {
        Self(Arc::new(batch))
    }

    /// The batch, if it is of that type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Payload")
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Payload {}

/// Opens the data with these settings; what is wrong with it in one sentence.
pub type Open = fn(&Config) -> Result<Arc<dyn Examples>, String>;

static OPEN: OnceLock<Open> = OnceLock::new();

/// Says how the data of the program's own task is opened. The first word counts.
pub fn register(open: Open) {
    let _ = OPEN.set(open);
}

/// Opens the data of the program's own task.
///
/// # Errors
/// The program has no such task, or its data cannot be used.
pub(super) fn open(config: &Config) -> Result<Arc<dyn Examples>, DataError> {
    let wrong = |problem: String| DataError::Own { task: config.model.name().to_owned(), problem };
    own::present(config).map_err(|error| wrong(error.to_string()))?;
    let open = OPEN.get().ok_or_else(|| wrong("it has none".to_owned()))?;
    let examples = open(config).map_err(wrong)?;
    match examples.count(false) {
        0 => Err(wrong("it has no example to train on: give some".to_owned())),
        many if many > u64::from(u32::MAX) => {
            Err(wrong(format!("it has {many} examples, and an epoch has 2^32 at most")))
        }
        _ => Ok(examples),
    }
}

/// One batch as the engine takes it: an example counts as one token.
pub(super) fn batch(of: &dyn Examples, held_out: bool, examples: impl Iterator<Item = u64>) -> Batch {
    let examples: Vec<u64> = examples.collect();
    let Made { payload, targets } = of.batch(held_out, &examples);
    Batch {
        rows: examples.len(),
        seq_len: 1,
        inputs: Vec::new(),
        targets: Vec::new(),
        lengths: vec![1; examples.len()],
        target_count: targets,
        own: Some(payload),
    }
}
