//! The header of a log: version, byte order, compression and where the regions lie. Old logs, which know fewer modules,
//! are shifted to the numbers of today. Does not read any region.

use super::bytes::ByteOrder;
use super::error::Error;
use super::module::Module;

pub(crate) const MAGIC: i64 = 6_567_223;
const OLD_SIZE: usize = 360;
const NEW_SIZE: usize = 1328;
pub(crate) const LARGEST: usize = NEW_SIZE;

/// Format version of a log, e.g. 3.41.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.major, self.minor)
    }
}

/// How the regions are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Zlib,
    Bzip2,
    None,
}

/// Where the (compressed) records of a module lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleEntry {
    pub module: Module,
    pub version: u32,
    pub offset: u64,
    pub length: u64,
    /// The module ran out of memory while tracing: its records are incomplete.
    pub partial: bool,
}

/// What the uncompressed head of the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub version: Version,
    pub byte_order: ByteOrder,
    pub compression: Compression,
    /// Present modules, by increasing number.
    pub modules: Vec<ModuleEntry>,
    pub(crate) job: (u64, u64),
    pub(crate) names: (u64, u64),
}

impl Header {
    /// From the first bytes of a file (`LARGEST` of them, or all when it is shorter).
    pub(crate) fn parse(bytes: &[u8], file_size: u64) -> Result<Header, Error> {
        if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(b"BZh") {
            return Err(Error::Old);
        }
        if bytes.len() < 16 {
            return Err(Error::NotALog("it is too short"));
        }
        let version = parse_version(&bytes[..8])?;
        let order = [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.i64(bytes, 8) == MAGIC);
        let byte_order = order.ok_or(Error::NotALog("its magic number is missing"))?;
        let is_new = version >= Version { major: 3, minor: 41 };
        let (size, slots, maps_at) = if is_new { (NEW_SIZE, 64, 32) } else { (OLD_SIZE, 16, 24) };
        if bytes.len() < size {
            return Err(Error::Truncated("its header is not complete"));
        }
        let compression = match bytes[16] {
            0 => Compression::Zlib,
            1 => Compression::Bzip2,
            2 => Compression::None,
            other => return Err(Error::UnknownCompression(other)),
        };
        let partial = if is_new { byte_order.u64(bytes, 24) } else { u64::from(byte_order.u32(bytes, 20)) };
        let map = |at: usize| (byte_order.u64(bytes, at), byte_order.u64(bytes, at + 8));
        let names = map(maps_at);
        let versions_at = maps_at + 16 * (slots + 1);
        let mut modules = Vec::new();
        let mut first = None;
        for slot in 0..slots {
            let (offset, length) = map(maps_at + 16 * (slot + 1));
            if offset != 0 && first.is_none() {
                first = Some(offset);
            }
            if length == 0 {
                continue;
            }
            let module = Module::from_number(today(slot, version));
            let module_version = byte_order.u32(bytes, versions_at + 4 * slot);
            let partial = partial >> slot & 1 == 1;
            modules.push(ModuleEntry { module, version: module_version, offset, length, partial });
        }
        let job_at = size as u64;
        let job_end = if names.0 != 0 { names.0 } else { first.unwrap_or(file_size) };
        if job_end <= job_at {
            return Err(Error::Nonsense("the header leaves no room for the description of the job"));
        }
        Ok(Header { version, byte_order, compression, modules, job: (job_at, job_end - job_at), names })
    }

    pub fn module(&self, module: Module) -> Option<&ModuleEntry> {
        self.modules.iter().find(|entry| entry.module == module)
    }
}

/// The number of a module today: H5D came with 3.20 at 4, PNETCDF_VAR with 3.41 at 6, and moved what follows.
fn today(slot: usize, version: Version) -> usize {
    let mut number = slot;
    if version < (Version { major: 3, minor: 20 }) && number >= 4 {
        number += 1;
    }
    if version < (Version { major: 3, minor: 41 }) && number >= 6 {
        number += 1;
    }
    number
}

fn parse_version(bytes: &[u8]) -> Result<Version, Error> {
    let text = super::bytes::text(bytes);
    let no_version = Error::NotALog("it does not begin with a version");
    let Some((major, minor)) = text.split_once('.') else { return Err(no_version) };
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    let (Ok(major), Ok(minor)) = (major.parse::<u32>(), digits.parse::<u32>()) else { return Err(no_version) };
    match major {
        0..=2 => Err(Error::Old),
        3 => Ok(Version { major, minor }),
        _ => Err(Error::Newer(text)),
    }
}
