//! Findings about what a user wrote: all at once, each with code, place, reason and help.
