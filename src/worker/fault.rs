//! What went wrong when a device's library gave up: libtorch's failures arrive as panics of its bindings.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use super::telemetry;
use crate::{
    config::{Config, DeviceName},
    ledger::{
        self,
        advice::{self, Advice, Need},
    },
    protocol::Reason,
    run::text,
};

/// A failure that ends a run and is understood.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Bytes that were asked for, that were free, and that the run could have had in all, where the library says so.
    OutOfMemory { asked: Option<u64>, free: Option<u64>, room: Option<u64> },
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
    /// Every update has been made, or the run was told to stop: it is copied for its last checkpoint.
    LastCheckpoint,
    /// Only the last look at the held-out data is missing.
    LastValidation,
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
        let memory = ["out of memory", "out-of-memory killer", "can't allocate memory", "alloc_failed"];
        // As Rust ends a process: "memory allocation of 1024 bytes failed"
        let refused = after(words, "memory allocation of ").filter(|_| lower.contains("bytes failed"));
        if refused.is_some() || memory.iter().any(|sign| lower.contains(sign)) {
            let phrases = ["Tried to allocate ", "tried to allocate "];
            let asked = refused.or_else(|| phrases.iter().find_map(|phrase| after(words, phrase)));
            // "of which 12.00 GiB is free"
            let free = after(words, "of which ");
            // What this process has itself is its to use; what others have is not.
            let own = after(words, "Of the allocated memory ")
                .map(|held| held.saturating_add(after(words, "allocated by PyTorch, and ").unwrap_or(0)));
            let room = free.zip(own).map(|(free, own)| free.saturating_add(own));
            let room = room.or_else(|| after(words, "a total capacity of "));
            return Some(Self::OutOfMemory { asked, free, room });
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

    /// The smallest change of settings with which the run would have had room; nothing where none would help.
    pub fn advice(&self, config: &Config) -> Option<Advice> {
        let Self::OutOfMemory { asked, free, room } = *self else { return None };
        let room = match config.train.device {
            DeviceName::LibtorchCuda(_) => room,
            _ => room.or_else(telemetry::memory_within_reach),
        };
        advice::to_fit(config, Need { saves: asked.unwrap_or(0).saturating_sub(free.unwrap_or(0)), room })
    }

    /// One or two sentences: what happened, and the setting that would have made it fit.
    pub fn sentence(&self, config: &Config, phase: Phase, advice: Option<&Advice>) -> String {
        let device = config.train.device;
        match self {
            Self::DeviceLost(what) => format!(
                "{what}: {device} answers this process no more, so the run ends here; the next run starts with a fresh one"
            ),
            Self::OutOfMemory { asked, free, .. } => {
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
                    Phase::LastCheckpoint => " while the last checkpoint was copied",
                    Phase::LastValidation => " in the last validation",
                };
                format!("out of memory on {device}{when}{amounts}; {}", advised(config, advice))
            }
        }
    }
}

/// A change of settings in words: what it keeps, and what the run is estimated to need with it.
pub fn advised(config: &Config, advice: Option<&Advice>) -> String {
    let needed = text::bytes(ledger::ledger(config).total_bytes_estimated);
    let Some(advice) = advice else {
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
    let enough = if advice.fits { "" } else { ", which may not be enough: lower train.seq_len, too" };
    format!(
        "{}{keeps} needs ~{} instead of ~{needed}{enough}",
        settings.join(" with "),
        text::bytes(advice.total)
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
        let memory = |asked, free, room| Some(Fault::OutOfMemory { asked, free, room });
        let capacity = Fault::of(CUDA).and_then(|fault| match fault {
            Fault::OutOfMemory { room, .. } => room,
            Fault::DeviceLost(_) => None,
        });
        assert_eq!(capacity.map(|bytes| bytes / GIB), Some(79), "nothing is said of what is its own");
        assert_eq!(
            Fault::of(CUDA),
            memory(Some(20 * GIB), Some(12 * GIB + GIB / 2), capacity),
            "the bytes of the text"
        );
        let shared = CUDA.replace(
            "in use.",
            "in use. Of the allocated memory 30.00 GiB is allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but \
             unallocated.",
        );
        let room = Some(44 * GIB);
        assert_eq!(Fault::of(&shared), memory(Some(20 * GIB), Some(12 * GIB + GIB / 2), room));
        assert_eq!(Fault::of(HOST), memory(Some(512 * GIB), None, None));
        assert_eq!(
            Fault::of("memory allocation of 549755813888 bytes failed"),
            memory(Some(512 * GIB), None, None)
        );
        assert_eq!(
            Fault::of("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            memory(None, None, None)
        );
        let lost = Fault::of(
            "Torch(\"CUDA error: device-side assert triggered\\nCUDA kernel errors might be ...\")",
        );
        assert_eq!(lost, Some(Fault::DeviceLost("CUDA error: device-side assert triggered".into())));
        assert_eq!(Fault::of("index out of bounds: the len is 3"), None);
    }

    fn said(fault: &Fault, config: &Config, phase: Phase) -> String {
        fault.sentence(config, phase, fault.advice(config).as_ref())
    }

    #[test]
    fn the_sentence_names_the_setting_that_fits() {
        let settings = ["model.preset=llama-160m", "train.device=libtorch-cuda:0", "train.micro_batch=16"];
        let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
        let sentence = said(&Fault::of(CUDA).unwrap(), &config, Phase::Passes);
        let start = "out of memory on libtorch-cuda:0: 20.0 GiB were asked for, 12.5 GiB were free; train.micro_batch = 8 with \
                     train.accumulate = 16 keeps the effective batch of 128 and needs ~";
        assert!(sentence.starts_with(start), "{sentence}");
        let sentence = said(&Fault::of(HOST).unwrap(), &config, Phase::Update);
        assert!(
            sentence.contains("while the optimizer updated") && sentence.contains("may not be enough"),
            "{sentence}"
        );
    }

    #[test]
    fn what_the_device_has_in_all_counts_and_not_the_last_allocation_alone() {
        let settings = ["model.preset=llama-160m", "train.device=libtorch-cuda:0", "train.micro_batch=64"];
        let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
        // The one allocation that failed is small, and the GPU is far too small for the rest of them.
        let words = "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 12.00 GiB of which 1.00 MiB is free.";
        let advice = Fault::of(words).unwrap().advice(&config).unwrap();
        assert!(advice.fits && advice.total < 12 * GIB, "{advice:?}");
        let mut next = config;
        next.train.micro_batch = advice.settings[0].1.parse::<usize>().unwrap() * 2;
        assert!(
            ledger::ledger(&next).total_bytes_estimated > 12 * GIB * 9 / 10,
            "no more is given up: {advice:?}"
        );
        // Of a processor the machine is asked.
        let settings = ["model.preset=llama-160m", "train.device=flex", "train.micro_batch=65536"];
        let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
        let fault = Fault::OutOfMemory { asked: Some(GIB), free: None, room: None };
        let (advice, within) = (fault.advice(&config).unwrap(), telemetry::memory_within_reach().unwrap());
        assert_eq!(advice.fits, advice.total <= within - within / 10, "{advice:?} in {within}");
    }

    #[test]
    fn any_other_panic_goes_on() {
        assert_eq!(guard(|| 3), Ok(3));
        assert_eq!(guard(|| panic!("{HOST}")), Err::<(), _>(Fault::of(HOST).unwrap()));
        let other = catch_unwind(|| guard(|| panic!("something else")).is_ok());
        assert_eq!(words(&*other.unwrap_err()), "something else");
    }
}
