//! From Pegasus files to tasks.
