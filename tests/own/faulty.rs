//! A program whose task goes wrong in the way that a setting names.

use burn::{
    module::{
        Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param,
    },
    tensor::{Device, Tensor},
};
use tui_train::{Kind, Part, Result, Setting, Settings, Task};

/// A vector, called as its owner says.
#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<1>>,
}

/// What is wrong with the model beside it.
#[derive(Module, Debug)]
struct Faulty {
    one: Layer,
    /// The parameter of `one` once more, or none.
    other: Vec<Layer>,
    /// Two parameters of one name, or none.
    nameless: Option<Nameless>,
    #[module(skip)]
    fault: String,
}

/// A layer that does not say what its parameters are called.
#[derive(Debug, Clone)]
struct Nameless(Layer, Layer);

struct Broken(String);

impl Task for Broken {
    const NAME: &'static str = "broken";
    const SETTINGS: &'static [Setting] = &[Setting::new(
        "task.fault",
        Kind::Choice(&[
            "none",
            "forward",
            "batch",
            "open",
            "open-error",
            "model",
            "nan",
            "twice",
            "shared",
            "empty",
        ]),
        "\"none\"",
        "",
        "what goes wrong",
    )];
    const DEFAULTS: &'static str = "train.max_updates = 4\ntrain.max_skipped = 2";
    type Model = Faulty;
    type Batch = f32;

    fn open(settings: Settings<'_>) -> Result<Self> {
        let fault = settings.text("fault")?.to_owned();
        assert!(fault != "open", "the disk has a hole");
        if fault == "open-error" {
            anyhow::bail!("there is no file `rows.bin`: make it with `make rows`");
        }
        Ok(Self(fault))
    }

    fn examples(&self, part: Part) -> u64 {
        if part == Part::Train && self.0 != "empty" { 8 } else { 0 }
    }

    fn batch(&self, _: Part, examples: &[u64]) -> f32 {
        assert!(self.0 != "batch", "row {} is no row", examples[0]);
        examples.len() as f32
    }

    fn model(settings: Settings<'_>, device: &Device) -> Result<Faulty> {
        let fault = settings.text("fault")?.to_owned();
        assert!(fault != "model", "no model of this width");
        let layer = || Layer { weight: Param::from_tensor(Tensor::ones([3], device)) };
        let one = layer();
        let other = if fault == "shared" { vec![one.clone()] } else { Vec::new() };
        let nameless = (fault == "twice").then(|| Nameless(layer(), layer()));
        Ok(Faulty { one, other, nameless, fault })
    }

    fn loss(model: &Faulty, batch: &f32, _: &Device) -> Tensor<1> {
        assert!(model.fault != "forward", "matrices of [3, 4] and [5, 6] cannot be multiplied");
        let factor = if model.fault == "nan" { f32::NAN } else { *batch };
        model.one.weight.val().square() * factor
    }
}

impl ModuleDisplayDefault for Nameless {
    fn content(&self, content: Content) -> Option<Content> {
        Some(content)
    }
}

impl ModuleDisplay for Nameless {}

impl Module for Nameless {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.1.collect_devices(self.0.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device), self.1.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device), self.1.to_device(device))
    }

    fn train(self) -> Self {
        Self(self.0.train(), self.1.train())
    }

    fn valid(&self) -> Self {
        Self(self.0.valid(), self.1.valid())
    }

    fn materialize(self) -> Self {
        Self(self.0.materialize(), self.1.materialize())
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        self.0.visit(visitor);
        self.1.visit(visitor);
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        Self(self.0.map(mapper), self.1.map(mapper))
    }
}

fn main() -> std::process::ExitCode {
    tui_train::main::<Broken>()
}
