//! What lies between those who read and the step that computes: a bounded number of samples ahead, counted from the
//! moment their reading begins, so that read-ahead is what was asked for and no more.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use crate::error::Error;
use crate::meter::locked;

pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Bytes of samples that are ready.
    ready: VecDeque<u64>,
    /// Samples whose reading may still begin.
    tickets: u64,
    readers: u64,
    failed: Option<Error>,
    stopped: bool,
}

impl Queue {
    /// Nothing is read before [`Queue::admit`].
    pub(crate) fn new(readers: u64) -> Queue {
        let ready = VecDeque::new();
        let state = State { ready, tickets: 0, readers, failed: None, stopped: false };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn wait<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut state = locked(&self.state);
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Waits until another sample may be read; `false` when no more is wanted.
    pub(crate) fn ticket(&self) -> bool {
        self.wait(|state| {
            if state.stopped {
                return Some(false);
            }
            (state.tickets > 0).then(|| {
                state.tickets -= 1;
                true
            })
        })
    }

    pub(crate) fn push(&self, sample: u64) {
        locked(&self.state).ready.push_back(sample);
        self.changed.notify_all();
    }

    /// Runs a reader; whatever becomes of it, those who wait hear of it.
    pub(crate) fn serve(&self, reader: impl FnOnce(&Queue) -> Result<(), Error>) {
        struct Leaving<'a>(&'a Queue, Option<Error>);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                self.0.leave(self.1.take());
            }
        }
        let mut leaving = Leaving(self, Some(Error::Lost));
        leaving.1 = reader(self).err();
    }

    /// A reader has no more, or cannot go on.
    fn leave(&self, error: Option<Error>) {
        let mut state = locked(&self.state);
        state.readers = state.readers.saturating_sub(1);
        if let Some(error) = error {
            state.failed.get_or_insert(error);
        }
        self.changed.notify_all();
    }

    /// The next sample; nothing at the end. Readers hear of the room that this makes only when nothing is left or at
    /// [`Queue::wake`]: on a busy machine they would take the processor from who has all that it needs.
    pub(crate) fn pop(&self) -> Result<Option<u64>, Error> {
        let (sample, left) = self.wait(|state| {
            if let Some(error) = state.failed.take() {
                return Some((Err(error), 0));
            }
            match state.ready.pop_front() {
                Some(sample) => {
                    state.tickets += 1;
                    Some((Ok(Some(sample)), state.ready.len()))
                }
                None => (state.readers == 0).then_some((Ok(None), 0)),
            }
        });
        if left == 0 {
            self.wake();
        }
        sample
    }

    /// So many samples may be read ahead.
    pub(crate) fn admit(&self, ahead: u64) {
        locked(&self.state).tickets += ahead.max(1);
        self.wake();
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        locked(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    #[test]
    fn no_more_is_read_ahead_than_was_asked_for() {
        let (queue, begun) = (Queue::new(1), AtomicU64::new(0));
        queue.admit(3);
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.serve(|queue| {
                    while queue.ticket() {
                        let number = begun.fetch_add(1, Ordering::SeqCst);
                        queue.push(number);
                        told.send(number).unwrap();
                    }
                    Ok(())
                });
            });
            // Three are read before anything is taken, then one for each that is.
            assert_eq!((0..3).map(|_| heard.recv().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
            assert_eq!(begun.load(Ordering::SeqCst), 3);
            assert_eq!(queue.pop().unwrap(), Some(0));
            queue.wake();
            assert_eq!(heard.recv().unwrap(), 3);
            assert_eq!(begun.load(Ordering::SeqCst), 4);
            queue.stop();
            assert_eq!([(); 4].map(|()| queue.pop().unwrap()), [Some(1), Some(2), Some(3), None]);
        });
    }
}
