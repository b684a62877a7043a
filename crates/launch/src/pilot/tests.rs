//! The wire: what is said arrives, and nothing that arrives can hurt.

use super::channel::{self, ChannelError, Key, Receiver, Sender};
use super::message::*;
use super::outbox::Outbox;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{Ending, InputFile, OutputFile, Report, Source};

fn attempt(job: u32) -> AttemptId {
    AttemptId { job: JobId(job), n: 2 }
}

fn everything() -> Vec<Message> {
    let digest = Digest::of(b"x");
    let mut report: Report = super::ending::unstarted(Ending::Incomplete(vec!["a".into()]));
    report.outputs = vec![OutputFile { output: 0, path: "x".into(), size: 1, digest, executable: true }];
    let saved = Saved { path: "1/state".into(), digest, size: 1, modified: 17 };
    let file = InputFile { path: "in".into(), source: Source::Object, size: 1, digest };
    let limits = serde_json::to_string(&tulpar_core::workflow::Limits::default()).unwrap();
    let spec = format!(
        r#"{{"attempt":{{"job":7,"n":2}},"name":"a","command":{{"arguments":["true"]}},"limits":{limits},"milli_cpus":1000,"node":"p"}}"#
    );
    let spec = serde_json::from_str(&spec).unwrap();
    vec![
        Message::Hello(Box::new(Hello {
            protocol: PROTOCOL,
            version: "1".into(),
            name: "pilot-1".into(),
            node: 1,
            instance: u64::MAX,
            host: "h".into(),
            milli_cpus: 500,
            memory: 1,
            gpus: vec!["0".into()],
            until: Some(60),
            draining: true,
            holds: vec![(attempt(1), Stage::Running), (attempt(2), Stage::Ended)],
        })),
        Message::Welcome(Welcome { driver: 3, lease_ms: 4, beat_ms: 5, forget: vec![attempt(1)], tell: vec![] }),
        Message::Refused("no".into()),
        Message::Beat,
        Message::List { id: 3, files: vec![file] },
        Message::DropList(3),
        Message::Work(Box::new(Work {
            spec,
            lists: vec![(0, 3)],
            secrets: [("TOKEN".to_owned(), "hush".to_owned())].into(),
            checkpoint: vec![saved.clone()],
        })),
        Message::Cancel { ending: Ending::Preempted, attempts: vec![attempt(1)] },
        Message::Started(vec![attempt(1), attempt(2)]),
        Message::Ended(Box::new(Ended {
            attempt: attempt(7),
            report,
            record: b"{}\n".to_vec(),
            stdout: Stream::Here(b"said\n".to_vec()),
            stderr: Stream::Object { digest, size: 1 },
            checkpoint: vec![saved],
            io: Some((digest, 3)),
            contents: vec![(digest, b"x".to_vec())],
        })),
        Message::Kept(vec![attempt(1)]),
        Message::Want(vec![digest, digest]),
        Message::Chunk(Chunk { digest, size: 10, offset: 4, executable: true, bytes: b"abc".to_vec() }),
        Message::Missing { digest, problem: "gone".into() },
        Message::Draining,
        Message::Leave,
        Message::Bye,
        Message::Return(vec![attempt(1)]),
        Message::Returned(vec![attempt(1)]),
    ]
}

#[test]
fn every_message_is_read_as_it_was_said() {
    for message in everything() {
        let mut bytes = Vec::new();
        message.lay(&mut bytes);
        assert_eq!(bytes[..4], ((bytes.len() - 4) as u32).to_le_bytes());
        assert_eq!(Message::read(&bytes[4..]), Ok(message));
    }
}

#[test]
fn whatever_is_cut_or_changed_is_an_error_or_a_message_but_never_a_panic() {
    for message in everything() {
        let mut bytes = Vec::new();
        message.lay(&mut bytes);
        let body = &bytes[4..];
        for end in 0..body.len() {
            let _ = Message::read(&body[..end]);
        }
        for place in 0..body.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = body.to_vec();
                changed[place] = value;
                let _ = Message::read(&changed);
            }
        }
    }
    assert_eq!(Message::read(&[]), Err(BadMessage::Length));
    assert_eq!(Message::read(&[200]), Err(BadMessage::Kind(200)));
    assert_eq!(Message::read(&[4, 0]), Err(BadMessage::Length));
    // A content that says to be longer than the message.
    let mut ended = vec![10];
    ended.extend(u32::MAX.to_le_bytes());
    assert_eq!(Message::read(&ended), Err(BadMessage::Length));
}

/// Both ends of a connection: the receiver of one, the sender of the other.
fn connected() -> (Receiver, Sender) {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::open_or_create(&folder.path().join("key")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dialled = std::thread::spawn({
        let key = key.clone();
        move || channel::connect(TcpStream::connect(address).unwrap(), &key).unwrap()
    });
    let (receiver, _) = channel::accept(listener.accept().unwrap().0, &key).unwrap();
    let (_, sender) = dialled.join().unwrap();
    (receiver, sender)
}

#[test]
fn messages_of_any_size_pass_in_order() {
    let (mut receiver, mut sender) = connected();
    let large = Message::Refused("long ".repeat(200_000));
    let sent = vec![Message::Beat, large.clone(), Message::Draining, large, Message::Bye];
    let told = sent.clone();
    let speaking = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        told.iter().for_each(|message| message.lay(&mut bytes));
        sender.send(&bytes).unwrap();
    });
    let mut heard = Vec::new();
    while heard.len() < sent.len() {
        heard.extend(receiver.receive().unwrap());
    }
    speaking.join().unwrap();
    assert_eq!(heard, sent);
    let closed = loop {
        match receiver.receive() {
            Ok(none) => assert!(none.is_empty()),
            Err(closed) => break closed,
        }
    };
    assert!(matches!(closed, ChannelError::Closed), "{closed:?}");
}

#[test]
fn a_message_does_not_wait_for_a_large_file_and_beats_fill_the_silence() {
    let folder = tempfile::tempdir().unwrap();
    let (mut receiver, sender) = connected();
    let content = vec![7; 40 << 20];
    let path = folder.path().join("large");
    std::fs::write(&path, &content).unwrap();
    let outbox = Arc::new(Outbox::default());
    outbox.push_file(Digest::of(&content), path);
    let writer = Arc::clone(&outbox);
    let writing = std::thread::spawn(move || writer.run(sender, Duration::from_millis(30)));
    let (mut received, mut left_when_heard, mut beats) = (0, None, 0);
    while beats < 2 {
        for message in receiver.receive().unwrap() {
            match message {
                Message::Chunk(chunk) => {
                    if received == 0 {
                        outbox.push_lazily(|to| Message::Draining.lay(to));
                    }
                    assert_eq!((chunk.offset, chunk.size), (received, content.len() as u64));
                    received += chunk.bytes.len() as u64;
                }
                Message::Draining => left_when_heard = Some(content.len() as u64 - received),
                Message::Beat => beats += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(received, content.len() as u64);
    assert!(left_when_heard.is_some_and(|left| left > 20 << 20), "{left_when_heard:?} were left when it was heard");
    outbox.close();
    writing.join().unwrap();
}
