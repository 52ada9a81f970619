//! A reader of the pickles that `torch.save` writes. A pickle is a program for a small machine; this machine knows
//! dictionaries, numbers, texts, and the few names that PyTorch needs to describe a tensor, and runs nothing else.
//!
//! Opcodes are those of Python's `pickletools`, protocols 2 to 4.

use std::collections::HashMap;

use super::objects::{Global, Id, Node, Storage, View};

/// Most values in one pickle; weights have some tens for each tensor.
const MOST_NODES: usize = 4_000_000;

/// Axes of a tensor, items of a call and bytes of a name: far more than `torch.save` writes, and so few that naming the
/// same ones again and again cannot fill the memory.
const MOST_ITEMS: usize = 64;
pub(super) const LONGEST_NAME: usize = 4096;

/// Why a pickle is not loaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It names a function or class that weights do not need.
    Program(String),
    Damaged(String),
}

/// What a pickle holds.
#[derive(Debug)]
pub(super) struct Pickle {
    nodes: Vec<Node>,
    root: Id,
}

impl Pickle {
    /// Runs the pickle on the machine.
    ///
    /// # Errors
    /// It names something that weights do not need, or is no pickle.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut machine = Machine {
            bytes,
            at: 0,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        let root = machine.run()?;
        Ok(Self { nodes: machine.nodes, root })
    }

    /// The value that the pickle is about.
    pub(super) fn root(&self) -> &Node {
        self.node(self.root)
    }

    /// A value by its number.
    pub(super) fn node(&self, id: Id) -> &Node {
        self.nodes.get(id).unwrap_or(&Node::Other)
    }
}

