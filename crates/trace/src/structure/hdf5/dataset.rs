//! What a dataset says of itself: its extent, how it lies in the file, what its data pass through.

use super::source::{DAMAGED, Fields, Stop, text};

/// More dimensions than the library allows.
const DIMENSIONS: usize = 32;

/// The lengths of a dataset; `None` of one that is empty by its kind.
pub(super) fn extent(body: &[u8], length: usize) -> Result<Option<Vec<u64>>, Stop> {
    let mut fields = Fields(body);
    let version = fields.byte()?;
    let dimensions = usize::from(fields.byte()?);
    fields.take(1)?;
    let kind = fields.byte()?;
    match version {
        1 => drop(fields.take(4)?),
        2 if kind == 2 => return Ok(None),
        2 => {}
        _ => return Err(Stop::Not("its extent is of a kind that is not understood")),
    }
    if dimensions > DIMENSIONS {
        return Err(DAMAGED);
    }
    (0..dimensions).map(|_| fields.number(length)).collect::<Result<_, _>>().map(Some)
}

#[derive(Default)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    pub(super) chunk: Option<Vec<u64>>,
    pub(super) index: Option<&'static str>,
}

impl Layout {
    pub(super) fn read(body: &[u8], address: usize) -> Result<Layout, Stop> {
        let mut fields = Fields(body);
        let version = fields.byte()?;
        match version {
            1 | 2 => {
                let dimensions = fields.byte()?;
                let class = fields.byte()?;
                fields.take(5)?;
                fields.take(if class == 0 { 0 } else { address })?;
                match class {
                    2 => chunked(&mut fields, dimensions, 4, Some("B-tree")),
                    class => plain(class),
                }
            }
            3 => match fields.byte()? {
                2 => {
                    let dimensions = fields.byte()?;
                    fields.take(address)?;
                    chunked(&mut fields, dimensions, 4, Some("B-tree"))
                }
                class => plain(class),
            },
            4 | 5 => match fields.byte()? {
                2 => {
                    fields.take(1)?;
                    let (dimensions, width) = (fields.byte()?, fields.byte()?);
                    let mut layout = chunked(&mut fields, dimensions, usize::from(width), None)?;
                    layout.index = Some(match fields.byte()? {
                        1 => "single chunk",
                        2 => "implicit",
                        3 => "fixed array",
                        4 => "extensible array",
                        5 => "B-tree of the second version",
                        _ => "unknown",
                    });
                    Ok(layout)
                }
                class => plain(class),
            },
            _ => Err(Stop::Not("its layout is of a kind that is not understood")),
        }
    }
}

fn plain(class: u8) -> Result<Layout, Stop> {
    let name = match class {
        0 => "compact",
        1 => "contiguous",
        3 => "virtual",
        _ => return Err(Stop::Not("its layout is of a kind that is not understood")),
    };
    Ok(Layout { name, ..Layout::default() })
}

/// The last length is that of a value, in bytes.
fn chunked(fields: &mut Fields<'_>, dimensions: u8, width: usize, index: Option<&'static str>) -> Result<Layout, Stop> {
    let mut lengths: Vec<u64> = (0..dimensions).map(|_| fields.number(width)).collect::<Result<_, _>>()?;
    lengths.pop().ok_or(DAMAGED)?;
    Ok(Layout { name: "chunked", chunk: Some(lengths), index })
}

/// What data pass through when they are written, in order.
pub(super) fn filters(body: &[u8]) -> Result<Vec<String>, Stop> {
    let mut fields = Fields(body);
    let version = fields.byte()?;
    let count = fields.byte()?;
    match version {
        1 => drop(fields.take(6)?),
        2 => {}
        _ => return Err(Stop::Not("its filters are of a kind that is not understood")),
    }
    let mut filters = Vec::new();
    for _ in 0..count {
        let number = fields.number(2)?;
        let length = if version == 1 || number >= 256 { fields.small(2)? } else { 0 };
        fields.take(2)?;
        let values = fields.small(2)?;
        let name = fields.take(if version == 1 { length.next_multiple_of(8) } else { length })?;
        let mut settings = Fields(fields.take(4 * values)?);
        fields.take(if version == 1 && values % 2 == 1 { 4 } else { 0 })?;
        filters.push(match number {
            1 => settings.number(4).map_or_else(|_| "gzip".to_owned(), |level| format!("gzip {level}")),
            2 => "shuffle".to_owned(),
            3 => "fletcher32".to_owned(),
            4 => "szip".to_owned(),
            5 => "nbit".to_owned(),
            6 => "scaleoffset".to_owned(),
            32000 => "lzf".to_owned(),
            32001 => "blosc".to_owned(),
            32004 => "lz4".to_owned(),
            32008 => "bitshuffle".to_owned(),
            32013 => "zfp".to_owned(),
            32015 => "zstd".to_owned(),
            32026 => "blosc2".to_owned(),
            _ if !name.is_empty() => text(name),
            _ => format!("filter {number}"),
        });
    }
    Ok(filters)
}
