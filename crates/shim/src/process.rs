//! What one process left: its header, its entries in one pass, its segments. A process may have been killed at any
//! moment, so that everything is checked against what the files hold.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::layout::{self, UNIT, entry, header, segment};
use crate::rules::{self, READ, Time, Transfer, WRITE, Words};

/// The words of a header and its texts.
pub(crate) struct Process {
    path: PathBuf,
    words: [u64; header::WORDS],
    pub(crate) host: String,
    length: u64,
}

/// One entry, as long as it is looked at.
pub(crate) struct Entry<'a> {
    pub(crate) unit: u32,
    pub(crate) kind: u64,
    pub(crate) words: &'a [u64; entry::WORDS],
    pub(crate) name: &'a [u8],
}

impl Entry<'_> {
    /// Something was done with the file. A name that was only looked up stays out, and so does a stream of somebody else that
    /// was only closed at the end.
    pub(crate) fn is_used(&self) -> bool {
        const NOTHING: [usize; 10] = [
            entry::KIND,
            entry::LOCK,
            entry::NAME_LENGTH,
            entry::FILE_ALIGNMENT,
            entry::MODE,
            entry::FILENOS,
            entry::FLUSHES,
            entry::META_TIME,
            entry::CLOSE_START,
            entry::CLOSE_END,
        ];
        self.words.iter().enumerate().any(|(position, word)| *word != 0 && !NOTHING.contains(&position))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) unit: u32,
    pub(crate) is_write: bool,
    pub(crate) transfer: Transfer,
    pub(crate) time: Time,
}

impl Words for &[Cell<u64>] {
    fn get(self, position: usize) -> u64 {
        self[position].get()
    }

    fn set(self, position: usize, value: u64) {
        self[position].set(value);
    }
}

fn count<const WAY: usize>(words: &[Cell<u64>], segment: &Segment) {
    rules::transfer::<WAY>(words, &segment.transfer);
    rules::time::<WAY>(words, segment.transfer.size, &segment.time);
}

fn word(bytes: &[u8], position: usize) -> u64 {
    bytes.get(8 * position..8 * position + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

impl Process {
    /// `None` where the process was killed before it had begun.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Process>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut page = Vec::with_capacity(header::BYTES);
        file.by_ref().take(header::BYTES as u64).read_to_end(&mut page)?;
        if page.len() < header::BYTES
            || word(&page, header::MAGIC) != header::MAGIC_NUMBER
            || word(&page, header::VERSION) != header::LAYOUT
        {
            return Ok(None);
        }
        let words = std::array::from_fn(|position| word(&page, position));
        let host = text(&page[header::HOST_AT..header::HOST_AT + header::HOST_BYTES]);
        Ok(Some(Process { path: path.to_owned(), words, host, length }))
    }

    pub(crate) fn get(&self, position: usize) -> u64 {
        self.words[position]
    }

    /// All finished entries, in the order in which they were made.
    pub(crate) fn entries(&self, mut visit: impl FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut file = BufReader::with_capacity(1 << 18, File::open(&self.path)?);
        file.seek(SeekFrom::Start(header::BYTES as u64))?;
        let end = self.get(header::FILES_USED).min(self.length);
        let mut at = header::BYTES as u64;
        let mut bytes = Vec::new();
        while at + UNIT as u64 <= end {
            bytes.resize(UNIT, 0);
            file.read_exact(&mut bytes)?;
            let first = word(&bytes, entry::KIND);
            let units = first >> 32;
            let size = units * UNIT as u64;
            if first == 0 || size < (entry::WORDS * 8) as u64 || at + size > end {
                // Not finished: nothing was written there, so the next unit that holds something is the next entry.
                at += UNIT as u64;
                continue;
            }
            bytes.resize(size as usize, 0);
            file.read_exact(&mut bytes[UNIT..])?;
            let words = std::array::from_fn(|position| word(&bytes, position));
            let name_at = entry::WORDS * 8;
            let length = (words[entry::NAME_LENGTH] as usize).min(bytes.len() - name_at);
            let kind = first & 0xffff_ffff;
            let unit = (at / UNIT as u64) as u32;
            visit(&Entry { unit, kind, words: &words, name: &bytes[name_at..name_at + length] })?;
            at += size;
        }
        Ok(())
    }

    /// The same with what was traced, and so not counted by the process itself, counted now.
    pub(crate) fn counted(&self, mut visit: impl FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut segments = self.segments()?;
        // Those of one entry stay in their order.
        segments.sort_by_key(|segment| segment.unit);
        self.entries(|entry| {
            let first = segments.partition_point(|segment| segment.unit < entry.unit);
            let own = segments[first..].iter().take_while(|segment| segment.unit == entry.unit);
            let mut words = *entry.words;
            let cells = Cell::from_mut(words.as_mut_slice()).as_slice_of_cells();
            for segment in own {
                if segment.is_write { count::<WRITE>(cells, segment) } else { count::<READ>(cells, segment) }
            }
            visit(&Entry { words: &words, ..*entry })
        })
    }

    /// All finished segments, in the order in which the calls ended.
    pub(crate) fn segments(&self) -> io::Result<Vec<Segment>> {
        let path = self.path.with_extension(layout::SEGMENTS);
        let used = self.get(header::SEGMENTS_USED);
        if used == 0 {
            return Ok(Vec::new());
        }
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let count = used.min(file.metadata()?.len() / segment::BYTES as u64);
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut segments = Vec::with_capacity(count as usize);
        let mut bytes = [0; segment::BYTES];
        for _ in 0..count {
            file.read_exact(&mut bytes)?;
            let end = word(&bytes, segment::END);
            if end != 0 {
                let first = word(&bytes, segment::ENTRY);
                segments.push(Segment {
                    unit: first as u32,
                    is_write: first & segment::WRITE != 0,
                    transfer: Transfer {
                        offset: word(&bytes, segment::OFFSET),
                        size: word(&bytes, segment::LENGTH),
                        misaligned: first & segment::MISALIGNED != 0,
                    },
                    time: Time { start: word(&bytes, segment::START), end },
                });
            }
        }
        Ok(segments)
    }
}
