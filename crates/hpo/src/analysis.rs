//! What a study says when it is looked at: its best trials, how it got there, which parameters mattered, and what more
//! trials would likely bring. Computed from the trials, never changing them.

mod front;
mod importance;
mod progress;

pub use front::{front, front_among, hypervolume, spread};
pub use importance::{Importance, importances};
pub use progress::{Outlook, Progress, outlook, progress};
