//! Numbers in the byte order of the machine that wrote the log. Knows no structure.

/// Byte order of a log: that of its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Reads at `at`; the callers have checked that the slice is long enough.
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let word: [u8; 8] = bytes[at..at + 8].try_into().expect("a slice of eight bytes");
        match self {
            ByteOrder::Little => u64::from_le_bytes(word),
            ByteOrder::Big => u64::from_be_bytes(word),
        }
    }

    pub(crate) fn i64(self, bytes: &[u8], at: usize) -> i64 {
        self.u64(bytes, at).cast_signed()
    }

    pub(crate) fn f64(self, bytes: &[u8], at: usize) -> f64 {
        f64::from_bits(self.u64(bytes, at))
    }

    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word: [u8; 4] = bytes[at..at + 4].try_into().expect("a slice of four bytes");
        match self {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word),
        }
    }
}

/// The text before the first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
