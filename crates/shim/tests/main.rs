//! Real programs, recorded: what they did to files is in the log, however they are started and however they end.

#[path = "main/harness.rs"]
mod harness;
#[path = "main/installed.rs"]
mod installed;
#[path = "main/judged.rs"]
mod judged;
#[path = "main/processes.rs"]
mod processes;
#[path = "main/single.rs"]
mod single;
#[path = "main/unseen.rs"]
mod unseen;
