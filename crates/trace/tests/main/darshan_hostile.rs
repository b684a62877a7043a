//! Damaged and malicious logs: an error or a damage, never a panic, never more memory than the file justifies.

use std::fmt::Write;
use std::io::Cursor;

use proptest::prelude::*;
use tulpar_trace::darshan::{Damage, Error, Heatmap, Log, LustreRecord, Operation, Record, Segment, Trace, Visitor};

use crate::generator::Recipe;
use crate::harness::peak;

/// All that a log gives, as text.
#[derive(Default)]
struct Everything(String);

impl Visitor for Everything {
    fn record(&mut self, record: &Record) {
        write!(self.0, "{record:?}").unwrap();
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        write!(self.0, "{trace:?}{operation:?}{segments:?}").unwrap();
    }

    fn lustre(&mut self, record: &LustreRecord) {
        write!(self.0, "{record:?}").unwrap();
    }

    fn heatmap(&mut self, record: &Heatmap) {
        write!(self.0, "{record:?}").unwrap();
    }
}

/// The content of a sound log, or what is wrong with a damaged one.
fn read(bytes: &[u8]) -> Result<String, Vec<Damage>> {
    let whole = |error| vec![Damage { part: "log".to_owned(), error }];
    let mut log = Log::new(Cursor::new(bytes)).map_err(whole)?;
    let mut everything = Everything::default();
    let mut damage = log.visit(&mut everything);
    if let Some(names) = log.names_damage() {
        damage.push(Damage { part: names.part.clone(), error: Error::Nonsense("names") });
    }
    let mut names: Vec<_> = log.names().iter().collect();
    names.sort_unstable();
    let text = format!("{:?}{names:?}{}", log.job(), everything.0);
    if damage.is_empty() { Ok(text) } else { Err(damage) }
}

/// A log with every kind of module structure.
fn rich(version: &'static str, compression: u8) -> Recipe {
    let mut recipe = Recipe { compression, ..Recipe::new(version) };
    let reads = [(0, 10, 1.0, 2.0, 5), (10, 10, 2.0, 3.0, 5)];
    let traces = [recipe.trace((7, 0), false, &reads[..1], &reads), recipe.trace((8, 1), false, &[], &reads)];
    let posix = recipe.words(&[1; 2 + 69 + 17]);
    let mut lustre = recipe.words(&[7, -1, 1, 2, 1 << 20, 2, 0, 0, 0, -1, 0]);
    lustre.extend([0; 16]);
    lustre.extend(recipe.words(&[3, 4]));
    let mut heatmap = recipe.words(&[9, 0]);
    heatmap.extend(recipe.floats(&[0.1]));
    heatmap.extend(recipe.words(&[2, 0, 0, 1, 2, 3, 4]));
    let mut mdhim = recipe.words(&[7, 0, 1, 1, 1, 1, 2]);
    mdhim.extend(recipe.floats(&[0.0; 4]));
    mdhim.extend(recipe.words(&[1, 1]));
    recipe.modules = vec![(1, 4, posix), (8, 2, lustre), (10, 1, traces.concat()), (12, 1, mdhim), (15, 1, heatmap)];
    recipe
}

#[test]
fn a_log_that_is_cut_anywhere_says_so() {
    for compression in [0, 1, 2] {
        let whole = rich("3.41", compression).build();
        assert!(read(&whole).is_ok());
        for length in 0..whole.len() {
            assert!(
                read(&whole[..length]).is_err(),
                "compression {compression}: {length} of {} bytes look whole",
                whole.len()
            );
        }
    }
}

#[test]
fn a_flipped_bit_in_compressed_data_is_noticed_or_changes_nothing() {
    for compression in [0, 1] {
        let whole = rich("3.41", compression).build();
        let sound = read(&whole).unwrap();
        for at in 1328..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let (result, peak) = peak(|| read(&bytes));
            if let Ok(text) = result {
                assert_eq!(text, sound, "compression {compression}, byte {at}");
            }
            assert!(peak < 24 << 20, "{peak} bytes");
        }
    }
}

#[test]
fn a_flipped_bit_without_compression_never_panics_nor_eats_memory() {
    for version in ["3.00", "3.21", "3.41"] {
        let whole = rich(version, 2).build();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let (_, peak) = peak(|| read(&bytes));
            assert!(peak < 8 << 20, "version {version}, byte {at}: {peak} bytes");
        }
    }
}

#[test]
fn counts_that_lie_are_refused_before_memory_is_taken() {
    let recipe = Recipe::new("3.41");
    let huge = i64::MAX;
    let mut trace = recipe.trace((7, 0), false, &[], &[]);
    trace[96..104].copy_from_slice(&huge.to_le_bytes());
    let lies = [
        (10, 1, trace),
        (8, 2, recipe.words(&[7, 0, huge, 0])),
        (8, 2, recipe.words(&[7, 0, 0, huge])),
        (8, 1, recipe.words(&[7, 0, 1, 1, 0, 1, huge])),
        (15, 1, recipe.words(&[7, 0, 0, huge, 0, 0])),
        (12, 1, recipe.words(&[7, 0, 1, 1, 1, 1, huge, 0, 0, 0, 0])),
    ];
    for (slot, version, bytes) in lies {
        let mut recipe = recipe.clone();
        recipe.modules = vec![(slot, version, bytes)];
        let (damage, peak) = peak(|| read(&recipe.build()).unwrap_err());
        assert_eq!(damage.len(), 1, "module {slot}");
        assert!(peak < 2 << 20, "module {slot}: {peak} bytes");
    }
}

#[test]
fn names_that_inflate_beyond_reason_are_cut_off() {
    // Names that differ by their numbers only: 64 MB from a small file.
    let recipe = Recipe::new("3.41");
    let mut names = Vec::new();
    for id in 0..4_000u64 {
        names.extend((id << 20).to_le_bytes());
        names.extend([b'a'; 16_000]);
        names.push(0);
    }
    let names = recipe.compress(&names);
    let mut file = recipe.build();
    let offset = file.len() as u64;
    file[32..40].copy_from_slice(&offset.to_le_bytes());
    file[40..48].copy_from_slice(&(names.len() as u64).to_le_bytes());
    let compressed = names.len();
    file.extend(names);
    let (log, peak) = peak(|| Log::new(Cursor::new(&file)).unwrap());
    assert!(log.names_damage().is_some());
    assert!(peak < 256 * compressed + (4 << 20), "{peak} bytes for {compressed}");
}

#[test]
fn what_is_no_log_is_told_apart() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err().remove(0).error;
    assert!(matches!(error(b""), Error::NotALog(_)));
    assert!(matches!(error(b"\x1f\x8b whatever is compressed"), Error::Old));
    assert!(matches!(error(b"2.06\0\0\0\0 and the rest of it"), Error::Old));
    assert!(matches!(error(b"4.00\0\0\0\0 and the rest of it"), Error::Newer(_)));
    assert!(matches!(error(b"3.41\0\0\0\0 no magic number here"), Error::NotALog(_)));
    let mut unknown = Recipe::new("3.41").build();
    unknown[16] = 9;
    assert!(matches!(error(&unknown), Error::UnknownCompression(9)));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        compression in 0u8..3,
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = rich("3.41", compression).build();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let (_, peak) = peak(|| read(&bytes));
        prop_assert!(peak < 24 << 20, "{} bytes", peak);
    }
}
