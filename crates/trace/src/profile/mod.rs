//! Profiles: Chrome traces (TensorFlow, JAX, PyTorch's Kineto), XSpace, TensorFlow's input-pipeline analysis, dftracer.
//! Gives events with their own clocks; does not align them with anything.

pub mod chrome;
pub mod dftracer;
pub mod input_pipeline;
mod json;
pub mod kineto;
pub mod xplane;

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the profile: {0}")]
    Io(#[from] std::io::Error),
    #[error("an event of the trace cannot be understood: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Protobuf(#[from] crate::protobuf::Malformed),
    #[error("this is not a trace: {0}")]
    NotATrace(&'static str),
    #[error("an event is longer than any tool writes")]
    TooLong,
}
