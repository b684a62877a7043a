//! The readers against real files of the outside world, against logs written here, and against damage.

#[path = "main/analysis.rs"]
mod analysis;
#[path = "main/darshan_fixtures.rs"]
mod darshan_fixtures;
#[path = "main/darshan_generated.rs"]
mod darshan_generated;
#[path = "main/darshan_hostile.rs"]
mod darshan_hostile;
#[path = "main/generator.rs"]
mod generator;
#[path = "main/harness.rs"]
mod harness;
#[path = "main/profiles.rs"]
mod profiles;
#[path = "main/tensorboard.rs"]
mod tensorboard;
