//! What went wrong when a device's library gave up: libtorch's failures arrive as panics of its bindings.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::{
    config::Config,
    ledger::{self, advice},
    protocol::Reason,
    run::text,
};

/// A failure that ends a run and is understood.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Bytes that were asked for and that were free, where the library says so.
    OutOfMemory { asked: Option<u64>, free: Option<u64> },
    /// A CUDA error; the device answers this process no more.
    DeviceLost(String),
}

/// How far the update had come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// The parameters are made.
    #[default]
    Start,
    /// Forward, backward or validation: parameters and state are those of the last update.
    Passes,
    /// Some parameters are those of this update and some of the last.
    Update,
}

/// Runs it; a panic that is understood comes back as a fault, any other goes on.
///
/// # Errors
/// The fault.
pub fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work))
        .or_else(|panic| Fault::of(words(&*panic)).map_or_else(|| resume_unwind(panic), Err))
}

/// What a panic says.
pub fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}

impl Fault {
    /// Reads what libtorch and CUDA write.
    pub fn of(words: &str) -> Option<Self> {
        let lower = words.to_ascii_lowercase();
        let memory = ["out of memory", "can't allocate memory", "alloc_failed"];
        if memory.iter().any(|sign| lower.contains(sign)) {
            let asked = after(words, "Tried to allocate ").or_else(|| after(words, "tried to allocate "));
            // "of which 12.00 GiB is free"
            return Some(Self::OutOfMemory { asked, free: after(words, "of which ") });
        }
        let start = words.find("CUDA error: ").or_else(|| words.find("CUDNN_STATUS"))?;
        let line = words[start..].split(['\n', '"']).next().unwrap_or_default();
        // The bindings print texts with their line ends escaped.
        Some(Self::DeviceLost(line.split("\\n").next().unwrap_or(line).trim().to_owned()))
    }

    /// How a run that it ends is said to have ended.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::OutOfMemory { .. } => Reason::OutOfMemory,
            Self::DeviceLost(_) => Reason::Failed,
        }
    }

    /// One or two sentences: what happened, and the setting that would have made it fit.
    pub fn sentence(&self, config: &Config, phase: Phase) -> String {
        let device = config.train.device;
        match self {
            Self::DeviceLost(what) => format!(
                "{what}: {device} answers this process no more, so the run ends here; the next run starts with a fresh one"
            ),
            Self::OutOfMemory { asked, free } => {
                let amounts = match (asked, free) {
                    (Some(asked), Some(free)) => {
                        format!(": {} were asked for, {} were free", text::bytes(*asked), text::bytes(*free))
                    }
                    (Some(asked), None) => format!(": {} were asked for", text::bytes(*asked)),
                    _ => String::new(),
                };
                let when = match phase {
                    Phase::Start => " while the model was made",
                    Phase::Passes => "",
                    Phase::Update => " while the optimizer updated",
                };
                let short = asked.unwrap_or(0).saturating_sub(free.unwrap_or(0));
                format!("out of memory on {device}{when}{amounts}; {}", advise(config, short))
            }
        }
    }
}

/// The smallest change of settings that saves so much.
fn advise(config: &Config, short: u64) -> String {
    let needed = text::bytes(ledger::ledger(config).total_bytes_estimated);
    let Some(advice) = advice::to_save(config, short) else {
        return format!(
            "the run needs ~{needed}, and no setting but a smaller model or train.seq_len lowers that"
        );
    };
    let settings: Vec<String> =
        advice.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let keeps = if advice.same_batch {
        format!(" keeps the effective batch of {} and", config.train.effective_batch())
    } else {
        String::new()
    };
    let enough =
        if advice.saves < short { ", which may not be enough: lower train.seq_len, too" } else { "" };
    format!(
        "{}{keeps} needs ~{} less than ~{needed}{enough}",
        settings.join(" with "),
        text::bytes(advice.saves)
    )
}

/// The bytes that a text names after a phrase: `20.00 GiB`, `1024 bytes`.
fn after(words: &str, phrase: &str) -> Option<u64> {
    let rest = &words[words.find(phrase)? + phrase.len()..];
    let mut parts = rest.split_ascii_whitespace();
    let number: f64 = parts.next()?.parse().ok()?;
    let unit = match parts.next()?.trim_end_matches(|c: char| !c.is_alphabetic()) {
        "bytes" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    const CUDA: &str = "called `Result::unwrap()` on an `Err` value: Torch(\"CUDA out of memory. Tried to allocate 20.00 GiB. \
        GPU 0 has a total capacity of 79.11 GiB of which 12.50 GiB is free. Process 7 has 66.60 GiB memory in use.\\nmore\")";
    const HOST: &str = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
        allocate 549755813888 bytes. Error code 12 (Cannot allocate memory)";
    const GIB: u64 = 1 << 30;

    #[test]
    fn texts_of_libtorch_are_understood() {
        let memory = |asked, free| Some(Fault::OutOfMemory { asked, free });
        assert_eq!(Fault::of(CUDA), memory(Some(20 * GIB), Some(12 * GIB + GIB / 2)));
        assert_eq!(Fault::of(HOST), memory(Some(512 * GIB), None));
        assert_eq!(
            Fault::of("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            memory(None, None)
        );
        let lost = Fault::of(
            "Torch(\"CUDA error: device-side assert triggered\\nCUDA kernel errors might be ...\")",
        );
        assert_eq!(lost, Some(Fault::DeviceLost("CUDA error: device-side assert triggered".into())));
        assert_eq!(Fault::of("index out of bounds: the len is 3"), None);
    }

    #[test]
    fn the_sentence_names_the_setting_that_fits() {
        let settings = ["model.preset=llama-160m", "train.device=libtorch-cuda:0", "train.micro_batch=16"];
        let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
        let sentence = Fault::of(CUDA).unwrap().sentence(&config, Phase::Passes);
        let start = "out of memory on libtorch-cuda:0: 20.0 GiB were asked for, 12.5 GiB were free; train.micro_batch = 8 with \
                     train.accumulate = 16 keeps the effective batch of 128 and needs ~";
        assert!(sentence.starts_with(start), "{sentence}");
        let sentence = Fault::of(HOST).unwrap().sentence(&config, Phase::Update);
        assert!(
            sentence.contains("while the optimizer updated") && sentence.contains("may not be enough"),
            "{sentence}"
        );
    }

    #[test]
    fn any_other_panic_goes_on() {
        assert_eq!(guard(|| 3), Ok(3));
        assert_eq!(guard(|| panic!("{HOST}")), Err::<(), _>(Fault::of(HOST).unwrap()));
        let other = catch_unwind(|| guard(|| panic!("something else")).is_ok());
        assert_eq!(words(&*other.unwrap_err()), "something else");
    }
}
