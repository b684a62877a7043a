//! How files lie on the servers of a Lustre file system.

use std::io::Read;

use super::bytes::{ByteOrder, text};
use super::error::Error;
use super::region::Region;

/// No file system has as many targets, no file as many components.
const MANY: i64 = 1 << 16;

/// One component of a file's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub stripe_size: i64,
    pub stripe_count: i64,
    /// The following are -1 (start: 0) in logs that know only plain layouts.
    pub pattern: i64,
    pub flags: i64,
    pub extent_start: i64,
    pub extent_end: i64,
    pub mirror: i64,
    pub pool: String,
    /// Object storage targets of the stripes.
    pub targets: Vec<i64>,
}

/// The layout of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LustreRecord {
    pub id: u64,
    pub rank: i64,
    pub layouts: Vec<Layout>,
}

pub(crate) fn read<R: Read>(
    region: &mut Region<R>,
    version: u32,
    order: ByteOrder,
    mut record: impl FnMut(&LustreRecord),
) -> Result<(), Error> {
    match version {
        1 => {
            while let Some(head) = region.next(56)? {
                let (id, rank) = (order.u64(head, 0), order.i64(head, 8));
                let (stripe_size, stripe_count) = (order.i64(head, 40), order.i64(head, 48));
                let targets = targets(region, stripe_count, order)?;
                let (pattern, flags, extent_start, extent_end, mirror) = (-1, -1, 0, -1, -1);
                let pool = String::new();
                let layout = Layout {
                    stripe_size,
                    stripe_count,
                    pattern,
                    flags,
                    extent_start,
                    extent_end,
                    mirror,
                    pool,
                    targets,
                };
                record(&LustreRecord { id, rank, layouts: vec![layout] });
            }
        }
        2 => {
            while let Some(head) = region.next(32)? {
                let (id, rank) = (order.u64(head, 0), order.i64(head, 8));
                let (components, stripes) = (order.i64(head, 16), order.i64(head, 24));
                if !(0..MANY).contains(&components) {
                    return Err(Error::Nonsense("a file has an impossible number of Lustre components"));
                }
                let mut layouts = Vec::new();
                for _ in 0..components {
                    let bytes = region.promised(72)?;
                    let number = |index: usize| order.i64(bytes, 8 * index);
                    layouts.push(Layout {
                        stripe_size: number(0),
                        stripe_count: number(1),
                        pattern: number(2),
                        flags: number(3),
                        extent_start: number(4),
                        extent_end: number(5),
                        mirror: number(6),
                        pool: text(&bytes[56..72]),
                        targets: Vec::new(),
                    });
                }
                let all = targets(region, stripes, order)?;
                // A component that was never instantiated says so by its stripe size, and so are those after it.
                let used = layouts.iter().position(|layout| layout.stripe_size == -1).unwrap_or(layouts.len());
                layouts.truncate(used);
                let mut rest = all.as_slice();
                for layout in &mut layouts {
                    let count = usize::try_from(layout.stripe_count).unwrap_or(0).min(rest.len());
                    let (own, others) = rest.split_at(count);
                    layout.targets = own.to_vec();
                    rest = others;
                }
                record(&LustreRecord { id, rank, layouts });
            }
        }
        _ => return Err(Error::UnknownVersion(version)),
    }
    Ok(())
}

fn targets<R: Read>(region: &mut Region<R>, count: i64, order: ByteOrder) -> Result<Vec<i64>, Error> {
    if !(0..MANY).contains(&count) {
        return Err(Error::Nonsense("a file has an impossible number of Lustre stripes"));
    }
    let mut targets = Vec::new();
    for _ in 0..count {
        targets.push(order.i64(region.promised(8)?, 0));
    }
    Ok(targets)
}
