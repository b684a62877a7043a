//! The thread that makes outputs durable: all attempts that are waiting go together, then their reports go out.

use crate::collect::Found;
use crate::finish;
use crate::launcher::Shared;
use crate::table::Running;
use crossbeam_channel::Receiver;
use tulpar_core::job::Ending;

/// More attempts at once would only make the first wait.
const TOGETHER: usize = 512;

/// A successful attempt whose outputs are staged.
pub(crate) struct Conclusion {
    pub(crate) running: Box<Running>,
    pub(crate) found: Vec<Found>,
}

pub(crate) fn run(shared: &Shared, received: &Receiver<Conclusion>) {
    while let Ok(first) = received.recv() {
        let mut batch = vec![first];
        batch.extend(received.try_iter().take(TOGETHER));
        let found: Vec<&[Found]> = batch.iter().map(|conclusion| conclusion.found.as_slice()).collect();
        let results = shared.objects.commit(&found);
        for (conclusion, result) in batch.into_iter().zip(results) {
            let Conclusion { running, found } = conclusion;
            match result {
                Ok(()) => {
                    let outputs = found.into_iter().map(|found| found.file).collect();
                    finish::report(shared, *running, Ending::Exit(0), outputs);
                }
                Err(error) => finish::report(shared, *running, Ending::Refused(error.to_string()), Vec::new()),
            }
        }
    }
}
