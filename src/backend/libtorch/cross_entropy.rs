//! Cross-entropy over a large vocabulary without a second array of its size: rows are taken some at a time, forward and
//! backward, and only the logits themselves are kept. What is small goes to the kernel at once.

use burn::{
    backend::{
        Autodiff, LibTorch,
        autodiff::{
            checkpoint::{base::Checkpointer, strategy::NoCheckpointing},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
    },
    tensor::Tensor,
};
use burn_tch::TchTensor;
use tch::Kind;

use super::node::{Raw, node};

/// Logits that are taken at once, as f32: 16 MiB.
const AT_ONCE: i64 = 1 << 22;

/// What the backward pass needs.
#[derive(Debug, Clone)]
struct Saved {
    /// `[n, v]`, in the type they came in.
    logits_nv: TchTensor,
    /// `[n, 1]`; ignored rows point at class 0.
    ids_n1: TchTensor,
    /// 1 for a target, 0 for an ignored row, f32 `[n, 1]`.
    counted_n1: TchTensor,
}

#[derive(Debug)]
struct CrossEntropySum;

impl Backward<LibTorch, 1> for CrossEntropySum {
    type State = Saved;

    /// `(softmax(logits) - onehot(target)) * seed` for each target.
    fn backward(self, ops: Ops<Saved, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let seed = grads.consume::<LibTorch>(&ops.node).tensor;
        let [Some(parent)] = ops.parents else { return };
        let Saved { logits_nv, ids_n1, counted_n1 } = ops.state;
        let logits_nv = logits_nv.tensor;
        let gradient_nv = logits_nv.empty_like();
        let scale_n1 = counted_n1.tensor * seed;
        for (start, count) in chunks(&logits_nv) {
            let part = |tensor: &tch::Tensor| tensor.narrow(0, start, count);
            let logits = part(&logits_nv);
            let mut gradient = part(&gradient_nv);
            // f32 shares are written where the gradient stands; shorter numbers are rounded once, at the end.
            let short = logits.kind() != Kind::Float;
            let mut shares = if short {
                logits.softmax(1, Kind::Float)
            } else {
                logits.internal_softmax_out(&gradient, 1, false)
            };
            let scale = part(&scale_n1);
            let _ = shares.g_mul_(&scale);
            let _ = shares.scatter_add_(1, &part(&ids_n1.tensor), &scale.neg());
            if short {
                gradient.copy_(&shares);
            }
        }
        grads.register::<LibTorch>(parent.id, TchTensor::new(gradient_nv));
    }
}

/// Start and number of the rows that are taken together.
fn chunks(logits_nv: &tch::Tensor) -> impl Iterator<Item = (i64, i64)> {
    let (rows, classes) = (logits_nv.size()[0], logits_nv.size()[1]);
    let step = (AT_ONCE / classes.max(1)).clamp(1, rows.max(1));
    (0..rows).step_by(step as usize).map(move |start| (start, step.min(rows - start)))
}

/// The sum over the targets, `[1]` f32, and what its gradient needs.
fn forward(logits: &TchTensor, targets: &[i32], ignore: i32) -> (tch::Tensor, Saved) {
    let logits_nv = &logits.tensor;
    let device = logits_nv.device();
    let column = |values: Vec<i64>| tch::Tensor::from_slice(&values).to_device(device).unsqueeze(1);
    let ids: Vec<i64> =
        targets.iter().map(|&target| if target == ignore { 0 } else { i64::from(target) }).collect();
    let ids_n1 = column(ids);
    let counted: Vec<i64> = targets.iter().map(|&target| i64::from(target != ignore)).collect();
    let counted_n1 = column(counted).to_kind(Kind::Float);
    let picked: Vec<tch::Tensor> = chunks(logits_nv)
        .map(|(start, count)| {
            let part = |tensor: &tch::Tensor| tensor.narrow(0, start, count);
            part(logits_nv).log_softmax(1, Kind::Float).gather(1, &part(&ids_n1), false)
        })
        .collect();
    let sum = -(tch::Tensor::cat(&picked, 0) * &counted_n1).sum(Kind::Float).reshape([1]);
    let saved = Saved {
        logits_nv: logits.clone(),
        ids_n1: TchTensor::new(ids_n1),
        counted_n1: TchTensor::new(counted_n1),
    };
    (sum, saved)
}

/// `sum over targets of -log softmax(logits)[target]`; `None` when the logits live elsewhere.
pub(in crate::backend) fn sum(logits_nv: &Tensor<2>, targets: &[i32], ignore: i32) -> Option<Tensor<1>> {
    let [rows, classes] = logits_nv.dims();
    if (rows * classes) as i64 <= AT_ONCE {
        return at_once(logits_nv, targets, ignore);
    }
    match Raw::of(logits_nv)? {
        Raw::Plain(logits) => {
            let sum = tch::no_grad(|| forward(&logits, targets, ignore).0);
            Some(Tensor::from_primitive::<LibTorch>(TchTensor::new(sum)))
        }
        Raw::Tracked(logits) => {
            let (sum, saved) = tch::no_grad(|| forward(logits.primitive(), targets, ignore));
            let output = match CrossEntropySum
                .prepare::<NoCheckpointing>([logits.node()])
                .compute_bound()
                .stateful()
            {
                OpsKind::Tracked(prepared) => prepared.finish(saved, TchTensor::new(sum)),
                OpsKind::UnTracked(prepared) => prepared.finish(TchTensor::new(sum)),
            };
            Some(Tensor::from_primitive::<Autodiff<LibTorch>>(output))
        }
    }
}

/// The same by libtorch's own kernel, which is faster and keeps one more array of the logits' size.
fn at_once(logits_nv: &Tensor<2>, targets: &[i32], ignore: i32) -> Option<Tensor<1>> {
    let ids: Vec<i64> = targets.iter().map(|&target| i64::from(target)).collect();
    node([Raw::of(logits_nv)], |[logits]| {
        let ids = tch::Tensor::from_slice(&ids).to_device(logits.device());
        let sum = logits.to_kind(Kind::Float).cross_entropy_loss(
            &ids,
            None::<&tch::Tensor>,
            tch::Reduction::Sum,
            i64::from(ignore),
            0.0,
        );
        sum.reshape([1])
    })
}
