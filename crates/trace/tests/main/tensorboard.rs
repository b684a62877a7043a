//! Event files against what TensorBoard's own reader gave, torn and damaged files.

use serde_json::json;
use tulpar_trace::tensorboard::{End, Error, Event, Next, Records, SummaryKind, What, read};

use crate::harness::{files, fixtures, json, peak};

#[test]
fn every_event_file_gives_the_events_that_tensorboard_gives() {
    let Some(folder) = fixtures("tensorboard") else { return };
    let mut seen = 0;
    for expected in files(&folder, ".expected.json") {
        if !expected.to_string_lossy().contains("events.out.tfevents") {
            continue;
        }
        seen += 1;
        let path = expected.to_string_lossy().replace(".expected.json", "");
        let expected = json(&expected);
        let mut events = Vec::new();
        let end = read(std::fs::File::open(&path).unwrap(), |event| events.push(event)).unwrap();
        assert_eq!(end, End { offset: std::fs::metadata(&path).unwrap().len(), torn: false });
        assert_eq!(json!(events.len()), expected["n_events"], "{path}");
        for (event, theirs) in events.iter().zip(expected["events"].as_array().unwrap()) {
            compare(event, theirs);
        }
    }
    assert!(seen >= 3);
}

fn compare(event: &Event, theirs: &serde_json::Value) {
    assert_eq!(json!(event.wall_time), theirs["wall_time"]);
    assert_eq!(json!(event.step), theirs["step"]);
    match &event.what {
        What::FileVersion(version) => assert_eq!(json!(version), theirs["file_version"]),
        What::Summary(values) => {
            for (value, theirs) in values.iter().zip(theirs["values"].as_array().unwrap()) {
                assert_eq!(json!(value.tag), theirs["tag"]);
                assert_eq!(json!(value.plugin), theirs["plugin"]);
                match theirs["kind"].as_str().unwrap() {
                    "simple_value" => {
                        assert_eq!(value.kind, SummaryKind::Simple);
                        assert_eq!(json!(value.scalar), theirs["simple"]);
                    }
                    "tensor" => {
                        assert_eq!(value.kind, SummaryKind::Tensor);
                        let hex = theirs["tensor_content_hex"].as_str().unwrap();
                        let bits = u32::from_str_radix(hex, 16).unwrap().swap_bytes();
                        assert_eq!(value.scalar, Some(f64::from(f32::from_bits(bits))));
                    }
                    other => panic!("{other}"),
                }
            }
        }
        other => assert!(theirs["values"].as_array().unwrap().is_empty(), "{other:?}"),
    }
}

/// Bit by bit, unlike the reader's.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    let crc = !crc;
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &crc(&length).to_le_bytes(), data, &crc(data).to_le_bytes()].concat()
}

/// wall_time 2.5, step 3, summary { value { tag: "loss", simple_value: 0.5 } }
fn event() -> Vec<u8> {
    let value = [&[10, 4][..], b"loss", &[21], &0.5f32.to_le_bytes()].concat();
    let summary = [&[10, value.len() as u8][..], &value].concat();
    [&[9][..], &2.5f64.to_le_bytes(), &[16, 3, 42, summary.len() as u8], &summary].concat()
}

#[test]
fn a_file_that_is_cut_anywhere_gives_its_whole_events_and_where_to_go_on() {
    let one = framed(&event());
    let file = [one.clone(), one.clone(), one.clone()].concat();
    for length in 0..=file.len() {
        let mut events = Vec::new();
        let end = read(&file[..length], |event| events.push(event)).unwrap();
        assert_eq!(events.len(), length / one.len());
        let offset = (length / one.len() * one.len()) as u64;
        assert_eq!(end, End { offset, torn: length % one.len() != 0 });
        // Later the file has grown: go on from there.
        let mut records = Records::new(&file[offset as usize..], offset);
        let mut more = 0;
        while let Next::Record(_) = records.read().unwrap() {
            more += 1;
        }
        assert_eq!(events.len() + more, 3);
        assert_eq!(records.offset(), file.len() as u64);
        for event in events {
            assert_eq!((event.wall_time, event.step), (2.5, 3));
            assert_eq!(event.scalars().collect::<Vec<_>>(), [("loss", 0.5)]);
        }
    }
}

#[test]
fn a_flipped_bit_is_damage_at_the_right_place() {
    let one = framed(&event());
    let file = [one.clone(), one.clone()].concat();
    for at in one.len()..file.len() {
        for bit in 0..8 {
            let mut bytes = file.clone();
            bytes[at] ^= 1 << bit;
            let mut events = 0;
            let result = read(&*bytes, |_| events += 1);
            assert!(matches!(result, Err(Error::Damaged { offset }) if offset == one.len() as u64), "{at}: {result:?}");
            assert_eq!(events, 1);
        }
    }
}

#[test]
fn a_length_that_lies_takes_no_memory() {
    for length in [1u64 << 40, u64::MAX] {
        let length = length.to_le_bytes();
        let file = [&length[..], &crc(&length).to_le_bytes(), b"some data"].concat();
        let (result, peak) = peak(|| read(&*file, |_| {}));
        assert!(matches!(result, Ok(End { torn: true, .. }) | Err(Error::Damaged { .. })));
        assert!(peak < 1 << 16, "{peak} bytes");
    }
}

#[test]
fn any_message_is_survived() {
    let good = event();
    for at in 0..good.len() {
        for value in 0..=255 {
            let mut bytes = good.clone();
            bytes[at] = value;
            let _ = Event::parse(&bytes);
        }
        let _ = Event::parse(&good[..at]);
    }
}

#[test]
fn records_of_data_files_are_framed_alike() {
    let Some(folder) = fixtures("tensorboard/tfrecord") else { return };
    let path = folder.join("part-0.tfrecord");
    let size = std::fs::metadata(&path).unwrap().len();
    let mut records = Records::new(std::fs::File::open(path).unwrap(), 0);
    let mut count = 0;
    while let Next::Record(_) = records.read().unwrap() {
        count += 1;
    }
    assert_eq!(records.offset(), size);
    assert!(count > 0);
}
