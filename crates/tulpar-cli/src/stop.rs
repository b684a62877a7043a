//! Ctrl-C and friends: the first stops submitting, the second ends what runs; both leave a run to resume, where it is one that can be.

use crate::print;
use crossbeam_channel::unbounded;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tulpar::driving::Stops;
use tulpar_core::event::Stopping;

/// `resumed` is the run that can be gone on with later; nothing can where there is none.
pub(crate) fn listen(resumed: Option<&str>) -> std::io::Result<Stops> {
    let [then, kept] = match resumed {
        Some(run) => [
            format!("\nGo on later with `tulpar resume {run}`."),
            format!("; checkpoints are kept. Go on later with `tulpar resume {run}`."),
        ],
        None => [String::new(), ".".to_owned()],
    };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (sender, wanted) = unbounded();
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut times = 0;
        for signal in signals.forever() {
            times += 1;
            flag.store(true, Ordering::SeqCst);
            let how = if signal == SIGINT && times == 1 { Stopping::Drain } else { Stopping::Interrupt };
            match (how, times) {
                (Stopping::Drain, _) => print::note(&format!(
                    "\nStarting nothing more; waiting for what runs. Ctrl-C again ends it now.{then}"
                )),
                (_, 1 | 2) => print::note(&format!("\nEnding what runs{kept}")),
                _ => print::note("\nStill ending what runs (a task has up to its grace period)."),
            }
            if sender.send(how).is_err() {
                break;
            }
        }
    })?;
    Ok(Stops { wanted, interrupted })
}
