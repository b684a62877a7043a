//! Parquet, as little of it as a table of results needs: one group of rows, one page a column, neither encoded nor
//! compressed, every cell optional. Its description is in Thrift's compact protocol.

use serde_json::Value;

const MAGIC: &[u8] = b"PAR1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean = 0,
    Integer = 2,
    Float = 5,
    Text = 6,
}

pub(super) struct Column {
    name: String,
    kind: Kind,
    /// Which cells are there, and the bytes of those.
    present: Vec<bool>,
    bytes: Vec<u8>,
}

impl Column {
    /// Of the narrowest kind that holds every cell; text where they are of several.
    pub(super) fn new(name: &str, cells: &[&Value]) -> Self {
        let given = || cells.iter().filter(|cell| !cell.is_null());
        let kind = if given().count() > 0 && given().all(|cell| cell.is_boolean()) {
            Kind::Boolean
        } else if given().count() > 0 && given().all(|cell| cell.is_i64()) {
            Kind::Integer
        } else if given().count() > 0 && given().all(|cell| cell.is_number()) {
            Kind::Float
        } else {
            Kind::Text
        };
        let mut bytes = Vec::new();
        let mut bits = 0;
        for cell in given() {
            match kind {
                Kind::Boolean => {
                    if bits % 8 == 0 {
                        bytes.push(0);
                    }
                    if let Some(last) = bytes.last_mut() {
                        *last |= u8::from(cell.as_bool() == Some(true)) << (bits % 8);
                    }
                    bits += 1;
                }
                Kind::Integer => bytes.extend(cell.as_i64().unwrap_or_default().to_le_bytes()),
                Kind::Float => bytes.extend(cell.as_f64().unwrap_or(f64::NAN).to_le_bytes()),
                Kind::Text => {
                    let text = super::text(cell);
                    bytes.extend((text.len() as u32).to_le_bytes());
                    bytes.extend(text.as_bytes());
                }
            }
        }
        Self { name: name.to_owned(), kind, present: cells.iter().map(|cell| !cell.is_null()).collect(), bytes }
    }

    /// Which cells are there, in runs, then those.
    fn page(&self) -> Vec<u8> {
        let mut levels = Vec::new();
        for run in self.present.chunk_by(|a, b| a == b) {
            varint(&mut levels, (run.len() as u64) << 1);
            levels.push(u8::from(run[0]));
        }
        let mut page = (levels.len() as u32).to_le_bytes().to_vec();
        page.extend(levels);
        page.extend(&self.bytes);
        page
    }
}

struct Chunk {
    offset: u64,
    size: u64,
}

pub(super) fn write(columns: &[Column], rows: usize) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let mut chunks = Vec::new();
    for column in columns {
        let page = column.page();
        let mut header = Thrift::default();
        header.integer(1, 0);
        header.integer(2, page.len() as i64);
        header.integer(3, page.len() as i64);
        header.inner(5, |data| {
            data.integer(1, rows as i64);
            // Plain values; levels in runs.
            data.integer(2, 0);
            data.integer(3, 3);
            data.integer(4, 3);
        });
        let offset = file.len() as u64;
        file.extend(header.end());
        file.extend(page);
        chunks.push(Chunk { offset, size: file.len() as u64 - offset });
    }
    let description = describe(columns, &chunks, rows);
    file.extend(&description);
    file.extend((description.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

fn describe(columns: &[Column], chunks: &[Chunk], rows: usize) -> Vec<u8> {
    let mut file = Thrift::default();
    file.integer(1, 1);
    file.list(2, STRUCT, columns.len() + 1, |elements| {
        let mut root = Thrift::default();
        root.text(4, "schema");
        root.integer(5, columns.len() as i64);
        elements.extend(root.end());
        for column in columns {
            let mut element = Thrift::default();
            element.integer(1, column.kind as i64);
            element.integer(3, 1);
            element.text(4, &column.name);
            if column.kind == Kind::Text {
                element.integer(6, 0);
                element.inner(10, |logical| logical.inner(1, |_| {}));
            }
            elements.extend(element.end());
        }
    });
    file.long(3, rows as i64);
    file.list(4, STRUCT, 1, |groups| {
        let mut group = Thrift::default();
        group.list(1, STRUCT, columns.len(), |list| {
            for (column, chunk) in columns.iter().zip(chunks) {
                let mut one = Thrift::default();
                one.long(2, chunk.offset as i64);
                one.inner(3, |meta| meta_data(meta, column, chunk, rows));
                list.extend(one.end());
            }
        });
        group.long(2, chunks.iter().map(|chunk| chunk.size as i64).sum());
        group.long(3, rows as i64);
        groups.extend(group.end());
    });
    file.text(6, concat!("tulpar version ", env!("CARGO_PKG_VERSION"), " (build unknown)"));
    file.end()
}

fn meta_data(meta: &mut Thrift, column: &Column, chunk: &Chunk, rows: usize) {
    meta.integer(1, column.kind as i64);
    meta.list(2, INTEGER, 2, |encodings| {
        for encoding in [0, 3] {
            varint(encodings, zigzag(encoding));
        }
    });
    meta.list(3, BINARY, 1, |path| {
        varint(path, column.name.len() as u64);
        path.extend(column.name.as_bytes());
    });
    meta.integer(4, 0);
    meta.long(5, rows as i64);
    meta.long(6, chunk.size as i64);
    meta.long(7, chunk.size as i64);
    meta.long(9, chunk.offset as i64);
}

const INTEGER: u8 = 5;
const LONG: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure of Thrift's compact protocol; fields are written in their order.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: u8,
}

impl Thrift {
    fn field(&mut self, field: u8, kind: u8) {
        // No structure here leaves out fifteen fields.
        self.bytes.push(((field - self.last) << 4) | kind);
        self.last = field;
    }

    fn integer(&mut self, field: u8, value: i64) {
        self.field(field, INTEGER);
        varint(&mut self.bytes, zigzag(value));
    }

    fn long(&mut self, field: u8, value: i64) {
        self.field(field, LONG);
        varint(&mut self.bytes, zigzag(value));
    }

    fn text(&mut self, field: u8, text: &str) {
        self.field(field, BINARY);
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn inner(&mut self, field: u8, fill: impl FnOnce(&mut Thrift)) {
        self.field(field, STRUCT);
        let mut inner = Thrift::default();
        fill(&mut inner);
        self.bytes.extend(inner.end());
    }

    fn list(&mut self, field: u8, kind: u8, length: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.field(field, LIST);
        if length < 15 {
            self.bytes.push(((length as u8) << 4) | kind);
        } else {
            self.bytes.push(0xF0 | kind);
            varint(&mut self.bytes, length as u64);
        }
        fill(&mut self.bytes);
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
