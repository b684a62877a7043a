//! The thread that makes outputs durable: all attempts that are waiting go together, then their reports go out.

use crate::collect::Found;
use crate::finish;
use crate::launcher::Shared;
use crate::refusal;
use crate::table::Running;
use crossbeam_channel::Receiver;
use tulpar_core::job::Ending;

/// More attempts at once would only make the first wait.
const TOGETHER: usize = 512;

/// An attempt whose files are staged: one that ended well, or one that misses a declared output.
pub(crate) struct Conclusion {
    pub(crate) running: Box<Running>,
    pub(crate) ending: Ending,
    pub(crate) found: Vec<Found>,
}

pub(crate) fn run(shared: &Shared, received: &Receiver<Conclusion>) {
    while let Ok(first) = received.recv() {
        let mut batch = vec![first];
        batch.extend(received.try_iter().take(TOGETHER));
        let found: Vec<&[Found]> = batch.iter().map(|conclusion| conclusion.found.as_slice()).collect();
        let results = shared.objects.commit(&found);
        for (conclusion, result) in batch.into_iter().zip(results) {
            let Conclusion { running, ending, found } = conclusion;
            match result {
                Ok(()) => {
                    if !ending.is_success() {
                        shared.objects.show_again(&found);
                    }
                    let outputs = found.into_iter().map(|found| found.file).collect();
                    finish::report(shared, *running, ending, outputs);
                }
                // It lacks what it declares, and what it made is in its sandbox.
                Err(_) if !ending.is_success() => finish::report(shared, *running, ending, Vec::new()),
                Err(error) => {
                    let ending = refusal::ending(error.to_string(), Some(&error.error));
                    finish::report(shared, *running, ending, Vec::new());
                }
            }
        }
    }
}
