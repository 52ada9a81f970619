//! What a pickle of `torch.save` can be about.

use super::element::Element;

/// Number of a value among all that the pickle made.
pub(super) type Id = usize;

/// A value, as far as weights need to know it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// Nothing, a fraction, bytes, a list, a set: no part of weights.
    Other,
    /// Also true and false.
    Int(i64),
    Text(String),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Storage(Storage),
    Tensor(View),
}

/// The names that may be called.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(Element),
}

/// Elements in a file of their own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Storage {
    /// Name of the file below `data/`.
    pub(super) key: String,
    pub(super) element: Element,
    pub(super) elements: usize,
}

/// A tensor: a view of a storage that lies within it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    pub(super) storage: Storage,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

impl Global {
    /// The one of that name; everything else is refused.
    pub(super) fn named(module: &str, name: &str) -> Option<Self> {
        match (module, name) {
            ("collections", "OrderedDict") => Some(Self::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Self::RebuildTensor),
            ("torch._utils", "_rebuild_parameter") => Some(Self::RebuildParameter),
            ("torch", name) => storage_class(name).map(Self::Storage),
            _ => None,
        }
    }
}

impl View {
    /// A view, once it is sure that all of it lies within its storage.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn within(
        storage: &Storage,
        offset: usize,
        shape: Vec<usize>,
        strides: Vec<usize>,
    ) -> Result<Self, String> {
        if shape.len() != strides.len() {
            return Err("describes a tensor in a way torch.save does not".to_owned());
        }
        let count = shape.iter().try_fold(1_usize, |count, length| count.checked_mul(*length));
        let last = shape.iter().zip(&strides).try_fold(offset, |last, (length, stride)| {
            last.checked_add(length.saturating_sub(1).checked_mul(*stride)?)
        });
        match (count, last) {
            (Some(0), _) => {}
            (Some(_), Some(last)) if last < storage.elements => {}
            _ => {
                return Err(format!(
                    "describes a tensor that reaches beyond the {} elements of its storage",
                    storage.elements
                ));
            }
        }
        Ok(Self { storage: storage.clone(), offset, shape, strides })
    }
}

fn storage_class(name: &str) -> Option<Element> {
    Some(match name {
        "FloatStorage" => Element::F32,
        "DoubleStorage" => Element::F64,
        "HalfStorage" => Element::F16,
        "BFloat16Storage" => Element::Bf16,
        "LongStorage" => Element::Other("I64", 8),
        "IntStorage" => Element::Other("I32", 4),
        "ShortStorage" => Element::Other("I16", 2),
        "CharStorage" => Element::Other("I8", 1),
        "ByteStorage" => Element::Other("U8", 1),
        "BoolStorage" => Element::Other("BOOL", 1),
        _ => return None,
    })
}
