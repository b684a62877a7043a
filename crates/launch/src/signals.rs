//! SIGTERM, SIGINT and SIGHUP, taken by a thread instead of a handler.

pub struct StopSignals(libc::sigset_t);

impl StopSignals {
    /// Before any other thread exists, so that all inherit it. Tasks get a clean mask.
    pub fn block() -> Self {
        // SAFETY: plain data, and pointers to it.
        unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut signals);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
            Self(signals)
        }
    }

    pub fn then(self, act: impl Fn() + Send + 'static) {
        std::thread::spawn(move || {
            let mut signal = 0;
            // SAFETY: both point to living locals.
            while unsafe { libc::sigwait(&self.0, &mut signal) } == 0 {
                act();
            }
        });
    }
}
