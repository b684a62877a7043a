//! Reading a long journal leniently with several threads: parsing is most of the work, and lines are
//! independent. Events arrive in the order of the file, whoever parsed them.

use super::read::refuse_older;
use super::{Entry, JournalError, Skipped, failed};
use crossbeam_channel::{bounded, unbounded};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tulpar_core::ids::JobId;
use tulpar_core::journal_line::Line;

const PORTION: usize = 1 << 20;
const MOST_THREADS: usize = 8;

type Parsed = (Vec<Entry>, Skipped);

/// How far a journal was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Portions {
    pub skipped: Skipped,
    /// Where the last whole line ends: [`super::Follow`] goes on from there.
    pub offset: u64,
}

/// As [`super::read_with`] with [`super::Strictness::Lenient`].
pub fn read_in_portions(path: &Path, each: impl FnMut(Entry)) -> Result<Portions, JournalError> {
    read_about(path, |_| true, each)
}

/// The same, for events about some jobs and about the whole run; others are not even parsed.
pub fn read_about(
    path: &Path,
    wanted: impl Fn(JobId) -> bool + Sync,
    mut each: impl FnMut(Entry),
) -> Result<Portions, JournalError> {
    let wanted = &wanted;
    refuse_older(path)?;
    let file = File::open(path).map_err(failed("open", path))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_THREADS);
    // What is read but not parsed, and what is parsed but not taken, is bounded: a journal may exceed the memory.
    let (portions, to_parse) = bounded::<(usize, Vec<u8>)>(threads);
    let (done, parsed) = unbounded::<(usize, Parsed)>();
    let (room, taken) = bounded::<()>(threads * 4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_parse, done) = (to_parse.clone(), done.clone());
            scope.spawn(move || {
                for (index, bytes) in to_parse {
                    if done.send((index, parse(&bytes, wanted))).is_err() {
                        break;
                    }
                }
            });
        }
        drop((to_parse, done));
        let reader = scope
            .spawn(move || split(file, |index, bytes| room.send(()).is_ok() && portions.send((index, bytes)).is_ok()));
        let mut skipped = Skipped::default();
        let mut early: BTreeMap<usize, Parsed> = BTreeMap::new();
        let mut next = 0;
        for (index, portion) in parsed {
            early.insert(index, portion);
            while let Some((entries, left_out)) = early.remove(&next) {
                next += 1;
                skipped.bad_lines += left_out.bad_lines;
                skipped.unknown += left_out.unknown;
                entries.into_iter().for_each(&mut each);
                let _ = taken.recv();
            }
        }
        match reader.join() {
            Ok(read) => read.map(|offset| Portions { skipped, offset }).map_err(failed("read", path)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Gives the file in portions of whole lines, and says where the last of them ends; what follows without an end is
/// somebody's in the middle of writing.
fn split(mut file: File, mut give: impl FnMut(usize, Vec<u8>) -> bool) -> std::io::Result<u64> {
    let mut offset = 0;
    let mut rest: Vec<u8> = Vec::new();
    for index in 0.. {
        let mut bytes = std::mem::take(&mut rest);
        let before = bytes.len();
        // Until a line ends in it: one may be longer than a portion.
        let end = loop {
            let more = (&mut file).take(PORTION as u64).read_to_end(&mut bytes)?;
            match bytes[before..].iter().rposition(|byte| *byte == b'\n') {
                Some(end) => break Some(before + end + 1),
                None if more == 0 => break None,
                None => {}
            }
        };
        let Some(end) = end else { break };
        rest = bytes.split_off(end);
        offset += end as u64;
        if !give(index, bytes) {
            break;
        }
    }
    Ok(offset)
}

/// The job that a line is about, from its fixed beginning: `…,"data":{"job":7,…` or `…,"data":{"attempt":{"job":7,…`.
fn job_of(line: &[u8]) -> Option<JobId> {
    const DATA: &[u8] = b"\"data\":{";
    let head = &line[..line.len().min(128)];
    let data = &line[head.windows(DATA.len()).position(|window| window == DATA)? + DATA.len()..];
    let data = data.strip_prefix(b"\"attempt\":{").unwrap_or(data).strip_prefix(b"\"job\":")?;
    let end = data.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&data[..end]).ok()?.parse().ok().map(JobId)
}

fn parse(bytes: &[u8], wanted: &impl Fn(JobId) -> bool) -> Parsed {
    let mut entries = Vec::new();
    let mut skipped = Skipped::default();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if job_of(line).is_some_and(|job| !wanted(job)) {
            continue;
        }
        match Line::parse(line).and_then(|line| Ok((line, line.event()?))) {
            Ok((line, event)) => entries.push(Entry { seq: line.seq, at: line.at, event }),
            Err(cause) if cause.is_newer() => skipped.unknown += 1,
            Err(_) => skipped.bad_lines += 1,
        }
    }
    (entries, skipped)
}

#[cfg(test)]
mod tests {
    use super::super::{Strictness, read};
    use super::*;
    use std::io::Write;
    use tulpar_core::event::Event;
    use tulpar_core::journal_line::encode;
    use tulpar_core::units::Timestamp;

    #[test]
    fn portions_give_what_one_thread_reads_with_a_bad_line_a_very_long_one_and_a_torn_end() {
        let mut bytes = Vec::new();
        for seq in 1..=40_000 {
            match seq {
                20_000 => bytes.extend_from_slice(b"no line of a journal\n"),
                30_000 => {
                    let event = Event::RunResumed { version: "long".repeat(PORTION), reopened: Vec::new() };
                    encode(seq, Timestamp(seq), &event, &mut bytes);
                }
                _ => encode(seq, Timestamp(seq), &Event::Due { job: JobId(seq as u32) }, &mut bytes),
            }
        }
        bytes.truncate(bytes.len() - 3);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let mut entries = Vec::new();
        let read_so_far = read_in_portions(file.path(), |entry| entries.push(entry)).unwrap();
        let alone = read(file.path(), Strictness::Lenient).unwrap();
        assert_eq!(entries.len(), 39_998);
        assert!(entries == alone.entries);
        assert_eq!(read_so_far.skipped, alone.skipped);
        let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap() as u64 + 1;
        assert_eq!(read_so_far.offset, end, "what is torn is read when it is whole");
        let mut some = Vec::new();
        read_about(file.path(), |job| job == JobId(7), |entry| some.push(entry.seq)).unwrap();
        assert_eq!(some, [7, 30_000]);
    }
}
