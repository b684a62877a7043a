//! x
use crate::error::TransferError;
use crate::local::Arrived;
use crate::location::Url;
use crate::pool::Work;
use crate::session::Entry;
use crate::target::Folders;
use crate::types::Options;

use crate::http::Client;
pub(crate) fn perform(
    _: &Client,
    _: &Options,
    _: &mut Folders,
    batch: &mut [Work<'_>],
) -> Vec<Result<Arrived, TransferError>> {
    batch.iter().map(|work| Err(TransferError::unsupported(&work.transfer.from, "not yet"))).collect()
}
pub(crate) fn list(_: &Client, _: &Options, url: &Url, _: bool) -> Result<Vec<Entry>, TransferError> {
    Err(TransferError::unsupported(url, "not yet"))
}
pub(crate) fn stat(_: &Client, _: &Options, url: &Url) -> Result<Entry, TransferError> {
    Err(TransferError::unsupported(url, "not yet"))
}
pub(crate) fn remove(_: &Client, _: &Options, url: &Url) -> Result<(), TransferError> {
    Err(TransferError::unsupported(url, "not yet"))
}
