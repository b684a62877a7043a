//! One region of a log, decompressed in a window of fixed size. A region is a sequence of compressed streams one after
//! the other (every MPI rank wrote its own). Does not know what the bytes mean.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};

use super::error::Error;
use super::header::Compression;

const INPUT: usize = 64 * 1024;
/// Also the largest piece that can be asked for at once.
pub(crate) const WINDOW: usize = 256 * 1024;

enum Codec {
    Zlib(Box<Decompress>),
    Bzip2(bzip2::Decompress),
    None,
}

pub(crate) struct Region<R> {
    source: std::io::Take<R>,
    /// The file ends before the region does.
    cut: bool,
    codec: Codec,
    input: Vec<u8>,
    input_at: usize,
    inside_stream: bool,
    window: Vec<u8>,
    at: usize,
    end: usize,
    finished: bool,
    failed: Option<Error>,
}

impl<R: Read> Region<R> {
    /// `source` stands at the region's first byte; `length` is what the header says, `present` what the file has.
    pub(crate) fn new(source: R, length: u64, present: u64, compression: Compression) -> Region<R> {
        let codec = match compression {
            Compression::Zlib => Codec::Zlib(Box::new(Decompress::new(true))),
            Compression::Bzip2 => Codec::Bzip2(bzip2::Decompress::new(false)),
            Compression::None => Codec::None,
        };
        Region {
            source: source.take(length.min(present)),
            cut: length > present,
            codec,
            input: Vec::with_capacity(INPUT),
            input_at: 0,
            inside_stream: false,
            window: vec![0; WINDOW],
            at: 0,
            end: 0,
            finished: false,
            failed: None,
        }
    }

    /// Makes `wanted` bytes available if the region has them; gives what there is. Damage is told only by who needs
    /// more than what came before it.
    pub(crate) fn fill(&mut self, wanted: usize) -> &[u8] {
        debug_assert!(wanted <= WINDOW);
        if self.end - self.at < wanted && !self.finished {
            self.window.copy_within(self.at..self.end, 0);
            self.end -= self.at;
            self.at = 0;
            while self.end < wanted && !self.finished {
                match self.pull() {
                    Ok(more) => self.finished = !more,
                    Err(error) => {
                        self.failed = Some(error);
                        self.finished = true;
                    }
                }
            }
        }
        &self.window[self.at..self.end]
    }

    /// Why there are not more bytes; `otherwise` when the region simply ends here.
    pub(crate) fn shortage(&mut self, otherwise: Error) -> Error {
        let cut = self.cut.then_some(Error::Truncated("a region goes beyond the end of the file"));
        // A cut stream also fails to decompress: the cut is the reason.
        cut.or(self.failed.take()).unwrap_or(otherwise)
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.cut || self.failed.is_some()
    }

    /// The next `size` bytes; `None` at the end of the region; an error if it ends inside them.
    pub(crate) fn next(&mut self, size: usize) -> Result<Option<&[u8]>, Error> {
        let available = self.fill(size).len();
        if available >= size {
            self.at += size;
            return Ok(Some(&self.window[self.at - size..self.at]));
        }
        if available > 0 || self.is_damaged() {
            return Err(self.shortage(Error::Nonsense("bytes are left over that are too few for a record")));
        }
        Ok(None)
    }

    /// As `next`, where the format promises that the bytes are there.
    pub(crate) fn promised(&mut self, size: usize) -> Result<&[u8], Error> {
        if self.fill(size).len() < size {
            return Err(self.shortage(Error::Truncated("a record is longer than the data that are left")));
        }
        self.at += size;
        Ok(&self.window[self.at - size..self.at])
    }

    /// Takes note that the first `count` bytes that `fill` gave are used.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.at);
        self.at += count;
    }

    /// Adds bytes to the window; false at the end of the region.
    fn pull(&mut self) -> Result<bool, Error> {
        loop {
            if self.input_at == self.input.len() {
                self.input.clear();
                self.input_at = 0;
                // `Take` of the chunk keeps the buffer at its size, whatever the region's length claims.
                (&mut self.source).take(INPUT as u64).read_to_end(&mut self.input)?;
            }
            let input = &self.input[self.input_at..];
            if input.is_empty() && !self.inside_stream {
                return Ok(false);
            }
            let output = &mut self.window[self.end..];
            let (consumed, produced, ended) = match &mut self.codec {
                Codec::None => {
                    let count = input.len().min(output.len());
                    output[..count].copy_from_slice(&input[..count]);
                    (count, count, true)
                }
                Codec::Zlib(zlib) => {
                    let (input_before, output_before) = (zlib.total_in(), zlib.total_out());
                    let status = zlib
                        .decompress(input, output, FlushDecompress::None)
                        .map_err(|error| Error::Compressed(error.to_string()))?;
                    let consumed = (zlib.total_in() - input_before) as usize;
                    let produced = (zlib.total_out() - output_before) as usize;
                    if status == Status::StreamEnd {
                        zlib.reset(true);
                    }
                    (consumed, produced, status == Status::StreamEnd)
                }
                Codec::Bzip2(bzip2) => {
                    let (input_before, output_before) = (bzip2.total_in(), bzip2.total_out());
                    let status =
                        bzip2.decompress(input, output).map_err(|error| Error::Compressed(error.to_string()))?;
                    let consumed = (bzip2.total_in() - input_before) as usize;
                    let produced = (bzip2.total_out() - output_before) as usize;
                    let ended = status == bzip2::Status::StreamEnd;
                    if ended {
                        *bzip2 = bzip2::Decompress::new(false);
                    }
                    (consumed, produced, ended)
                }
            };
            let stuck = consumed == 0 && produced == 0;
            if stuck && input.is_empty() {
                return Err(Error::Truncated("a compressed stream has no end"));
            }
            if stuck {
                return Err(Error::Compressed("the stream does not go on".to_owned()));
            }
            self.input_at += consumed;
            self.end += produced;
            self.inside_stream = !ended;
            if produced > 0 {
                return Ok(true);
            }
        }
    }
}
