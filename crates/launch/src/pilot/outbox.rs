//! What waits to be sent on one connection, and the thread that sends it.
//!
//! Messages go first, all that wait in one write; between them contents of files go, a chunk at a time, so that
//! a large file never keeps a small message waiting. When there is nothing to say, a beat is sent.

use super::channel::Sender;
use super::message::{Chunk, Message};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tulpar_core::ids::Digest;

const CHUNK: usize = 128 << 10;
/// How long a message that nobody waits for may wait for another to go with.
const NAP: Duration = Duration::from_millis(10);

#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    ready: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct State {
    messages: Vec<u8>,
    /// Go with the next, or after a nap.
    lazy: Vec<u8>,
    files: VecDeque<(Digest, PathBuf)>,
    /// Nothing more is taken; what is there still goes out.
    closing: bool,
    /// Nobody sends any more.
    ended: bool,
    sleep: Sleep,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sleep {
    #[default]
    Awake,
    Nap,
    Long,
}

impl State {
    fn has_something(&self) -> bool {
        !self.messages.is_empty() || !self.files.is_empty() || self.closing || self.ended
    }
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, message: &Message) {
        self.push_all(|to| message.lay(to));
    }

    /// Lays several messages at once.
    pub fn push_all(&self, lay: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if state.closing || state.ended {
            return;
        }
        lay(&mut state.messages);
        self.wake(state);
    }

    /// Lays messages that may wait a moment: they cost no waking and no write of their own when others follow.
    pub fn push_lazily(&self, lay: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if state.closing || state.ended {
            return;
        }
        lay(&mut state.lazy);
        if state.sleep == Sleep::Long {
            self.wake(state);
        }
    }

    /// Sends the content of a file, after those that were asked for before.
    pub fn push_file(&self, digest: Digest, path: PathBuf) {
        let mut state = self.state();
        if !state.closing && !state.ended {
            state.files.push_back((digest, path));
            self.wake(state);
        }
    }

    /// Sends what is there, then ends the connection.
    pub fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.wake(state);
    }

    /// Drops what is there and ends the connection.
    pub fn abort(&self) {
        let mut state = self.state();
        state.ended = true;
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::take(&mut state.sleep) != Sleep::Awake {
            drop(state);
            self.ready.notify_one();
        }
    }

    /// Sends until the outbox is closed or the connection breaks.
    pub fn run(&self, mut sender: Sender, beat: Duration) {
        let mut open: Option<Sending> = None;
        let mut messages = Vec::new();
        loop {
            let file = {
                let mut state = self.state();
                let mut nap = true;
                while open.is_none() && !state.has_something() {
                    state.sleep = if nap { Sleep::Nap } else { Sleep::Long };
                    let patience = if nap { NAP.min(beat) } else { beat };
                    let (woken, waited) =
                        self.ready.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    if waited.timed_out() && !state.lazy.is_empty() {
                        break;
                    }
                    if waited.timed_out() && !nap && state.messages.is_empty() {
                        Message::Beat.lay(&mut state.messages);
                    }
                    // Woken for something lazy: it goes when the nap is over.
                    nap = !waited.timed_out();
                }
                state.sleep = Sleep::Awake;
                let nothing = state.messages.is_empty() && state.lazy.is_empty() && state.files.is_empty();
                if state.ended || (state.closing && open.is_none() && nothing) {
                    break;
                }
                messages.clear();
                messages.append(&mut state.lazy);
                messages.append(&mut state.messages);
                if open.is_none() { state.files.pop_front() } else { None }
            };
            if let Some((digest, path)) = file {
                open = Sending::open(digest, path, &mut messages);
            }
            if let Some(sending) = &mut open
                && sending.lay_chunk(&mut messages)
            {
                open = None;
            }
            if sender.send(&messages).is_err() {
                break;
            }
        }
        // Whoever waits knows that everything is with the kernel, which delivers it; the other side hangs up.
        let clean = !std::mem::replace(&mut self.state().ended, true);
        if !clean {
            sender.hang_up();
        }
        self.done.notify_all();
    }

    /// Waits until nobody sends any more.
    pub fn wait(&self, patience: Duration) {
        let state = self.state();
        drop(self.done.wait_timeout_while(state, patience, |state| !state.ended));
    }
}

/// A file of which a part has been sent.
struct Sending {
    digest: Digest,
    file: File,
    size: u64,
    offset: u64,
    executable: bool,
}

impl Sending {
    fn open(digest: Digest, path: PathBuf, messages: &mut Vec<u8>) -> Option<Sending> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        match opened {
            Ok((metadata, file)) => {
                let executable = metadata.permissions().mode() & 0o111 != 0;
                Some(Sending { digest, file, size: metadata.len(), offset: 0, executable })
            }
            Err(error) => {
                Message::Missing { digest, problem: format!("{}: {error}", path.display()) }.lay(messages);
                None
            }
        }
    }

    /// Says whether it was the last.
    fn lay_chunk(&mut self, messages: &mut Vec<u8>) -> bool {
        let wanted = (self.size - self.offset).min(CHUNK as u64);
        let mut bytes = Vec::with_capacity(wanted as usize);
        let read = (&self.file).take(wanted).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() as u64 != wanted {
            let problem = "it changed or could not be read while it was sent".to_owned();
            Message::Missing { digest: self.digest, problem }.lay(messages);
            return true;
        }
        let (digest, size, offset, executable) = (self.digest, self.size, self.offset, self.executable);
        self.offset += wanted;
        Message::Chunk(Chunk { digest, size, offset, executable, bytes }).lay(messages);
        self.offset == size
    }
}
