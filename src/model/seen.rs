//! What a model keeps of the places it has seen while it writes, so that each further one costs a pass over itself alone.

use burn::tensor::Tensor;

/// Keys, turned by their positions, and values of one layer: `[b, t, k, e]` each.
type KeysAndValues = (Tensor<4>, Tensor<4>);

/// The keys and values of every layer.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    layers: Vec<Option<KeysAndValues>>,
}

impl Seen {
    /// Places of a row.
    pub fn places(&self) -> usize {
        self.layers.first().and_then(Option::as_ref).map_or(0, |(keys, _)| keys.dims()[1])
    }

    /// Those of a layer.
    pub fn layer(&mut self, at: usize) -> SeenByLayer<'_> {
        if self.layers.len() <= at {
            self.layers.resize(at + 1, None);
        }
        SeenByLayer(&mut self.layers[at])
    }
}

/// The keys and values of one layer.
#[derive(Debug)]
pub struct SeenByLayer<'a>(&'a mut Option<KeysAndValues>);

impl SeenByLayer<'_> {
    /// Adds those of further places, and returns all.
    pub fn with(self, k_btke: Tensor<4>, v_btke: Tensor<4>) -> KeysAndValues {
        let all = match self.0.take() {
            None => (k_btke, v_btke),
            Some((keys, values)) => {
                (Tensor::cat(vec![keys, k_btke], 1), Tensor::cat(vec![values, v_btke], 1))
            }
        };
        self.0.insert(all).clone()
    }
}
