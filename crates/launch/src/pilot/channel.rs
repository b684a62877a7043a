//! A stream of messages between two that share a key: authenticated, encrypted, in order.
//!
//! Noise `NNpsk0` over TCP. Each segment is sealed on its own and at most 64 KiB; messages are laid one after the other
//! into segments, so that many small ones cost one. It knows nothing of what messages mean. Whatever a peer
//! sends, it is refused with an error, and no more memory is taken than one message may need.

use super::message::{BadMessage, Message};
use snow::{HandshakeState, StatelessTransportState};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Nothing of another protocol that happens to use the same key is taken for ours.
const PROLOGUE: &[u8] = b"tulpar pilot";
const TAG: usize = 16;
const SEGMENT: usize = 65_535 - TAG;
/// The report of a task with a hundred thousand outputs is smaller.
pub const MOST: usize = 64 << 20;
/// A handshake is two short messages; whoever takes longer is none of ours.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKE_BYTES: usize = 256;
/// How long a read waits before the caller may look at the clock.
const GLANCE: Duration = Duration::from_millis(500);
/// A peer that takes nothing for so long is gone.
const STUCK: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("the other side does not have the key of this run")]
    WrongKey,
    #[error("the other side closed the connection")]
    Closed,
    #[error("what was received was changed on its way, or is not meant for us")]
    Forged,
    #[error("a message of {0} bytes is larger than any may be")]
    TooLarge(usize),
    #[error(transparent)]
    Bad(#[from] BadMessage),
}

/// What both sides know and nobody else: 32 random bytes.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Takes the key of a file, made now, readable by its owner alone, when there is none yet.
    pub fn open_or_create(path: &Path) -> io::Result<Key> {
        match Key::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let temporary = path.with_extension("new");
        let _ = fs::remove_file(&temporary);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        Ok(Key(bytes))
    }

    pub fn read(path: &Path) -> io::Result<Key> {
        let bytes = fs::read(path)?;
        let bytes = <[u8; 32]>::try_from(bytes.as_slice())
            .map_err(|_| io::Error::new(ErrorKind::InvalidData, "a key is 32 bytes"))?;
        Ok(Key(bytes))
    }
}

/// The side that dials.
pub fn connect(stream: TcpStream, key: &Key) -> Result<(Receiver, Sender), ChannelError> {
    let mut state = builder(key).build_initiator().expect("the pattern is known and the key has its length");
    begin(&stream)?;
    say(&stream, &mut state)?;
    hear(&stream, &mut state)?;
    established(stream, state)
}

/// The side that is called.
pub fn accept(stream: TcpStream, key: &Key) -> Result<(Receiver, Sender), ChannelError> {
    let mut state = builder(key).build_responder().expect("the pattern is known and the key has its length");
    begin(&stream)?;
    hear(&stream, &mut state)?;
    say(&stream, &mut state)?;
    established(stream, state)
}

fn builder(key: &Key) -> snow::Builder<'_> {
    snow::Builder::new(PATTERN.parse().expect("a pattern that snow knows"))
        .prologue(PROLOGUE)
        .and_then(|builder| builder.psk(0, &key.0))
        .expect("each is said once")
}

fn begin(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(HANDSHAKE))?;
    stream.set_write_timeout(Some(HANDSHAKE))
}

fn say(mut stream: &TcpStream, state: &mut HandshakeState) -> Result<(), ChannelError> {
    let mut frame = [0; 2 + HANDSHAKE_BYTES];
    let length = state.write_message(&[], &mut frame[2..]).map_err(|_| ChannelError::WrongKey)?;
    frame[..2].copy_from_slice(&(length as u16).to_be_bytes());
    Ok(stream.write_all(&frame[..2 + length])?)
}

fn hear(mut stream: &TcpStream, state: &mut HandshakeState) -> Result<(), ChannelError> {
    let (mut length, mut message) = ([0; 2], [0; HANDSHAKE_BYTES]);
    // Who has another key closes without a word.
    let closed = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => ChannelError::WrongKey,
        _ => ChannelError::Io(error),
    };
    stream.read_exact(&mut length).map_err(closed)?;
    let length = usize::from(u16::from_be_bytes(length));
    let message = message.get_mut(..length).ok_or(ChannelError::WrongKey)?;
    stream.read_exact(message).map_err(closed)?;
    state.read_message(message, &mut [0; HANDSHAKE_BYTES]).map_err(|_| ChannelError::WrongKey)?;
    Ok(())
}

