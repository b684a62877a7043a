//! What a driver and a pilot say to each other.
//!
//! A message is its length, its kind and its body: numbers and digests as bytes, jobs and reports as JSON (the contract of
//! [`tulpar_core::job`] leaves fields out, which formats without names cannot), contents as they are. Reading
//! one never trusts a number in it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{Ending, InputFile, JobSpec, Report};
use tulpar_core::live::LiveLine;

/// Of the protocol: both sides must speak the same.
pub const PROTOCOL: u32 = 2;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadMessage {
    #[error("a message of an unknown kind ({0}) was received")]
    Kind(u8),
    #[error("a message was received that ends too early or too late")]
    Length,
    #[error("a message was received that cannot be read: {0}")]
    Content(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The first of a pilot.
    Hello(Box<Hello>),
    /// The first of a driver.
    Welcome(Welcome),
    /// Instead of a welcome: why not.
    Refused(String),
    /// Nothing to say, but still there.
    Beat,
    /// Files that many tasks take in, sent once.
    List {
        id: u32,
        files: Vec<InputFile>,
    },
    /// No further task will refer to the list.
    DropList(u32),
    Work(Box<Work>),
    Cancel {
        ending: Ending,
        attempts: Vec<AttemptId>,
    },
    Started(Vec<AttemptId>),
    Ended(Box<Ended>),
    /// The ends of these are known; nobody will ask for them again, unless the driver dies.
    Kept(Vec<AttemptId>),
    Want(Vec<Digest>),
    Chunk(Chunk),
    /// What was wanted cannot be sent.
    Missing {
        digest: Digest,
        problem: String,
    },
    /// No more work, please; what is there will be ended properly.
    Draining,
    /// The run is over: end everything and go.
    Leave,
    /// The last of a pilot.
    Bye,
    /// Those that have not started go back: another pilot has nothing to do.
    Return(Vec<AttemptId>),
    /// These went back; they have not been touched.
    Returned(Vec<AttemptId>),
    /// How attempts do that run. Nobody waits for it.
    Seen(Vec<LiveLine>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    /// Of the node that the pilot is.
    pub name: String,
    pub node: u32,
    /// Another process has another.
    pub instance: u64,
    pub host: String,
    pub milli_cpus: u32,
    #[serde(default)]
    pub memory: u64,
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Seconds until it must be gone.
    #[serde(default)]
    pub until: Option<u64>,
    #[serde(default)]
    pub draining: bool,
    /// What it has of earlier connections.
    #[serde(default)]
    pub holds: Vec<(AttemptId, Stage)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Some of its inputs are not there yet.
    Fetching,
    Waiting,
    Running,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Another driver has another.
    pub driver: u64,
    /// How long the pilot goes on without the driver.
    pub lease_ms: u64,
    pub beat_ms: u64,
    /// Attempts that nobody waits for any more.
    pub forget: Vec<AttemptId>,
    /// Attempts whose end shall be told, again perhaps.
    pub tell: Vec<AttemptId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// All its inputs are objects, or pulled by the job itself.
    pub spec: JobSpec,
    /// Inputs, by position, whose files are those of a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<(u32, u32)>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// What earlier attempts saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoint: Vec<Saved>,
}

/// A file of a job's folder of checkpoints, whose content is an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Below the folder of the job.
    pub path: String,
    pub digest: Digest,
    pub size: u64,
    /// Microseconds since 1970; which checkpoint is the newest may hang on it.
    pub modified: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub attempt: AttemptId,
    pub report: Report,
    /// A line of JSON, as `launch` wrote it.
    pub record: Vec<u8>,
    pub stdout: Stream,
    pub stderr: Stream,
    pub checkpoint: Vec<Saved>,
    /// The log of its reads and writes, where that was asked for.
    pub io: Option<(Digest, u64)>,
    /// Small outputs come along; others are asked for.
    pub contents: Vec<(Digest, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Stream {
    Here(Vec<u8>),
    /// Too long to come along.
    Object {
        digest: Digest,
        size: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    pub digest: Digest,
    /// Of the whole.
    pub size: u64,
    pub offset: u64,
    pub executable: bool,
    pub bytes: Vec<u8>,
}

/// The part of an end that is not plain bytes.
#[derive(Serialize, Deserialize)]
struct EndedHead<R> {
    attempt: AttemptId,
    report: R,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checkpoint: Vec<Saved>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contents: Vec<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stdout: Option<(Digest, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr: Option<(Digest, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    io: Option<(Digest, u64)>,
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Message::Hello(_) => 1,
            Message::Welcome(_) => 2,
            Message::Refused(_) => 3,
            Message::Beat => 4,
            Message::List { .. } => 5,
            Message::DropList(_) => 6,
            Message::Work(_) => 7,
            Message::Cancel { .. } => 8,
            Message::Started(_) => 9,
            Message::Ended(_) => 10,
            Message::Kept(_) => 11,
            Message::Want(_) => 12,
            Message::Chunk(_) => 13,
            Message::Missing { .. } => 14,
            Message::Draining => 15,
            Message::Leave => 16,
            Message::Bye => 17,
            Message::Return(_) => 18,
            Message::Returned(_) => 19,
            Message::Seen(_) => 20,
        }
    }

    /// Appends the message to others that go the same way.
    pub fn lay(&self, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend([0; 4]);
        to.push(self.kind());
        match self {
            Message::Hello(hello) => json(to, hello),
            Message::Welcome(welcome) => json(to, welcome),
            Message::Refused(words) => to.extend(words.as_bytes()),
            Message::Beat | Message::Draining | Message::Leave | Message::Bye => {}
            Message::List { id, files } => {
                to.extend(id.to_le_bytes());
                json(to, files);
            }
            Message::DropList(id) => to.extend(id.to_le_bytes()),
            Message::Work(work) => json(to, work),
            Message::Seen(lines) => json(to, lines),
            Message::Cancel { ending, attempts } => json(to, &(ending, attempts)),
            Message::Started(attempts)
            | Message::Kept(attempts)
            | Message::Return(attempts)
            | Message::Returned(attempts) => lay_attempts(to, attempts),
            Message::Ended(ended) => ended.lay(to),
            Message::Want(digests) => digests.iter().for_each(|digest| to.extend(digest.0)),
            Message::Chunk(chunk) => {
                to.extend(chunk.digest.0);
                to.extend(chunk.size.to_le_bytes());
                to.extend(chunk.offset.to_le_bytes());
                to.push(u8::from(chunk.executable));
                to.extend(&chunk.bytes);
            }
            Message::Missing { digest, problem } => {
                to.extend(digest.0);
                to.extend(problem.as_bytes());
            }
        }
        let length = (to.len() - start - 4) as u32;
        to[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// The opposite of [`Message::lay`], without the length.
    pub fn read(bytes: &[u8]) -> Result<Message, BadMessage> {
        let (&kind, rest) = bytes.split_first().ok_or(BadMessage::Length)?;
        let mut body = Body(rest);
        let message = match kind {
            1 => Message::Hello(body.json()?),
            2 => Message::Welcome(body.json()?),
            3 => Message::Refused(body.text()),
            4 => Message::Beat,
            5 => Message::List { id: body.u32()?, files: body.json()? },
            6 => Message::DropList(body.u32()?),
            7 => Message::Work(body.json()?),
            8 => {
                let (ending, attempts) = body.json()?;
                Message::Cancel { ending, attempts }
            }
            9 => Message::Started(body.attempts()?),
            10 => Message::Ended(Box::new(Ended::read(&mut body)?)),
            11 => Message::Kept(body.attempts()?),
            12 => Message::Want(body.digests()?),
            13 => Message::Chunk(Chunk {
                digest: body.digest()?,
                size: body.u64()?,
                offset: body.u64()?,
                executable: body.u8()? != 0,
                bytes: body.rest().to_vec(),
            }),
            14 => Message::Missing { digest: body.digest()?, problem: body.text() },
            15 => Message::Draining,
            16 => Message::Leave,
            17 => Message::Bye,
            18 => Message::Return(body.attempts()?),
            19 => Message::Returned(body.attempts()?),
            20 => Message::Seen(body.json()?),
            other => return Err(BadMessage::Kind(other)),
        };
        if body.0.is_empty() { Ok(message) } else { Err(BadMessage::Length) }
    }
}

impl Ended {
    fn lay(&self, to: &mut Vec<u8>) {
        let far = |stream: &Stream| match stream {
            Stream::Here(_) => None,
            Stream::Object { digest, size } => Some((*digest, *size)),
        };
        let head = EndedHead {
            attempt: self.attempt,
            report: &self.report,
            checkpoint: self.checkpoint.clone(),
            contents: self.contents.iter().map(|(digest, _)| *digest).collect(),
            stdout: far(&self.stdout),
            stderr: far(&self.stderr),
            io: self.io,
        };
        let start = to.len();
        to.extend([0; 4]);
        json(to, &head);
        let length = (to.len() - start - 4) as u32;
        to[start..start + 4].copy_from_slice(&length.to_le_bytes());
        fn near(stream: &Stream) -> &[u8] {
            match stream {
                Stream::Here(bytes) => bytes,
                Stream::Object { .. } => &[],
            }
        }
        let contents = self.contents.iter().map(|(_, bytes)| bytes.as_slice());
        for bytes in [self.record.as_slice(), near(&self.stdout), near(&self.stderr)].into_iter().chain(contents) {
            to.extend((bytes.len() as u32).to_le_bytes());
            to.extend(bytes);
        }
    }

    fn read(body: &mut Body<'_>) -> Result<Ended, BadMessage> {
        let head: EndedHead<Report> = parse(body.bytes()?)?;
        let record = body.bytes()?.to_vec();
        let mut stream = |far: Option<(Digest, u64)>| {
            let here = body.bytes()?.to_vec();
            Ok(far.map_or(Stream::Here(here), |(digest, size)| Stream::Object { digest, size }))
        };
        let (stdout, stderr) = (stream(head.stdout)?, stream(head.stderr)?);
        let contents = head.contents.into_iter().map(|digest| Ok((digest, body.bytes()?.to_vec())));
        let contents = contents.collect::<Result<_, BadMessage>>()?;
        let (attempt, report, checkpoint, io) = (head.attempt, head.report, head.checkpoint, head.io);
        Ok(Ended { attempt, report, record, stdout, stderr, checkpoint, io, contents })
    }
}

fn json<T: Serialize + ?Sized>(to: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(to, value).expect("plain data, into memory");
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BadMessage> {
    serde_json::from_slice(bytes).map_err(|error| BadMessage::Content(error.to_string()))
}

fn lay_attempts(to: &mut Vec<u8>, attempts: &[AttemptId]) {
    for attempt in attempts {
        to.extend(attempt.job.0.to_le_bytes());
        to.extend(attempt.n.to_le_bytes());
    }
}

/// What is left of a message.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadMessage> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(BadMessage::Length)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, BadMessage> {
        Ok(self.take::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, BadMessage> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, BadMessage> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn digest(&mut self) -> Result<Digest, BadMessage> {
        Ok(Digest(self.take()?))
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadMessage> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(BadMessage::Length)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(self.rest()).into_owned()
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, BadMessage> {
        parse(self.rest())
    }

    fn attempts(&mut self) -> Result<Vec<AttemptId>, BadMessage> {
        let mut attempts = Vec::with_capacity(self.0.len() / 8);
        while !self.0.is_empty() {
            attempts.push(AttemptId { job: JobId(self.u32()?), n: self.u32()? });
        }
        Ok(attempts)
    }

    fn digests(&mut self) -> Result<Vec<Digest>, BadMessage> {
        let mut digests = Vec::with_capacity(self.0.len() / 32);
        while !self.0.is_empty() {
            digests.push(self.digest()?);
        }
        Ok(digests)
    }
}