fn damaged(problem: impl Into<String>) -> Refusal {
    Refusal::Damaged(problem.into())
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack where a group begins.
    marks: Vec<usize>,
    memo: HashMap<usize, Id>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Id, Refusal> {
        loop {
            let opcode = self.number(1)?;
            match opcode as u8 {
                b'.' => return self.pop(),
                // PROTO, FRAME
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                b'1' => drop(self.group()?),
                b'2' => {
                    let top = self.top()?;
                    self.stack.push(top);
                }
                // NONE, EMPTY_LIST, EMPTY_SET, BINFLOAT
                b'N' | b']' | 0x8f => self.push(Node::Other)?,
                b'G' => {
                    self.take(8)?;
                    self.push(Node::Other)?;
                }
                0x88 => self.push(Node::Int(1))?,
                0x89 => self.push(Node::Int(0))?,
                // BININT, BININT1, BININT2
                b'J' => {
                    let value = self.number(4)? as u32 as i32;
                    self.push(Node::Int(i64::from(value)))?;
                }
                b'K' => self.int(1)?,
                b'M' => self.int(2)?,
                // LONG1, LONG4
                0x8a => self.long(1)?,
                0x8b => self.long(4)?,
                // SHORT_BINSTRING, BINSTRING, SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
                b'U' | 0x8c => self.text(1)?,
                b'T' | b'X' => self.text(4)?,
                0x8d => self.text(8)?,
                // SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8
                b'C' => self.skip(1)?,
                b'B' => self.skip(4)?,
                0x8e | 0x96 => self.skip(8)?,
                b')' => self.push(Node::Tuple(Vec::new()))?,
                b't' => {
                    let items = self.group()?;
                    self.push(Node::Tuple(items))?;
                }
                0x85..=0x87 => self.tuple(usize::from(opcode as u8 - 0x84))?,
                // LIST, APPEND, APPENDS, ADDITEMS: lists and sets hold no weights
                b'l' => {
                    self.group()?;
                    self.push(Node::Other)?;
                }
                b'a' => drop(self.pop()?),
                b'e' | 0x90 => drop(self.group()?),
                b'}' => self.push(Node::Dict(Vec::new()))?,
                b'd' => {
                    let items = self.group()?;
                    self.push(Node::Dict(Vec::new()))?;
                    self.set(&items)?;
                }
                b's' => {
                    let value = self.pop()?;
                    let key = self.pop()?;
                    self.set(&[key, value])?;
                }
                b'u' => {
                    let items = self.group()?;
                    self.set(&items)?;
                }
                // BINPUT, LONG_BINPUT, MEMOIZE; BINGET, LONG_BINGET
                b'q' => self.put(1)?,
                b'r' => self.put(4)?,
                0x94 => {
                    let (place, top) = (self.memo.len(), self.top()?);
                    self.memo.insert(place, top);
                }
                b'h' => self.get(1)?,
                b'j' => self.get(4)?,
                // GLOBAL, STACK_GLOBAL
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.global(&module, &name)?;
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    let (Node::Text(module), Node::Text(name)) = (self.node(module)?, self.node(name)?)
                    else {
                        return Err(damaged("names a function by something that is no text"));
                    };
                    let (module, name) = (module.clone(), name.clone());
                    self.global(&module, &name)?;
                }
                b'Q' => self.persistent()?,
                // REDUCE, NEWOBJ
                b'R' | 0x81 => self.call()?,
                // BUILD: what a dictionary or a tensor has beside its content, such as versions, is not needed.
                b'b' => {
                    self.pop()?;
                    let top = self.top()?;
                    if !matches!(self.node(top)?, Node::Dict(_) | Node::Tensor(_)) {
                        return Err(damaged("sets the state of something that has none"));
                    }
                }
                other => {
                    return Err(damaged(format!(
                        "has opcode 0x{other:02x} at byte {} of its pickle, which torch.save does not write",
                        self.at - 1
                    )));
                }
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let piece = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        let piece = piece.ok_or_else(|| damaged("is cut short: its pickle ends too early"))?;
        self.at += count;
        Ok(piece)
    }

    /// A little-endian number of up to eight bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, Refusal> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn length(&mut self, bytes: usize) -> Result<usize, Refusal> {
        usize::try_from(self.number(bytes)?).map_err(|_| damaged("is cut short: its pickle ends too early"))
    }

    fn line(&mut self) -> Result<String, Refusal> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| damaged("is cut short: its pickle ends too early"))?;
        let line = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Ok(line)
    }

    fn push(&mut self, node: Node) -> Result<(), Refusal> {
        if self.nodes.len() >= MOST_NODES {
            return Err(damaged("has a pickle of more values than weights need"));
        }
        self.stack.push(self.nodes.len());
        self.nodes.push(node);
        Ok(())
    }

    fn node(&self, id: Id) -> Result<&Node, Refusal> {
        self.nodes.get(id).ok_or_else(|| damaged("has a pickle that names a value it has not made"))
    }

    /// A group is taken whole or not at all.
    fn pop(&mut self) -> Result<Id, Refusal> {
        let floor = self.marks.last().copied().unwrap_or_default();
        if self.stack.len() <= floor {
            return Err(damaged("has a pickle that takes more than it put down"));
        }
        self.stack.pop().ok_or_else(|| damaged("has a pickle that takes more than it put down"))
    }

    fn top(&mut self) -> Result<Id, Refusal> {
        let top = self.pop()?;
        self.stack.push(top);
        Ok(top)
    }

    /// Everything since the last mark.
    fn group(&mut self) -> Result<Vec<Id>, Refusal> {
        let from =
            self.marks.pop().ok_or_else(|| damaged("has a pickle that ends a group it did not begin"))?;
        Ok(self.stack.split_off(from.min(self.stack.len())))
    }

    fn int(&mut self, bytes: usize) -> Result<(), Refusal> {
        let value = self.number(bytes)?;
        self.push(i64::try_from(value).map_or(Node::Other, Node::Int))
    }

    /// A signed number of any length; what is longer than 64 bits is no part of weights.
    fn long(&mut self, bytes: usize) -> Result<(), Refusal> {
        let length = self.length(bytes)?;
        let digits = self.take(length)?;
        if length > 8 {
            return self.push(Node::Other);
        }
        let negative = digits.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut all = if negative { [0xff; 8] } else { [0; 8] };
        all[..length].copy_from_slice(digits);
        self.push(Node::Int(i64::from_le_bytes(all)))
    }

    fn text(&mut self, bytes: usize) -> Result<(), Refusal> {
        let length = self.length(bytes)?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.push(Node::Text(text))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Refusal> {
        let length = self.length(bytes)?;
        self.take(length)?;
        self.push(Node::Other)
    }

    fn tuple(&mut self, count: usize) -> Result<(), Refusal> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Node::Tuple(items))
    }

    fn put(&mut self, bytes: usize) -> Result<(), Refusal> {
        let (place, top) = (self.length(bytes)?, self.top()?);
        self.memo.insert(place, top);
        Ok(())
    }

    fn get(&mut self, bytes: usize) -> Result<(), Refusal> {
        let place = self.length(bytes)?;
        let id = self.memo.get(&place).copied();
        self.stack.push(id.ok_or_else(|| damaged("has a pickle that remembers what it has not kept"))?);
        Ok(())
    }

    /// Puts keys and values, one after the other, into the dictionary on top.
    fn set(&mut self, items: &[Id]) -> Result<(), Refusal> {
        let top = self.top()?;
        let (pairs, rest) = items.as_chunks();
        match self.nodes.get_mut(top) {
            Some(Node::Dict(entries)) if rest.is_empty() => {
                entries.extend(pairs.iter().map(|[key, value]| (*key, *value)));
                Ok(())
            }
            _ => Err(damaged("has a pickle that puts a value where no dictionary is")),
        }
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), Refusal> {
        let global =
            Global::named(module, name).ok_or_else(|| Refusal::Program(format!("{module}.{name}")))?;
        self.push(Node::Global(global))
    }

    fn call(&mut self) -> Result<(), Refusal> {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        let arguments = match self.node(arguments)? {
            Node::Tuple(arguments) if arguments.len() <= MOST_ITEMS => arguments.clone(),
            _ => return Err(damaged("has a pickle that calls with no arguments, or with too many")),
        };
        let made = match (self.node(callee)?, arguments.as_slice()) {
            (Node::Global(Global::OrderedDict), []) => Node::Dict(Vec::new()),
            (Node::Global(Global::RebuildParameter), [tensor, ..]) => match self.node(*tensor)? {
                Node::Tensor(view) => Node::Tensor(view.clone()),
                _ => return Err(damaged("makes a parameter of something that is no tensor")),
            },
            (Node::Global(Global::RebuildTensor), [storage, offset, shape, strides, ..]) => {
                Node::Tensor(self.view(*storage, *offset, *shape, *strides)?)
            }
            _ => return Err(damaged("has a pickle that calls something in a way torch.save does not")),
        };
        self.push(made)
    }

    /// `('storage', class, key, location, elements)`
    fn persistent(&mut self) -> Result<(), Refusal> {
        let wrong = || damaged("names a storage in a way torch.save does not");
        let id = self.pop()?;
        let Node::Tuple(parts) = self.node(id)? else { return Err(wrong()) };
        let [kind, class, key, _, elements] = parts[..] else { return Err(wrong()) };
        let storage = match (self.node(kind)?, self.node(class)?, self.node(key)?, self.node(elements)?) {
            (
                Node::Text(kind),
                Node::Global(Global::Storage(element)),
                Node::Text(key),
                Node::Int(elements),
            ) if kind == "storage" && key.len() <= LONGEST_NAME => Storage {
                key: key.clone(),
                element: element.clone(),
                elements: usize::try_from(*elements).map_err(|_| wrong())?,
            },
            _ => return Err(wrong()),
        };
        self.push(Node::Storage(storage))
    }

    /// A view, once it is sure that all of it lies within its storage.
    fn view(&self, storage: Id, offset: Id, shape: Id, strides: Id) -> Result<View, Refusal> {
        let wrong = || damaged("describes a tensor in a way torch.save does not");
        let Node::Storage(storage) = self.node(storage)? else { return Err(wrong()) };
        let offset = self.size(offset)?;
        let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
        View::within(storage, offset, shape, strides).map_err(Refusal::Damaged)
    }

    fn sizes(&self, id: Id) -> Result<Vec<usize>, Refusal> {
        match self.node(id)? {
            Node::Tuple(items) if items.len() <= MOST_ITEMS => {
                items.iter().map(|item| self.size(*item)).collect()
            }
            _ => Err(damaged("describes a tensor in a way torch.save does not")),
        }
    }

    fn size(&self, id: Id) -> Result<usize, Refusal> {
        match self.node(id)? {
            Node::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
        .ok_or_else(|| damaged("describes a tensor in a way torch.save does not"))
    }
}

#[cfg(test)]
mod tests;
