//! A program that trains a model of its own: a small network that tells upright stripes from level ones.

use burn::{
    module::Module,
    nn::{
        Dropout, DropoutConfig, Linear, LinearConfig,
        conv::{Conv2d, Conv2dConfig},
        loss::CrossEntropyLossConfig,
    },
    tensor::{Device, Int, Tensor, TensorData, activation::relu},
};
use tui_train::{Part, Result, Setting, Settings, Task};

#[global_allocator]
static ALLOCATOR: tui_train::backend::allocator::Counting = tui_train::backend::allocator::Counting;

/// Pictures of 8 x 8 points.
const SIDE: usize = 8;

#[derive(Module, Debug)]
struct Network {
    conv: Conv2d,
    dropout: Dropout,
    hidden: Linear,
    classifier: Linear,
}

impl Network {
    fn forward(&self, (pictures, labels): &Pictures, device: &Device) -> Tensor<2> {
        let data = TensorData::new(pictures.clone(), [labels.len(), 1, SIDE, SIDE]);
        let x = relu(self.conv.forward(Tensor::<4>::from_data(data, device)));
        let x = self.dropout.forward(x.flatten::<2>(1, 3));
        self.classifier.forward(relu(self.hidden.forward(x)))
    }
}

/// Points and labels of some pictures.
type Pictures = (Vec<f32>, Vec<i32>);

struct Stripes {
    noise: f32,
}

impl Task for Stripes {
    const NAME: &'static str = "stripes";
    const SETTINGS: &'static [Setting] = &[
        Setting::integer("task.width", 1, 1024, "16", "width of the hidden layer"),
        Setting::number("task.noise", 0.0, 2.0, "0.8", "how much is added to each point"),
        Setting::number("task.dropout", 0.0, 0.9, "0.1", "share of the features that is dropped"),
    ];
    const DEFAULTS: &'static str =
        "# upright stripes or level ones\ntrain.max_updates = 60\ntrain.validate_every = 20";
    const CLASSES: usize = 2;
    type Model = Network;
    type Batch = Pictures;

    fn open(settings: Settings<'_>) -> Result<Self> {
        Ok(Self { noise: settings.number("noise")? as f32 })
    }

    fn examples(&self, part: Part) -> u64 {
        if part == Part::Train { 512 } else { 64 }
    }

    fn batch(&self, part: Part, examples: &[u64]) -> Pictures {
        let (mut points, mut labels) = (Vec::new(), Vec::new());
        for &number in examples {
            let mut seed = number * 2 + u64::from(part == Part::HeldOut);
            let mut draw = || {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 40) as f32 / (1 << 24) as f32
            };
            labels.push(i32::from(draw() < 0.5));
            for at in 0..SIDE * SIDE {
                let place = if labels.last() == Some(&0) { at / SIDE } else { at % SIDE };
                points.push((place % 2) as f32 - 0.5 + self.noise * (draw() - 0.5));
            }
        }
        (points, labels)
    }

    fn model(settings: Settings<'_>, device: &Device) -> Result<Network> {
        let width = settings.integer("width")?;
        Ok(Network {
            conv: Conv2dConfig::new([1, 4], [3, 3]).init(device),
            dropout: DropoutConfig::new(settings.number("dropout")?).init(),
            hidden: LinearConfig::new(4 * (SIDE - 2) * (SIDE - 2), width).init(device),
            classifier: LinearConfig::new(width, 2).init(device),
        })
    }

    fn loss(model: &Network, batch: &Pictures, device: &Device) -> Tensor<1> {
        let labels: Vec<i64> = batch.1.iter().map(|&label| i64::from(label)).collect();
        let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [batch.1.len()]), device);
        // Its mean over the batch, times the examples.
        let loss = CrossEntropyLossConfig::new().init(device);
        loss.forward(model.forward(batch, device), labels) * batch.1.len() as f64
    }

    fn classify(model: &Network, batch: &Pictures, device: &Device) -> Vec<(u32, u32)> {
        let found = model.forward(batch, device).argmax(1).into_data();
        batch.1.iter().map(|&label| label as u32).zip(found.iter::<u32>()).collect()
    }
}

fn main() -> std::process::ExitCode {
    tui_train::main::<Stripes>()
}
