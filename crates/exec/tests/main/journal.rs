//! The journal on a real disk, and on disks that lose what was not synced.

use super::literal_events::batches;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use tulpar_core::event::Event;
use tulpar_core::ids::JobId;
use tulpar_core::journal_line::KINDS;
use tulpar_core::units::Timestamp;
use tulpar_exec::journal::{Follow, Journal, JournalError, Strictness, read, read_in_portions};

/// A journal of the literal batches, the offsets at which batches end, and all events in order.
fn written() -> (TempDir, PathBuf, Vec<u64>, Vec<Event>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    let mut ends = vec![0];
    let mut events = Vec::new();
    for (at, batch) in batches() {
        journal.append(at, &batch).unwrap();
        ends.push(journal.length());
        events.extend(batch);
    }
    (folder, path, ends, events)
}

fn events_of(path: &Path) -> Vec<Event> {
    read(path, Strictness::Strict).unwrap().entries.into_iter().map(|entry| entry.event).collect()
}

#[test]
fn what_was_appended_is_read_back_in_order() {
    let (_folder, path, _, events) = written();
    let reading = read(&path, Strictness::Strict).unwrap();
    let seqs: Vec<u64> = reading.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(reading.entries[0].at, Timestamp(1_731_700_000_000_000));
    assert_eq!(reading.entries.into_iter().map(|entry| entry.event).collect::<Vec<_>>(), events);
    assert_eq!(reading.cut, None);
}

#[test]
fn the_frozen_journal_of_version_2_means_what_it_meant() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/journals/v2.jsonl");
    let literal: Vec<Event> = batches().into_iter().flat_map(|(_, batch)| batch).collect();
    assert_eq!(events_of(&path), literal);
    let kinds: BTreeSet<&str> = literal.iter().map(Event::kind).collect();
    assert_eq!(kinds, KINDS.into_iter().collect(), "the frozen journal has every kind");
}

#[test]
fn a_resumed_journal_goes_on_with_the_next_number() {
    let (_folder, path, _, mut events) = written();
    let (mut journal, recovered) = Journal::open_for_resume(&path).unwrap();
    assert_eq!(recovered.events.len(), events.len());
    assert_eq!(recovered.cut, None);
    let more = Event::RunResumed { version: "0.2.0".into(), reopened: Vec::new() };
    journal.append(Timestamp(9), std::slice::from_ref(&more)).unwrap();
    events.push(more);
    assert_eq!(events_of(&path), events);
}

#[test]
fn two_processes_cannot_write_one_journal() {
    let (_folder, path, ..) = written();
    let (first, _) = Journal::open_for_resume(&path).unwrap();
    let message = Journal::open_for_resume(&path).unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "{} is in use by another Tulpar (process {}): wait until it ends, or stop it with `tulpar cancel`",
            path.display(),
            std::process::id()
        )
    );
    drop(first);
    assert!(Journal::open_for_resume(&path).is_ok());
}

#[test]
fn a_reader_in_the_same_process_does_not_release_the_lock() {
    let (_folder, path, ..) = written();
    let (_journal, _) = Journal::open_for_resume(&path).unwrap();
    read(&path, Strictness::Lenient).unwrap();
    assert!(matches!(Journal::open_for_resume(&path), Err(JournalError::Locked { .. })));
}

#[test]
fn a_run_cannot_be_started_over_its_own_journal() {
    let (_folder, path, ..) = written();
    assert!(matches!(Journal::create(&path), Err(JournalError::Exists { .. })));
}

#[test]
fn every_truncation_recovers_exactly_the_whole_events_before_it() {
    let (_folder, path, _, events) = written();
    let bytes = fs::read(&path).unwrap();
    let folder = TempDir::new().unwrap();
    for length in 0..=bytes.len() {
        let torn = folder.path().join(format!("{length}.jsonl"));
        fs::write(&torn, &bytes[..length]).unwrap();
        let whole = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        let good = bytes[..length].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let expected = (good < length).then_some((good as u64, (length - good) as u64, whole as u64));
        let reading = read(&torn, Strictness::Strict).unwrap();
        let found: Vec<Event> = reading.entries.into_iter().map(|entry| entry.event).collect();
        assert_eq!(found, events[..whole], "cut at {length}");
        assert_eq!(reading.cut.map(|cut| (cut.offset, cut.bytes, cut.last_seq)), expected);
        if length % 61 == 0 {
            let (mut journal, recovered) = Journal::open_for_resume(&torn).unwrap();
            assert_eq!(recovered.cut.map(|cut| cut.offset), expected.map(|(offset, ..)| offset));
            journal.append(Timestamp(1), &[Event::Due { job: JobId(1) }]).unwrap();
            assert_eq!(events_of(&torn).len(), whole + 1);
        }
        fs::remove_file(&torn).unwrap();
    }
}

