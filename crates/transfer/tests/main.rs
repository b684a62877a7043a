//! Transfers against real servers, real tools and servers that lie.

#[path = "main/harness.rs"]
mod harness;
#[path = "main/hostile.rs"]
mod hostile;
#[path = "main/judges.rs"]
mod judges;
#[path = "main/local.rs"]
mod local;
#[path = "main/locations.rs"]
mod locations;
#[path = "main/others.rs"]
mod others;
#[path = "main/pages.rs"]
mod pages;
#[path = "main/serving.rs"]
mod serving;
