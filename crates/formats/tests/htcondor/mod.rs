//! HTCondor's texts.

mod lint;
mod submit;
