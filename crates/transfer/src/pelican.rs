//! x
use crate::error::TransferError;
use crate::local::Arrived;
use crate::pool::Work;
use crate::target::Folders;
use crate::types::Options;

pub(crate) fn perform(_: &Options, _: &mut Folders, batch: &mut [Work<'_>]) -> Vec<Result<Arrived, TransferError>> {
    batch.iter().map(|work| Err(TransferError::unsupported(&work.transfer.from, "not yet"))).collect()
}
