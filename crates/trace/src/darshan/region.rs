//! One region of a log, decompressed in a window of fixed size. A region is a sequence of compressed streams one after
//! the other (every MPI rank wrote its own). Does not know what the bytes mean.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use flate2::{Decompress, FlushDecompress, Status};

use super::error::Error;
use super::header::Compression;

const INPUT: usize = 64 * 1024;
/// Also the largest piece that can be asked for at once.
pub(crate) const WINDOW: usize = 256 * 1024;
/// Regions that are longer are decompressed ahead, by a thread of their own; for shorter ones that costs more than it gives.
const LONG: u64 = 512 * 1024;
/// What a thread hands on at once.
const PIECE: usize = 128 * 1024;
/// Pieces that the thread may be ahead.
const AHEAD: usize = 96;

enum Codec {
    Zlib(Box<Decompress>),
    Bzip2(bzip2::Decompress),
    None,
}

/// Decompresses the streams of a region.
struct Streams<R> {
    source: std::io::Take<R>,
    codec: Codec,
    input: Vec<u8>,
    input_at: usize,
    inside_stream: bool,
}

/// Where decompressed bytes come from.
enum Feed<R> {
    Streams(Streams<R>),
    /// Pieces that a thread decompressed; used ones go back to it.
    Thread(Receiver<Result<Vec<u8>, Error>>, Sender<Vec<u8>>),
}

pub(crate) struct Region<R> {
    feed: Feed<R>,
    /// Compressed bytes.
    length: u64,
    /// The file ends before the region does.
    cut: bool,
    window: Vec<u8>,
    at: usize,
    end: usize,
    finished: bool,
    failed: Option<Error>,
}

impl<R: Read + Send> Region<R> {
    /// Hands the region to `read`, decompressed by another thread meanwhile if it is long.
    pub(crate) fn ahead<T>(self, read: impl FnOnce(Region<R>) -> Result<T, Error>) -> Result<T, Error> {
        let Region { feed: Feed::Streams(mut streams), length: LONG.., .. } = self else { return read(self) };
        std::thread::scope(|scope| {
            let (full, pieces) = sync_channel(AHEAD);
            let (used, empty) = channel::<Vec<u8>>();
            std::thread::Builder::new().name("inflate".to_owned()).spawn_scoped(scope, move || {
                loop {
                    let mut piece = empty.try_recv().unwrap_or_default();
                    piece.resize(PIECE, 0);
                    let (count, error) = streams.fill(&mut piece);
                    piece.truncate(count);
                    // What came before the damage is told first. Whoever reads may have seen enough.
                    let goes_on = count > 0 && full.send(Ok(piece)).is_ok();
                    if let Some(error) = error {
                        let _ = full.send(Err(error));
                        return;
                    }
                    if !goes_on {
                        return;
                    }
                }
            })?;
            read(Region { feed: Feed::Thread(pieces, used), ..self })
        })
    }
}

impl<R: Read> Region<R> {
    /// `source` stands at the region's first byte; `length` is what the header says, `present` what the file has.
    pub(crate) fn new(source: R, length: u64, present: u64, compression: Compression) -> Region<R> {
        let codec = match compression {
            Compression::Zlib => Codec::Zlib(Box::new(Decompress::new(true))),
            Compression::Bzip2 => Codec::Bzip2(bzip2::Decompress::new(false)),
            Compression::None => Codec::None,
        };
        let streams = Streams {
            source: source.take(length.min(present)),
            codec,
            input: Vec::with_capacity(INPUT),
            input_at: 0,
            inside_stream: false,
        };
        Region {
            feed: Feed::Streams(streams),
            length: length.min(present),
            cut: length > present,
            // Room for a whole piece behind anything that may be asked for.
            window: vec![0; WINDOW + PIECE],
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
        let count = match &mut self.feed {
            Feed::Streams(streams) => streams.pull(&mut self.window[self.end..])?,
            Feed::Thread(pieces, used) => {
                let piece = pieces.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
                self.window[self.end..self.end + piece.len()].copy_from_slice(&piece);
                let count = piece.len();
                // The thread may be through with the region.
                let _ = used.send(piece);
                count
            }
        };
        self.end += count;
        Ok(count > 0)
    }
}

impl<R: Read> Streams<R> {
    /// Fills what it is given as far as the region goes; and why no further, if the region is damaged.
    fn fill(&mut self, output: &mut [u8]) -> (usize, Option<Error>) {
        let mut at = 0;
        while at < output.len() {
            match self.pull(&mut output[at..]) {
                Ok(0) => break,
                Ok(count) => at += count,
                Err(error) => return (at, Some(error)),
            }
        }
        (at, None)
    }