#[test]
fn a_cut_tail_is_said_in_words() {
    let (_folder, path, ..) = written();
    let length = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 10).unwrap();
    let cut = Journal::open_for_resume(&path).unwrap().1.cut.unwrap();
    assert_eq!(
        cut.to_string(),
        format!(
            "the last {} bytes of the journal (line {}, from byte {}) were not completely written before the crash \
             and were cut; nothing had been done because of them, and event {} is the last",
            cut.bytes, cut.line, cut.offset, cut.last_seq
        )
    );
    assert_eq!((cut.line, cut.last_seq), (55, 54));
}

#[test]
fn a_damaged_line_in_the_middle_refuses_and_says_where_and_what_to_do() {
    let (_folder, path, ..) = written();
    let mut bytes = fs::read(&path).unwrap();
    let second_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[second_line + 20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let message = Journal::open_for_resume(&path).unwrap_err().to_string();
    let place = path.display().to_string();
    assert!(message.starts_with(&format!("{place}, line 2 (byte {second_line}): the checksum says ")), "{message}");
    assert!(message.contains(&format!("`truncate -s {second_line} {place}`")), "{message}");
    // A report still shows the rest.
    let reading = read(&path, Strictness::Lenient).unwrap();
    assert_eq!((reading.entries.len(), reading.skipped.bad_lines), (54, 1));
}

#[test]
fn a_missing_or_repeated_line_in_the_middle_refuses() {
    let (_folder, path, ..) = written();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (changed, cause) in [
        ([&lines[..3], &lines[4..]].concat(), "event 5 stands where event 4 should be"),
        ([&lines[..4], &lines[3..]].concat(), "event 4 stands where event 5 should be"),
    ] {
        fs::write(&path, changed.join("\n") + "\n").unwrap();
        let message = read(&path, Strictness::Strict).unwrap_err().to_string();
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn a_line_of_a_newer_tulpar_refuses_strictly_and_is_counted_leniently() {
    let (_folder, path, _, events) = written();
    let mut text = fs::read_to_string(&path).unwrap();
    let body = format!("{{\"seq\":{},\"at\":5,\"v\":2,\"kind\":\"teleported\",\"data\":{{}}", events.len() + 1);
    text += &format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()));
    fs::write(&path, text).unwrap();
    let message = read(&path, Strictness::Strict).unwrap_err().to_string();
    assert!(message.contains("line 56: written by a newer Tulpar: the event kind `teleported`"), "{message}");
    assert_eq!(read(&path, Strictness::Lenient).unwrap().skipped.unknown, 1);
}

#[test]
fn a_journal_of_an_earlier_version_is_refused_by_every_reader() {
    let (_folder, path, ..) = written();
    let text = fs::read_to_string(&path).unwrap();
    let older = |line: &str| {
        let body = line.rsplit_once(",\"crc\"").unwrap().0.replacen("\"v\":2", "\"v\":1", 1);
        format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    };
    fs::write(&path, text.lines().map(older).collect::<String>()).unwrap();
    let message = format!(
        "{} was written by an earlier Tulpar: its events have version 1, and this Tulpar reads version 2 only. Start a \
         new run with `tulpar run`, or go on with this run with the Tulpar that started it",
        path.display()
    );
    let errors = [
        Journal::open_for_resume(&path).unwrap_err(),
        read(&path, Strictness::Strict).unwrap_err(),
        read(&path, Strictness::Lenient).unwrap_err(),
        read_in_portions(&path, |_| {}).unwrap_err(),
        Follow::new(&path, 0).poll().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_follower_sees_each_event_once_and_never_half_a_line() {
    let (_folder, path, ends, events) = written();
    let bytes = fs::read(&path).unwrap();
    let growing = path.with_file_name("growing.jsonl");
    fs::write(&growing, b"").unwrap();
    let mut follow = Follow::new(&growing, 0);
    let mut seen = Vec::new();
    for length in (0..bytes.len()).step_by(97).chain([bytes.len()]) {
        fs::write(&growing, &bytes[..length]).unwrap();
        seen.extend(follow.poll().unwrap().into_iter().map(|entry| entry.event));
        assert_eq!(follow.offset() == length as u64, length == 0 || bytes[length - 1] == b'\n');
    }
    assert_eq!(seen, events);
    let mut second = Follow::new(&growing, ends[3]);
    assert_eq!(second.poll().unwrap().len(), 41);
    assert_eq!(second.poll().unwrap().len(), 0);
    fs::write(&growing, &bytes[..ends[1] as usize]).unwrap();
    assert_eq!(second.poll().unwrap().len(), 7);
    assert!(second.take_restarted());
}

/// What a power loss makes of a file: everything that was synced stays; of what was written after it the
/// length may or may not have reached the disk, and any block may read as zeros.
fn after_power_loss(bytes: &[u8], synced: usize, length: usize, lost: &BTreeSet<usize>, block: usize) -> Vec<u8> {
    let mut left = bytes[..length.max(synced)].to_vec();
    for (index, byte) in left.iter_mut().enumerate().skip(synced) {
        if lost.contains(&(index / block)) {
            *byte = 0;
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_flipped_byte_anywhere_is_found(position in any::<prop::sample::Index>(), flip in 1u8..=255) {
        static WRITTEN: OnceLock<(Vec<u8>, Vec<Event>)> = OnceLock::new();
        let (bytes, events) = WRITTEN.get_or_init(|| {
            let (_folder, path, _, events) = written();
            (fs::read(&path).unwrap(), events)
        });
        let mut bytes = bytes.clone();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("journal.jsonl");
        let position = position.index(bytes.len());
        bytes[position] ^= flip;
        fs::write(&path, &bytes).unwrap();
        match read(&path, Strictness::Strict) {
            Ok(reading) => {
                // Taken for a torn tail: said so, and what is kept is as it was.
                prop_assert!(reading.cut.is_some());
                let found: Vec<Event> = reading.entries.into_iter().map(|entry| entry.event).collect();
                prop_assert_eq!(&found[..], &events[..found.len()]);
            }
            Err(error) => {
                let refused = matches!(error, JournalError::Damaged { .. } | JournalError::Newer { .. });
                prop_assert!(refused, "{}", error);
            }
        }
    }

    #[test]
    fn a_power_loss_never_takes_what_was_synced_and_never_stops_the_resume(
        jobs in prop::collection::vec(1usize..60, 1..8),
        kept in any::<prop::sample::Index>(),
        lost in prop::collection::btree_set(0usize..64, 0..6),
        block in prop::sample::select(vec![512usize, 4096]),
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let mut synced = (0, 0);
        let mut events = Vec::new();
        for (batch, count) in jobs.iter().enumerate() {
            synced = (journal.length() as usize, events.len());
            let more: Vec<Event> = (0..*count).map(|job| Event::Due { job: JobId((batch * 100 + job) as u32) }).collect();
            journal.append(Timestamp(1000 + batch as u64), &more).unwrap();
            events.extend(more);
        }
        drop(journal);
        let bytes = fs::read(&path).unwrap();
        let length = synced.0 + kept.index(bytes.len() - synced.0 + 1);
        fs::write(&path, after_power_loss(&bytes, synced.0, length, &lost, block)).unwrap();

        let (mut journal, recovered) = Journal::open_for_resume(&path).unwrap();
        let found: Vec<Event> = recovered.events.into_iter().map(|entry| entry.event).collect();
        prop_assert!(found.len() >= synced.1);
        prop_assert_eq!(&found[..], &events[..found.len()]);
        journal.append(Timestamp(2000), &[Event::Due { job: JobId(7) }]).unwrap();
        prop_assert_eq!(events_of(&path).len(), found.len() + 1);
    }
}
