//! HTCondor's texts.

mod submit;
