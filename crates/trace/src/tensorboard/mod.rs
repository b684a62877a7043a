//! TensorBoard event files: framed records with checksums, protobuf events inside. A live file ends in the middle of a
//! record: that is told apart from damage, with the place to go on from.
//!
//! Does not know what tags mean, nor draws curves.

mod checksum;
mod event;
mod record;
mod write;

pub use event::{Event, SummaryKind, SummaryValue, What};
pub use record::{Next, Records};
pub use write::{EventFile, Message};

/// Why an event file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the file: {0}")]
    Io(#[from] std::io::Error),
    #[error("the record at byte {offset} is damaged: its checksum does not match")]
    Damaged { offset: u64 },
    #[error("the record at byte {offset} is not an event: {why}")]
    NotAnEvent { offset: u64, why: crate::protobuf::Malformed },
}

/// How an event file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Where the next record will begin: go on from here when the file has grown.
    pub offset: u64,
    /// The last record is not complete (yet).
    pub torn: bool,
}

/// Hands every event to `visit`.
pub fn read(source: impl std::io::Read, mut visit: impl FnMut(Event)) -> Result<End, Error> {
    let mut records = Records::new(source, 0);
    loop {
        let offset = records.offset();
        match records.read()? {
            Next::Record(bytes) => visit(Event::parse(bytes).map_err(|why| Error::NotAnEvent { offset, why })?),
            Next::End => return Ok(End { offset, torn: false }),
            Next::Torn => return Ok(End { offset, torn: true }),
        }
    }
}