    /// Some bytes; none at the end of the region.
    fn pull(&mut self, output: &mut [u8]) -> Result<usize, Error> {
        loop {
            if self.input_at == self.input.len() {
                self.input.clear();
                self.input_at = 0;
                // `Take` of the chunk keeps the buffer at its size, whatever the region's length claims.
                (&mut self.source).take(INPUT as u64).read_to_end(&mut self.input)?;
            }
            let input = &self.input[self.input_at..];
            if input.is_empty() && !self.inside_stream {
                return Ok(0);
            }
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
            self.inside_stream = !ended;
            if produced > 0 {
                return Ok(produced);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Error, Region};
    use crate::darshan::header::Compression;

    /// What can be read of a region, in pieces of a thousand bytes, and what is said at its end.
    fn drained(mut region: Region<&[u8]>) -> Result<(Vec<u8>, String), Error> {
        let mut bytes = Vec::new();
        loop {
            match region.next(1000) {
                Ok(Some(piece)) => bytes.extend_from_slice(piece),
                Ok(None) => return Ok((bytes, "the end".to_owned())),
                Err(error) => return Ok((bytes, error.to_string())),
            }
        }
    }

    #[test]
    fn a_thread_that_is_ahead_gives_the_same_bytes_and_names_the_same_damage() {
        let noise = |index: u64| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        let plain: Vec<u8> = (0..3_000_000).map(|index| noise(index) ^ noise(index / 7)).collect();
        let mut sound = Vec::new();
        for part in plain.chunks(1_250_000) {
            let mut stream = flate2::write::ZlibEncoder::new(&mut sound, flate2::Compression::fast());
            stream.write_all(part).expect("memory");
            stream.finish().expect("memory");
        }
        let length = sound.len() as u64;
        assert!(length > super::LONG, "{length} bytes");
        let mut damaged = sound.clone();
        damaged[sound.len() * 3 / 4] ^= 0x55;
        let cut = sound[..sound.len() * 9 / 10].to_vec();
        let mut trailing = sound.clone();
        trailing.extend_from_slice(b"no stream");
        for (name, bytes) in [("sound", &sound), ("damaged", &damaged), ("cut", &cut), ("trailing", &trailing)] {
            let present = bytes.len() as u64;
            let region = || Region::new(&bytes[..], length.max(present), present, Compression::Zlib);
            let alone = drained(region()).expect("no threads are needed");
            let ahead = region().ahead(drained).expect("a thread");
            assert_eq!(ahead.1, alone.1, "{name}");
            // What was decompressed together with the damage is lost with it: how much depends on the room there was.
            assert!(ahead.0.starts_with(&alone.0) || alone.0.starts_with(&ahead.0), "{name}");
            assert!(plain.starts_with(&alone.0) || name == "damaged", "{name}");
            let apart = ahead.0.len().abs_diff(alone.0.len());
            assert!(apart < super::WINDOW && (apart == 0 || name == "damaged"), "{name}: {apart}");
            assert_eq!(alone.1 == "the end", name == "sound", "{name}: {}", alone.1);
        }
        // Who has seen enough leaves, and the thread with him.
        Region::new(&sound[..], length, length, Compression::Zlib).ahead(|_| Ok(())).expect("a thread");
    }
}
