//! Fields of a protocol buffer, in its wire format.

/// A message being written.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

/// Wire types.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;
const FOUR_BYTES: u64 = 5;

impl Message {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Starts over, with the memory it has.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    /// A whole number or an enumeration's value.
    pub(super) fn whole(&mut self, field: u64, value: u64) -> &mut Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    pub(super) fn double(&mut self, field: u64, value: f64) -> &mut Self {
        self.key(field, EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn float(&mut self, field: u64, value: f32) -> &mut Self {
        self.key(field, FOUR_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.length(field, text.as_bytes())
    }

    fn length(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.key(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A message inside this one; also bytes that are one.
    pub(super) fn message(&mut self, field: u64, inner: &Self) -> &mut Self {
        self.length(field, &inner.0)
    }

    /// A list of numbers, packed.
    pub(super) fn doubles(&mut self, field: u64, values: &[f64]) -> &mut Self {
        self.key(field, LENGTH);
        self.varint(8 * values.len() as u64);
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's own description.
    #[test]
    fn fields_are_written_as_described() {
        assert_eq!(Message::default().whole(1, 150).bytes(), [0x08, 0x96, 0x01]);
        let text = [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67];
        assert_eq!(Message::default().text(2, "testing").bytes(), text);
        let mut inner = Message::default();
        inner.whole(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().float(2, 1.0).bytes(), [0x15, 0, 0, 0x80, 0x3f]);
        assert_eq!(Message::default().double(1, 1.0).bytes(), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let packed = [[0x32, 0x10].as_slice(), &1_f64.to_le_bytes(), &2_f64.to_le_bytes()].concat();
        assert_eq!(Message::default().doubles(6, &[1.0, 2.0]).bytes(), packed);
    }
}
