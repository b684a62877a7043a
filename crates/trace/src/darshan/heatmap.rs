//! Bytes read and written per time bin, layer and rank (always on since 3.4): the timeline of a job without DXT.

use std::io::Read;

use super::bytes::ByteOrder;
use super::error::Error;
use super::region::Region;

/// Darshan keeps a few hundred bins.
const MANY: i64 = 1 << 20;

/// The bins of one layer (the record's name says which, e.g. `heatmap:POSIX`) on one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    pub id: u64,
    pub rank: i64,
    /// Seconds.
    pub bin_width: f64,
    pub written: Vec<i64>,
    pub read: Vec<i64>,
}

pub(crate) fn read<R: Read>(
    region: &mut Region<R>,
    version: u32,
    order: ByteOrder,
    mut record: impl FnMut(&Heatmap),
) -> Result<(), Error> {
    if version != 1 {
        return Err(Error::UnknownVersion(version));
    }
    let mut first: Option<(f64, usize)> = None;
    while let Some(head) = region.next(48)? {
        let (id, rank, bin_width) = (order.u64(head, 0), order.i64(head, 8), order.f64(head, 16));
        let bins = order.i64(head, 24);
        if !(0..MANY).contains(&bins) {
            return Err(Error::Nonsense("a heat map has an impossible number of bins"));
        }
        let mut take = || -> Result<Vec<i64>, Error> {
            let mut values = Vec::new();
            for _ in 0..bins {
                values.push(order.i64(region.promised(8)?, 0));
            }
            Ok(values)
        };
        let (mut written, mut read) = (take()?, take()?);
        // Darshan 3.4.0 to 3.4.3 disagreed with itself by one bin between ranks: the first record decides.
        match first {
            None => first = Some((bin_width, written.len())),
            Some((width, count)) if width == bin_width && written.len().abs_diff(count) == 1 => {
                written.resize(count, 0);
                read.resize(count, 0);
            }
            Some(_) => {}
        }
        record(&Heatmap { id, rank, bin_width, written, read });
    }
    Ok(())
}
