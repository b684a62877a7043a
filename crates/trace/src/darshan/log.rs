//! A log as a whole: opened once, then streamed as often as wanted.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::autoperf::{self, ApmpiHeader, ApmpiRecord, ApxcHeader, ApxcRecord};
use super::dxt::{self, Operation, Segment, Trace};
use super::error::{Damage, Error};
use super::header::{self, Header, ModuleEntry};
use super::heatmap::{self, Heatmap};
use super::job::Job;
use super::lustre::{self, LustreRecord};
use super::module::Module;
use super::names::Names;
use super::records::{self, Record};
use super::region::Region;

/// Receives the records of a log, module after module. What it keeps is its own affair; the reader keeps nothing.
pub trait Visitor {
    /// Whether a module is wanted at all; the others are not even decompressed.
    fn wants(&mut self, _entry: &ModuleEntry) -> bool {
        true
    }
    fn record(&mut self, _record: &Record) {}
    /// A trace begins; it may have no segments at all.
    fn trace(&mut self, _trace: &Trace) {}
    /// Some segments of the trace that began last. Writes come before reads.
    fn segments(&mut self, _trace: &Trace, _operation: Operation, _segments: &[Segment]) {}
    fn lustre(&mut self, _record: &LustreRecord) {}
    fn heatmap(&mut self, _record: &Heatmap) {}
    fn apmpi_header(&mut self, _header: &ApmpiHeader) {}
    fn apmpi(&mut self, _record: &ApmpiRecord) {}
    fn apxc_header(&mut self, _header: &ApxcHeader) {}
    fn apxc(&mut self, _record: &ApxcRecord) {}
}

/// An opened log.
pub struct Log<R> {
    source: R,
    size: u64,
    header: Header,
    job: Job,
    names: Names,
    names_damage: Option<Damage>,
}

impl Log<File> {
    pub fn open(path: &Path) -> Result<Log<File>, Error> {
        Log::new(File::open(path)?)
    }
}

impl<R: Read + Seek + Send> Log<R> {
    /// Reads header, job and names.
    pub fn new(mut source: R) -> Result<Log<R>, Error> {
        let size = source.seek(SeekFrom::End(0))?;
        source.rewind()?;
        let mut head = Vec::new();
        (&mut source).take(header::LARGEST as u64).read_to_end(&mut head)?;
        let header = Header::parse(&head, size)?;
        let (version, order) = (header.version, header.byte_order);
        let job = {
            let (offset, length) = header.job;
            let mut region = region(&mut source, size, &header, offset, length)?;
            Job::read(&mut region, version, order)?
        };
        let mut log = Log { source, size, header, job, names: Names::default(), names_damage: None };
        let (offset, length) = log.header.names;
        if length > 0 {
            let compressed = length.min(log.size);
            let read = region(&mut log.source, log.size, &log.header, offset, length)
                .and_then(|mut region| log.names.read(&mut region, version, order, compressed));
            log.names_damage = read.err().map(|error| Damage { part: "names of files".to_owned(), error });
        }
        Ok(log)
    }

    /// Streams every module that the visitor wants. Gives what could not be read to its end: nothing, for a sound log.
    pub fn visit(&mut self, visitor: &mut impl Visitor) -> Vec<Damage> {
        let mut damage = Vec::new();
        for entry in self.header.modules.clone() {
            if !visitor.wants(&entry) {
                continue;
            }
            if let Err(error) = self.visit_module(&entry, visitor) {
                damage.push(Damage { part: format!("module {}", entry.module.name()), error });
            }
        }
        damage
    }

    fn visit_module(&mut self, entry: &ModuleEntry, visitor: &mut impl Visitor) -> Result<(), Error> {
        if matches!(entry.module, Module::Unknown(_)) {
            return Ok(());
        }
        let order = self.header.byte_order;
        let version = entry.version;
        let mut region = region(&mut self.source, self.size, &self.header, entry.offset, entry.length)?;
        if matches!(entry.module, Module::DxtPosix | Module::DxtMpiIo) {
            return region.ahead(|mut region| dxt::read(&mut region, entry.module, version, order, visitor));
        }
        let region = &mut region;
        match entry.module {
            Module::Lustre => lustre::read(region, version, order, |record| visitor.lustre(record)),
            Module::Heatmap => heatmap::read(region, version, order, |record| visitor.heatmap(record)),
            Module::Apmpi => {
                let visitor = std::cell::RefCell::new(visitor);
                let header = |header: &ApmpiHeader| visitor.borrow_mut().apmpi_header(header);
                autoperf::read_apmpi(region, version, order, header, |record| visitor.borrow_mut().apmpi(record))
            }
            Module::Apxc => {
                let visitor = std::cell::RefCell::new(visitor);
                let header = |header: &ApxcHeader| visitor.borrow_mut().apxc_header(header);
                autoperf::read_apxc(region, version, order, header, |record| visitor.borrow_mut().apxc(record))
            }
            module => records::read(region, module, version, order, |record| visitor.record(record)),
        }
    }
}

impl<R> Log<R> {
    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn job(&self) -> &Job {
        &self.job
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The names, out of the log: whoever visits it may look into them meanwhile.
    pub(crate) fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }

    pub(crate) fn take_names_damage(&mut self) -> Option<Damage> {
        self.names_damage.take()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Why some names are missing, if so.
    pub fn names_damage(&self) -> Option<&Damage> {
        self.names_damage.as_ref()
    }
}

fn region<'a, R: Read + Seek>(
    source: &'a mut R,
    size: u64,
    header: &Header,
    offset: u64,
    length: u64,
) -> Result<Region<&'a mut R>, Error> {
    if offset >= size {
        return Err(Error::Truncated("a region lies beyond the end of the file"));
    }
    source.seek(SeekFrom::Start(offset))?;
    Ok(Region::new(source, length, size - offset, header.compression))
}
