//! The readers against real files of the outside world, against other readers, against logs written here, and against
//! damage; what is made of what they read.

#[path = "main/analysis.rs"]
mod analysis;
#[path = "main/darshan_fixtures.rs"]
mod darshan_fixtures;
#[path = "main/darshan_generated.rs"]
mod darshan_generated;
#[path = "main/darshan_hostile.rs"]
mod darshan_hostile;
#[path = "main/darshan_written.rs"]
mod darshan_written;
#[path = "main/findings.rs"]
mod findings;
#[path = "main/generator.rs"]
mod generator;
#[path = "main/grouped.rs"]
mod grouped;
#[path = "main/harness.rs"]
mod harness;
#[path = "main/judges.rs"]
mod judges;
#[path = "main/merged.rs"]
mod merged;
#[path = "main/mutated.rs"]
mod mutated;
#[path = "main/profiles.rs"]
mod profiles;
#[path = "main/reported.rs"]
mod reported;
#[path = "main/structures.rs"]
mod structures;
#[path = "main/tensorboard.rs"]
mod tensorboard;
