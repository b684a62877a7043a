//! Searches: spaces of parameters, samplers that choose points in them, pruners that end hopeless trials early, and
//! studies that are asked for trials and told what came of them, in any order and as many at once as one likes.
//!
//! Nothing here has a side effect: the same seed and the same order of asks and tells give the same sequence. It knows
//! no clock, no file, no thread and no other Tulpar crate.

pub mod analysis;
mod descent;
mod error;
mod history;
mod linear;
mod math;
mod objective;
pub mod optuna;
pub mod pruner;
mod random;
pub mod sampler;
pub mod space;
pub mod study;
pub mod trial;

pub use error::StudyError;
pub use objective::{Direction, Objective};
pub use pruner::{Decision, Pruner};
pub use sampler::{Sampler, SamplerMemory};
pub use space::{Condition, Domain, Parameter, Point, Space, SpaceError, Value, Values};
pub use study::{Next, Proposal, Settings, Study};
pub use trial::{Origin, Outcome, State, Trial};
