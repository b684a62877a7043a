//! CRC-32C (Castagnoli) as TFRecord masks it: with the instruction that processors have for it, as TensorFlow does, or with
//! tables, eight bytes at a time.

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor was just asked whether it has the instruction.
        return unsafe { crc32c_instruction(bytes) };
    }
    crc32c_tables(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn crc32c_instruction(bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(u64::from(u32::MAX), |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)));
    !rest.iter().fold(state as u32, |state, byte| _mm_crc32_u8(state, *byte))
}

fn crc32c_tables(bytes: &[u8]) -> u32 {
    let mut state = u32::MAX;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(state);
        state = 0;
        for (place, table) in TABLES.iter().rev().enumerate() {
            state ^= table[(word >> (8 * place)) as usize & 0xff];
        }
    }
    for byte in rest {
        state = (state >> 8) ^ TABLES[0][((state ^ u32::from(*byte)) & 0xff) as usize];
    }
    !state
}

/// A checksum of data that itself contains checksums is weak; TFRecord stores it turned and moved.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::{crc32c, crc32c_tables, masked};

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
        assert_eq!(masked(b"\x1a\x11CRC test, one two"), 0x5794_d08a);
    }

    #[test]
    fn instruction_and_tables_agree() {
        let bytes: Vec<u8> = (0..1000_u16).map(|number| (number * 7 % 251) as u8).collect();
        for length in [0, 1, 7, 8, 9, 999] {
            assert_eq!(crc32c(&bytes[..length]), crc32c_tables(&bytes[..length]), "{length}");
        }
    }
}
