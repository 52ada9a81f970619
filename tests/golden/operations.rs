//! Each operation that libtorch runs as one node, against its plain body on flex: the value and every gradient.

use burn::tensor::{DType, Device, Distribution, Tensor, TensorData};
use tui_train::{
    backend::ops::{self, AttentionMask},
    config::Layers,
    optim::{self, Value, driver::Target},
};

/// Values of a tensor on the host.
fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.cast(DType::F32).into_data().iter::<f32>().collect()
}

/// Random inputs of these shapes, the same on every device.
struct Inputs(Vec<(Vec<f32>, Vec<usize>)>);

impl Inputs {
    fn new(shapes: &[&[usize]]) -> Self {
        let flex = Device::flex();
        flex.seed(7);
        let draw = |shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            host(Tensor::<1>::random([count], Distribution::Normal(0.0, 1.0), &flex))
        };
        Self(shapes.iter().map(|shape| (draw(shape), shape.to_vec())).collect())
    }

    fn tensor<const D: usize>(&self, index: usize, device: &Device) -> Tensor<D> {
        let (values, shape) = self.0[index].clone();
        Tensor::<D>::from_data(TensorData::new(values, shape), device).require_grad()
    }
}

/// Value, and gradients of the sum of its squares, of a function of two tensors on both devices.
fn compare<const A: usize, const B: usize, const O: usize>(
    what: &str,
    inputs: &Inputs,
    function: impl Fn(Tensor<A>, Tensor<B>, &Device) -> Tensor<O>,
) {
    let run = |plain: &Device| {
        let device = plain.clone().autodiff();
        let (a, b) = (inputs.tensor::<A>(0, &device), inputs.tensor::<B>(1, &device));
        let output = function(a.clone(), b.clone(), plain);
        let tape = output.clone().square().sum().backward();
        [host(output), host(a.grad(&tape).unwrap()), host(b.grad(&tape).unwrap())]
    };
    let (plain, fused) = (run(&Device::flex()), run(&crate::support::device()));
    for (name, (plain, fused)) in
        ["value", "first gradient", "second gradient"].iter().zip(plain.iter().zip(&fused))
    {
        let size = plain.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let off = plain.iter().zip(fused).fold(0.0_f32, |worst, (a, b)| worst.max((a - b).abs()));
        // Some hundred f32 sums in another order.
        assert!(off <= 2e-5 * size, "{what}, {name}: off by {off:e} of {size}");
        assert!(size > 0.0, "{what}, {name}: nothing to compare");
    }
}

fn additive(
    values: impl Fn(usize, usize, usize) -> bool,
    rows: usize,
    time: usize,
    device: &Device,
) -> Tensor<5> {
    let each = (0..rows * time * time).map(|at| (at / (time * time), at / time % time, at % time));
    let values: Vec<f32> =
        each.map(|(row, query, key)| if values(row, query, key) { 0.0 } else { -1e30 }).collect();
    Tensor::from_data(TensorData::new(values, [rows, 1, 1, time, time]), device)
}

#[test]
fn attention_causal_padded_grouped_and_open() {
    let (rows, time, heads, width) = (3, 17, 4, 8);
    for shared in [4, 2, 1] {
        let inputs = Inputs::new(&[&[rows, time, heads, width], &[rows, time, shared, width]]);
        let check = |what: &str, mask: fn(&Device) -> AttentionMask| {
            compare::<4, 4, 3>(&format!("{what} attention, {shared} of 4 heads"), &inputs, |q, k, device| {
                // Values that depend on the keys, so that the gradient has both parts.
                ops::attention(q, k.clone(), k.sin(), &mask(device))
            });
        };
        check("causal", |device| AttentionMask {
            additive_bkgtt: Some(additive(|_, query, key| key <= query, 3, 17, device)),
            causal: true,
        });
        check("causal and padded", |device| AttentionMask {
            additive_bkgtt: Some(additive(|row, query, key| key <= query && key < 17 - row, 3, 17, device)),
            causal: false,
        });
        check("open", |_| AttentionMask { additive_bkgtt: None, causal: false });
    }
}

#[test]
fn norms() {
    let inputs = Inputs::new(&[&[3, 5, 24], &[24]]);
    compare::<3, 1, 3>("RMSNorm", &inputs, |x, weight, _| ops::rms_norm(x, weight, 1e-5));
    compare::<3, 1, 3>("LayerNorm", &inputs, |x, weight, _| {
        ops::layer_norm(x, weight.clone(), weight.sin(), 1e-12)
    });
}

