//! x
use crate::error::TransferError;
use crate::local::Arrived;
use crate::location::Url;
use crate::pool::Work;
use crate::session::Entry;
use crate::target::Folders;
use crate::types::Options;

pub(crate) struct Client;
pub(crate) struct Partial;
impl Client {
    pub(crate) fn new(_: &Options) -> Self {
        Client
    }
    pub(crate) fn fetch(
        &self,
        _: &Options,
        _: &mut Folders,
        batch: &mut [Work<'_>],
    ) -> Vec<Result<Arrived, TransferError>> {
        batch.iter().map(|work| Err(TransferError::unsupported(&work.transfer.from, "not yet"))).collect()
    }
    pub(crate) fn send(&self, _: &Options, batch: &mut [Work<'_>]) -> Vec<Result<Arrived, TransferError>> {
        batch.iter().map(|work| Err(TransferError::unsupported(&work.transfer.from, "not yet"))).collect()
    }
    pub(crate) fn list(&self, _: &Options, url: &Url, _: bool) -> Result<Vec<Entry>, TransferError> {
        Err(TransferError::unsupported(url, "not yet"))
    }
    pub(crate) fn stat(&self, _: &Options, url: &Url) -> Result<Entry, TransferError> {
        Err(TransferError::unsupported(url, "not yet"))
    }
    pub(crate) fn make_directory(&self, _: &Options, url: &Url) -> Result<(), TransferError> {
        Err(TransferError::unsupported(url, "not yet"))
    }
    pub(crate) fn remove(&self, _: &Options, url: &Url) -> Result<(), TransferError> {
        Err(TransferError::unsupported(url, "not yet"))
    }
}
