//! Event files of TensorBoard, written: scalars, and what plugins keep beside them.

use super::checksum::masked;

/// A message of Protocol Buffers, field by field.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn whole(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// A file in the making. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct EventFile(Vec<u8>);

impl EventFile {
    pub fn new(at: f64) -> Self {
        let mut file = Self(Vec::new());
        file.push(&Message::default().double(1, at).text(3, "brain.Event:2"));
        file
    }

    pub fn scalar(&mut self, at: f64, step: u64, tag: &str, value: f32) {
        let value = Message::default().text(1, tag).float(2, value);
        self.push(&Message::default().double(1, at).whole(2, step).message(5, &Message::default().message(1, &value)));
    }

    /// What a plugin keeps under a tag. Its readers want a tensor there: one zero.
    pub fn plugin(&mut self, at: f64, tag: &str, plugin: &str, content: &Message) {
        let data = Message::default().text(1, plugin).message(2, content);
        let one = Message::default().message(2, &Message::default().whole(1, 1));
        let tensor = Message::default().whole(1, 1).message(2, &one).bytes(5, &0f32.to_le_bytes());
        let metadata = Message::default().message(1, &data);
        let value = Message::default().text(1, tag).message(8, &tensor).message(9, &metadata);
        self.push(&Message::default().double(1, at).message(5, &Message::default().message(1, &value)));
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn push(&mut self, event: &Message) {
        let length = (event.0.len() as u64).to_le_bytes();
        self.0.extend(length);
        self.0.extend(masked(&length).to_le_bytes());
        self.0.extend(&event.0);
        self.0.extend(masked(&event.0).to_le_bytes());
    }
}
