//! Writes logs of version 3.41, which Darshan's own tools read: zlib, little endian, records of today's versions, traces
//! without threads (DXT_POSIX version 1, the newest that released tools know).
//!
//! One pass: regions are compressed as they come, and the header is put in place at the end. Does not know where the
//! records come from.

use std::io::{self, Seek, SeekFrom, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::dxt::Segment;
use super::header::MAGIC;
use super::job::{Job, METADATA};
use super::module::Module;
use super::records::Record;

const HEADER: usize = 1328;
const SLOTS: usize = 64;
const HOST: usize = 64;
/// What Darshan's own reader takes of the description of a job.
const LARGEST_JOB: usize = 4096;

/// A log in the making: names first, then the modules by increasing number.
pub struct Writer<W: Write + Seek> {
    file: W,
    names: (u64, u64),
    modules: [(u64, u64); SLOTS],
    versions: [u32; SLOTS],
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a log with the description of its job. What does not fit into it is cut: mounts first, then the command.
    pub fn new(mut file: W, job: &Job) -> io::Result<Writer<W>> {
        file.write_all(&[0; HEADER])?;
        let mut encoder = ZlibEncoder::new(&mut file, Compression::fast());
        encoder.write_all(&describe(job))?;
        encoder.finish()?;
        Ok(Writer { file, names: (0, 0), modules: [(0, 0); SLOTS], versions: [0; SLOTS] })
    }

    /// The names behind the numbers of the records.
    pub fn names(&mut self, names: impl IntoIterator<Item = (u64, Vec<u8>)>) -> io::Result<()> {
        self.names = self.region(|region| {
            for (id, name) in names {
                region.put(&id.to_le_bytes())?;
                // A name ends at its NUL.
                region.put(name.split(|byte| *byte == 0).next().unwrap_or_default())?;
                region.put(&[0])?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The records of a module. A module without records is left out.
    pub fn module(
        &mut self,
        module: Module,
        version: u32,
        write: impl FnOnce(&mut Region<'_, W>) -> io::Result<()>,
    ) -> io::Result<()> {
        let slot = module.number();
        self.modules[slot] = self.region(write)?;
        self.versions[slot] = version;
        Ok(())
    }

    /// Gives where the region lies; nothing where nothing was written.
    fn region(&mut self, write: impl FnOnce(&mut Region<'_, W>) -> io::Result<()>) -> io::Result<(u64, u64)> {
        let start = self.file.stream_position()?;
        let mut region = Region { file: Some(&mut self.file), encoder: None };
        write(&mut region)?;
        match region.encoder {
            None => Ok((0, 0)),
            Some(encoder) => Ok((start, encoder.finish()?.stream_position()? - start)),
        }
    }

    /// Puts the header in place. `partial` are the modules that could not keep everything.
    pub fn finish(mut self, partial: &[Module]) -> io::Result<W> {
        let mut header = Vec::with_capacity(HEADER);
        header.extend(b"3.41\0\0\0\0");
        header.extend(MAGIC.to_le_bytes());
        // Compression 0 is zlib; the rest of the word is padding.
        header.extend([0; 8]);
        let flags = partial.iter().fold(0u64, |flags, module| flags | 1 << module.number());
        header.extend(flags.to_le_bytes());
        for (offset, length) in std::iter::once(&self.names).chain(&self.modules) {
            header.extend(offset.to_le_bytes());
            header.extend(length.to_le_bytes());
        }
        for version in self.versions {
            header.extend(version.to_le_bytes());
        }
        debug_assert_eq!(header.len(), HEADER);
        let end = self.file.stream_position()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.seek(SeekFrom::Start(end))?;
        self.file.flush()?;
        Ok(self.file)
    }
}

/// The records of one module on their way into the log.
pub struct Region<'a, W: Write> {
    /// Until the first record.
    file: Option<&'a mut W>,
    encoder: Option<ZlibEncoder<&'a mut W>>,
}

impl<W: Write> Region<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            self.encoder = Some(ZlibEncoder::new(file, Compression::fast()));
        }
        self.encoder.as_mut().map_or(Ok(()), |encoder| encoder.write_all(bytes))
    }

    /// A record of fixed size, in today's version of its module.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(16 + 8 * (record.integers.len() + record.floats.len()));
        bytes.extend(record.id.to_le_bytes());
        bytes.extend(record.rank.to_le_bytes());
        if let Some(file) = record.file {
            bytes.extend(file.to_le_bytes());
        }
        bytes.extend(record.integers.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(record.floats.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(record.servers.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(&record.trailer);
        self.put(&bytes)
    }

    /// The segments of one file on one rank: all writes and then all reads follow, as many as said.
    pub fn trace(&mut self, id: u64, rank: i64, host: &str, writes: u64, reads: u64) -> io::Result<()> {
        let mut name = [0; HOST];
        let length = host.len().min(HOST - 1);
        name[..length].copy_from_slice(&host.as_bytes()[..length]);
        self.put(&id.to_le_bytes())?;
        self.put(&rank.to_le_bytes())?;
        self.put(&0i64.to_le_bytes())?;
        self.put(&name)?;
        self.put(&writes.to_le_bytes())?;
        self.put(&reads.to_le_bytes())
    }

    /// In the order in which [`Region::trace`] says: writes, then reads.
    pub fn segments(&mut self, segments: impl IntoIterator<Item = Segment>) -> io::Result<()> {
        for segment in segments {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&segment.offset.to_le_bytes());
            bytes[8..16].copy_from_slice(&segment.length.to_le_bytes());
            bytes[16..24].copy_from_slice(&segment.start.to_le_bytes());
            bytes[24..].copy_from_slice(&segment.end.to_le_bytes());
            self.put(&bytes)?;
        }
        Ok(())
    }
}

fn describe(job: &Job) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LARGEST_JOB);
    for number in
        [job.uid, job.start_seconds, job.start_nanoseconds, job.end_seconds, job.end_nanoseconds, job.processes, job.id]
    {
        bytes.extend(number.to_le_bytes());
    }
    let mut metadata = Vec::new();
    for (key, value) in &job.metadata {
        let line = format!("{key}={}\n", value.replace('\n', " "));
        if metadata.len() + line.len() < METADATA {
            metadata.extend(line.as_bytes());
        }
    }
    metadata.resize(METADATA, 0);
    bytes.extend(metadata);
    // Room for the command, a line of a mount, and the NUL.
    let command = job.command.replace(['\n', '\0'], " ");
    let mut room = LARGEST_JOB - bytes.len() - 1;
    let mut length = command.len().min(room - HOST);
    while !command.is_char_boundary(length) {
        length -= 1;
    }
    bytes.extend(&command.as_bytes()[..length]);
    room -= length;
    for mount in &job.mounts {
        let line = format!("\n{}\t{}", mount.kind, mount.point);
        if line.len() > room {
            break;
        }
        bytes.extend(line.as_bytes());
        room -= line.len();
    }
    bytes.push(0);
    bytes
}
