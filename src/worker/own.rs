//! A task that the program was given, behind the seams of the engine: its data as examples by number, its model under
//! training.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{Device, Tensor},
};

use super::{
    fault,
    learner::{Evaluated, Learner},
    trainer::{Trainer, Training},
};
use crate::{
    config::{
        Config, ConfigError,
        own::{self, Parameter, Settings},
        presets::Preset,
        quiet,
    },
    data::{
        Batch,
        own::{self as examples, Examples, Made, Payload},
        random,
    },
    model::{
        Noise, SummedLoss,
        task::{Part, Task},
    },
};

type Build = fn(&Config, &Device) -> anyhow::Result<Box<dyn Training>>;

static BUILD: OnceLock<Build> = OnceLock::new();

/// Makes it the task of this program.
///
/// # Errors
/// There is one already, or its name, its settings or its defaults cannot be used.
pub fn register<T: Task>() -> Result<(), ConfigError> {
    own::register(own::Registered {
        preset: Preset { name: T::NAME, text: T::DEFAULTS },
        settings: T::SETTINGS,
        shapes: shapes::<T>,
    })?;
    examples::register(open::<T>);
    let _ = BUILD.set(Trainer::<Own<T>>::build);
    Ok(())
}

/// The model of the program's own task under training.
///
/// # Errors
/// The program has no such task, or its model cannot be made.
pub(super) fn build(config: &Config, device: &Device) -> anyhow::Result<Box<dyn Training>> {
    own::present(config)?;
    let build = BUILD.get().ok_or_else(|| anyhow::anyhow!("this program has no task of its own"))?;
    build(config, device)
}

/// Work of a task that may panic; that is told in a sentence.
fn kept<T>(doing: &str, work: impl FnOnce() -> anyhow::Result<T>) -> Result<T, String> {
    match quiet::quietly(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(panic) => {
            let place = quiet::place_of_panic().map_or_else(String::new, |place| format!(" ({place})"));
            Err(format!("a panic while {doing}: {}{place}", fault::words(&*panic)))
        }
    }
}

fn shapes<T: Task>(config: &Config) -> Result<Vec<Parameter>, String> {
    let model = || T::model(Settings::of(config), &Device::flex());
    let mut all = Shapes::default();
    kept("it was made", model).map_err(|why| format!("cannot be made: {why}"))?.visit(&mut all);
    match all.twice {
        Some((one, other)) => Err(format!(
            "has one parameter under two names, `{one}` and `{other}`: keep it in one field, and use it from there"
        )),
        None => Ok(all.found),
    }
}

/// Names and shapes; no parameter is made for it.
#[derive(Default)]
struct Shapes {
    path: Vec<String>,
    found: Vec<Parameter>,
    ids: Vec<burn::module::ParamId>,
    /// Two names of one parameter.
    twice: Option<(String, String)>,
}

impl ModuleVisitor for Shapes {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.join(".");
        if let Some(at) = self.ids.iter().position(|id| *id == param.id) {
            let other = self.found[at].name.clone();
            if other != name {
                self.twice.get_or_insert((other, name.clone()));
            }
        }
        self.ids.push(param.id);
        self.found.push(Parameter { name, shape: param.lazy_shape().to_vec() });
    }
}

fn open<T: Task>(config: &Config) -> Result<Arc<dyn Examples>, String> {
    let task = kept("it was opened", || T::open(Settings::of(config)))?;
    Ok(Arc::new(Data(task)))
}

struct Data<T>(T);

impl<T: Task> Examples for Data<T> {
    fn count(&self, held_out: bool) -> u64 {
        self.0.examples(part(held_out))
    }

    fn batch(&self, held_out: bool, examples: &[u64]) -> Made {
        let batch = self.0.batch(part(held_out), examples);
        let targets = T::targets(&batch, examples.len() as u64);
        Made { payload: Payload::new(batch), targets }
    }
}

const fn part(held_out: bool) -> Part {
    if held_out { Part::HeldOut } else { Part::Train }
}

/// A task's model as the trainer takes it.
struct Own<T>(PhantomData<T>);

impl<T: Task> Own<T> {
    fn summed(model: &T::Model, batch: &Batch, device: &Device) -> SummedLoss {
        let sum = match of::<T>(batch) {
            Some(own) => T::loss(model, own, device).sum(),
            None => Tensor::zeros([1], device),
        };
        SummedLoss { sum, targets: batch.target_count }
    }
}

fn of<T: Task>(batch: &Batch) -> Option<&T::Batch> {
    batch.own.as_ref().and_then(Payload::get)
}

/// Where a model's parameters are: with a tape while it trains, which is what dropout looks at.
fn device_of<M: Module>(model: &M) -> Device {
    model.devices().into_iter().next().unwrap_or_else(Device::flex)
}

impl<T: Task> Learner for Own<T> {
    type Model = T::Model;

    fn init(config: &Config, device: &Device) -> anyhow::Result<T::Model> {
        device.seed(random::mix(config.train.seed));
        // Drawn now, in the order of the fields, and not when one is first looked at.
        Ok(T::model(Settings::of(config), device)?.materialize())
    }

    fn loss(model: &T::Model, batch: &Batch, noise: &Noise) -> SummedLoss {
        let device = device_of(model);
        device.seed(noise.seed());
        Self::summed(model, batch, &device)
    }

    fn evaluate(model: &T::Model, batch: &Batch) -> Evaluated {
        let device = device_of(model);
        device.seed(Noise::off().seed());
        let loss = Self::summed(model, batch, &device);
        let classes = match of::<T>(batch) {
            Some(own) if T::CLASSES > 0 => T::classify(model, own, &device),
            _ => Vec::new(),
        };
        let (labels, found) = classes.into_iter().map(|(label, found)| (label as i32, found)).unzip();
        Evaluated { loss, labels, found }
    }

    fn classes(_: &Config) -> Option<usize> {
        (T::CLASSES > 0).then_some(T::CLASSES)
    }
}