fn established(stream: TcpStream, state: HandshakeState) -> Result<(Receiver, Sender), ChannelError> {
    stream.set_read_timeout(Some(GLANCE))?;
    stream.set_write_timeout(Some(STUCK))?;
    let noise = Arc::new(state.into_stateless_transport_mode().map_err(|_| ChannelError::WrongKey)?);
    let sender = Sender {
        stream: stream.try_clone()?,
        noise: Arc::clone(&noise),
        nonce: 0,
        buffer: Vec::with_capacity(SEGMENT),
    };
    let receiver = Receiver {
        stream,
        noise,
        nonce: 0,
        sealed: Vec::new(),
        filled: 0,
        open: Vec::new(),
        segment: vec![0; SEGMENT],
    };
    Ok((receiver, sender))
}

pub struct Sender {
    stream: TcpStream,
    noise: Arc<StatelessTransportState>,
    nonce: u64,
    buffer: Vec<u8>,
}

impl Sender {
    /// Sends messages that were laid one after the other by [`Message::lay`].
    pub fn send(&mut self, messages: &[u8]) -> Result<(), ChannelError> {
        for part in messages.chunks(4 * SEGMENT) {
            self.buffer.clear();
            for segment in part.chunks(SEGMENT) {
                let start = self.buffer.len();
                self.buffer.extend(((segment.len() + TAG) as u16).to_be_bytes());
                self.buffer.resize(start + 2 + segment.len() + TAG, 0);
                self.noise
                    .write_message(self.nonce, segment, &mut self.buffer[start + 2..])
                    .map_err(|_| ChannelError::Forged)?;
                self.nonce += 1;
            }
            self.stream.write_all(&self.buffer)?;
        }
        Ok(())
    }

    /// Makes both directions end, also for whoever waits for something to arrive.
    pub fn hang_up(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// A handle that can end the connection from elsewhere.
    pub fn stream(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }
}

pub struct Receiver {
    stream: TcpStream,
    noise: Arc<StatelessTransportState>,
    nonce: u64,
    /// Received and not yet opened; longer than what is `filled`.
    sealed: Vec<u8>,
    filled: usize,
    /// Opened and not yet a whole message.
    open: Vec<u8>,
    segment: Vec<u8>,
}

impl Receiver {
    /// Waits a moment for messages; none came when it gives none.
    pub fn receive(&mut self) -> Result<Vec<Message>, ChannelError> {
        if self.sealed.len() < self.filled + 2 * SEGMENT {
            self.sealed.resize(self.filled + 4 * SEGMENT, 0);
        }
        match self.stream.read(&mut self.sealed[self.filled..]) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(count) => self.filled += count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        }
        self.unseal()?;
        self.whole_messages()
    }

    fn unseal(&mut self) -> Result<(), ChannelError> {
        let mut at = 0;
        while let [high, low, rest @ ..] = &self.sealed[at..self.filled] {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let Some(sealed) = rest.get(..length) else { break };
            let opened =
                self.noise.read_message(self.nonce, sealed, &mut self.segment).map_err(|_| ChannelError::Forged)?;
            self.nonce += 1;
            self.open.extend_from_slice(&self.segment[..opened]);
            at += 2 + length;
        }
        self.sealed.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }

    fn whole_messages(&mut self) -> Result<Vec<Message>, ChannelError> {
        let (mut messages, mut at) = (Vec::new(), 0);
        while let Some((head, rest)) = self.open[at..].split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*head) as usize;
            if length > MOST {
                return Err(ChannelError::TooLarge(length));
            }
            let Some(body) = rest.get(..length) else { break };
            messages.push(Message::read(body)?);
            at += 4 + length;
        }
        self.open.drain(..at);
        Ok(messages)
    }
}
