//! (opens with what it is)
