//! Opens text that may be gzip-compressed, by its first bytes, and stops bombs: what inflates beyond any honest ratio.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Chrome traces compress 10 to 40 times.
const RATIO: u64 = 250;
const ALWAYS: u64 = 64 << 20;

/// Counts what passes.
struct Counted<R> {
    source: R,
    count: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

struct Guarded<R> {
    source: R,
    compressed: std::rc::Rc<std::cell::Cell<u64>>,
    inflated: u64,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.inflated += count as u64;
        if self.inflated > ALWAYS + RATIO.saturating_mul(self.compressed.get()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it inflates beyond any honest ratio"));
        }
        Ok(count)
    }
}

/// The text of a file, whether or not it is compressed.
pub(crate) fn text<'a>(source: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let count = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut source = BufReader::with_capacity(64 * 1024, Counted { source, count: count.clone() });
    if !source.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(source));
    }
    let guarded = Guarded { source: MultiGzDecoder::new(source), compressed: count, inflated: 0 };
    Ok(Box::new(BufReader::with_capacity(64 * 1024, guarded)))
}