#[test]
fn norms_of_bf16_are_computed_in_f32_and_rounded_once() {
    let inputs = Inputs::new(&[&[4, 16, 64], &[64]]);
    let norms: [fn(Tensor<3>, Tensor<1>) -> Tensor<3>; 2] = [
        |x, weight| ops::rms_norm(x, weight, 1e-5),
        |x, weight| ops::layer_norm(x, weight.clone(), weight.sin(), 1e-12),
    ];
    for (name, norm) in ["RMSNorm", "LayerNorm"].into_iter().zip(norms) {
        let [plain, fused] = [Device::flex(), crate::support::device()].map(|device| {
            let device = device.autodiff();
            host(norm(inputs.tensor::<3>(0, &device).cast(DType::BF16), inputs.tensor::<1>(1, &device)))
        });
        let other = plain.iter().zip(&fused).filter(|(plain, fused)| plain != fused).count();
        // Sums in another order tip a rounding now and then; weights that were rounded would tip every fourth.
        assert!(other * 100 <= plain.len(), "{name}: {other} of {} are other numbers", plain.len());
    }
}

#[test]
fn rotary_and_swiglu() {
    let inputs = Inputs::new(&[&[2, 9, 3, 8], &[2, 9, 3, 8]]);
    compare::<4, 4, 4>("rotary", &inputs, |x, y, device| {
        let angles = Tensor::<1>::from_data(
            TensorData::new((0..12 * 4).map(|at| at as f32 * 0.1).collect::<Vec<_>>(), [12 * 4]),
            device,
        )
        .reshape([12, 4]);
        ops::rotary(x, &angles.clone().cos(), &angles.sin()) * y
    });
    let inputs = Inputs::new(&[&[2, 9, 24], &[2, 9, 24]]);
    compare::<3, 3, 3>("SwiGLU", &inputs, |gate, up, _| ops::swiglu(gate, up));
}

#[test]
fn softmax_and_gelu() {
    let inputs = Inputs::new(&[&[2, 3, 9, 9], &[2, 3, 9, 9]]);
    compare::<4, 4, 4>("softmax", &inputs, |x, y, _| ops::softmax(x) * y);
    compare::<4, 4, 4>("gelu", &inputs, |x, y, _| ops::gelu(x) * y);
}

#[test]
fn cross_entropy_of_many_rows_with_some_ignored() {
    // More rows than are taken at once.
    for (rows, classes) in [(7, 5), (700, 3000), (700, 7000)] {
        let inputs = Inputs::new(&[&[rows, classes], &[1]]);
        let targets: Vec<i32> =
            (0..rows).map(|row| if row % 5 == 3 { -100 } else { (row * 7 % classes) as i32 }).collect();
        compare::<2, 1, 1>("cross-entropy", &inputs, |logits, scale, device| {
            ops::cross_entropy_sum(logits, &targets, -100, device) * scale
        });
    }
}

/// The parameter and the tensors of its state after three updates.
fn adafactor(
    settings: &[&str],
    shape: &[usize],
    inputs: &Inputs,
    device: &Device,
) -> Vec<(String, Vec<f32>)> {
    let settings = ["optimizer.name=adafactor"].iter().chain(settings);
    let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config.optimizer;
    let mut optimizer = optim::build(&config);
    let values = |at: usize| {
        let values = inputs.0[at].0.clone();
        Tensor::<1>::from_data(TensorData::new(values, [shape.iter().product::<usize>()]), device)
    };
    let mut param = values(0);
    for at in 1..=3 {
        param = optimizer.update(Target { name: "w", shape, lr: 0.05 }, param, values(at), false).param;
    }
    let state = optimizer.entries("w").into_iter().filter_map(|entry| match entry.value {
        Value::Tensor { values, .. } => Some((entry.name.to_owned(), host(values))),
        _ => None,
    });
    [("param".to_owned(), host(param))].into_iter().chain(state).collect()
}

#[test]
fn adafactor_of_matrices_that_are_worked_on_in_parts() {
    let plain: &[&str] = &[];
    for (shape, settings) in [
        // Several blocks of rows, the last one short; lines that no number of lanes divides.
        (vec![700, 301], plain),
        (vec![2, 500, 150], &["optimizer.weight_decay=0.1"]),
        (vec![3, 5], &["optimizer.clip_threshold=0.1"]),
        (vec![1, 4099], &["optimizer.scale_parameter=false"]),
    ] {
        let inputs = Inputs::new(&[&shape[..]; 4]);
        let [flex, ours] = [Device::flex(), crate::support::device()]
            .map(|device| adafactor(settings, &shape, &inputs, &device));
        for ((name, flex), (_, ours)) in flex.iter().zip(&ours) {
            let size = flex.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let off = flex.iter().zip(ours).fold(0.0_f32, |worst, (a, b)| worst.max((a - b).abs()));
            // Sums of some hundred thousand f32 in another order.
            assert!(off <= 2e-6 * size, "{shape:?}, {name}: off by {off:e} of {size}");
        }
        assert_eq!(flex.len(), 4, "parameter, RMS, rows and columns");
        let again = adafactor(settings, &shape, &inputs, &crate::support::device());
        assert!(again == ours, "{shape:?}: not the same a second time");
    }
}
