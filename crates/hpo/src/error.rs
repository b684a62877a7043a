//! What a study refuses, in words for people.

use crate::space::SpaceError;
use crate::trial::State;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StudyError {
    #[error("a study needs an objective; say what is to be minimised or maximised")]
    NoObjective,
    #[error("the objective `{name}` is there twice")]
    SameObjective { name: String },
    #[error("pruning compares one value; with {objectives} objectives leave the pruner out")]
    PrunerOfSeveral { objectives: usize },
    #[error("the sampler {sampler} knows one objective, not {objectives}; use nsga2, tpe, random, quasi or grid")]
    SamplerOfSeveral { sampler: &'static str, objectives: usize },
    #[error(
        "`{name}` has {values} values, too many for a grid (at most {most}); give it a step, or use another sampler"
    )]
    LargeGrid { name: String, values: u64, most: u64 },
    #[error("{what} is {value}, but must be {must}")]
    Setting { what: &'static str, value: f64, must: &'static str },
    #[error("starting point {number}: {error}")]
    Start { number: usize, error: SpaceError },
    #[error("there is no trial {number}")]
    NoTrial { number: u32 },
    #[error("trial {number} has ended already ({state:?}); what ended stays as it is")]
    Ended { number: u32, state: State },
    #[error("trial {number} is not paused, so it cannot be resumed")]
    NotPaused { number: u32 },
    #[error("trial {number} has not failed, so it cannot be run again")]
    NotFailed { number: u32 },
    #[error("trial {number} gave {given} values for {objectives} objectives")]
    ValueCount { number: u32, given: usize, objectives: usize },
    #[error("the point is not one of this space; was the space changed after the trial was recorded?")]
    BadPoint,
    #[error(transparent)]
    Space(#[from] SpaceError),
    #[error("a study of trials {known} cannot have ended trial {number}")]
    BadOrder { number: u32, known: usize },
}
