//! Whoever calls and is not a pilot of the run, or speaks nonsense, changes nothing.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use tulpar_launch::pilot::channel::{self, ChannelError, Key};
use tulpar_launch::pilot::message::{Hello, Message, PROTOCOL};

fn dial(scene: &Scene) -> TcpStream {
    TcpStream::connect(scene.pilots.connect()).unwrap()
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: "0.0.1".into(),
        name: "pilot-0".into(),
        node: 0,
        instance: 1,
        host: "elsewhere".into(),
        milli_cpus: 1000,
        memory: 0,
        gpus: Vec::new(),
        until: None,
        draining: false,
        holds: Vec::new(),
    }
}

/// What the driver answers, in words.
fn answer(scene: &Scene, message: &Message) -> Result<Vec<Message>, ChannelError> {
    let key = Key::read(&scene.pilots.key()).unwrap();
    let (mut receiver, mut sender) = channel::connect(dial(scene), &key)?;
    let mut bytes = Vec::new();
    message.lay(&mut bytes);
    sender.send(&bytes)?;
    loop {
        let messages = receiver.receive()?;
        if !messages.is_empty() {
            return Ok(messages);
        }
    }
}

/// Nothing of it may have hurt.
fn still_works(mut scene: Scene) {
    scene.wait_for_pilots(1);
    scene.pilots.submit(vec![spec(1, 0, "true")]);
    assert_eq!(scene.report(1).ending, Ending::Exit(0));
    scene.end();
}

#[test]
fn who_has_another_key_is_refused_and_only_the_owner_may_read_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(1, |_| {});
    let mode = std::fs::metadata(scene.pilots.key()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let other = Key::open_or_create(&scene.project.root().join("other")).unwrap();
    let refused = channel::connect(dial(&scene), &other).map(drop);
    assert!(matches!(refused, Err(ChannelError::WrongKey)), "{refused:?}");
    still_works(scene);
}

#[test]
fn noise_before_and_after_the_handshake_only_ends_the_connection() {
    let scene = Scene::new(1, |_| {});
    for noise in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 100_000], &[0xff; 70_000], &[0, 48]] {
        let mut stream = dial(&scene);
        let _ = stream.write_all(noise);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "it was answered");
    }
    let key = Key::read(&scene.pilots.key()).unwrap();
    let mut large = Vec::new();
    large.extend(u32::MAX.to_le_bytes());
    for bytes in [&b"\x01\x00\x00\x00\xff"[..], b"\x02\x00\x00\x00\x01{", b"\x01\x00\x00\x00\x04", &large] {
        let (mut receiver, mut sender) = channel::connect(dial(&scene), &key).unwrap();
        sender.send(bytes).unwrap();
        let closed = loop {
            match receiver.receive() {
                Ok(messages) => assert!(messages.is_empty()),
                Err(closed) => break closed,
            }
        };
        assert!(matches!(closed, ChannelError::Closed | ChannelError::Io(_)), "{closed:?}");
    }
    still_works(scene);
}

#[test]
fn a_segment_that_was_changed_or_said_twice_is_refused() {
    let scene = Scene::new(1, |_| {});
    let key = Key::read(&scene.pilots.key()).unwrap();
    let (mut receiver, sender) = channel::connect(dial(&scene), &key).unwrap();
    // Not sealed with the key of this connection.
    let mut stream = sender.stream().unwrap();
    stream.write_all(&[0, 20]).and_then(|()| stream.write_all(&[7; 20])).unwrap();
    let closed = loop {
        match receiver.receive() {
            Ok(messages) => assert!(messages.is_empty()),
            Err(closed) => break closed,
        }
    };
    assert!(matches!(closed, ChannelError::Closed | ChannelError::Io(_)), "{closed:?}");
    still_works(scene);
}

#[test]
fn another_version_of_the_protocol_is_told_so() {
    let scene = Scene::new(1, |_| {});
    let other = Hello { protocol: PROTOCOL + 1, ..hello() };
    let [Message::Refused(why)] = &answer(&scene, &Message::Hello(Box::new(other))).unwrap()[..] else {
        panic!("it was taken")
    };
    assert!(
        why.starts_with("it speaks version 3 of the protocol (Tulpar 0.0.1), the driver version 2 (Tulpar"),
        "{why}"
    );
    let unknown = Hello { name: "nobody".into(), ..hello() };
    let refused = answer(&scene, &Message::Hello(Box::new(unknown))).unwrap();
    assert_eq!(refused, [Message::Refused("this run has no node `nobody`".into())]);
    still_works(scene);
}
