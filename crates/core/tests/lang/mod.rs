//! The workflow language as its users meet it.

mod cases;
mod catalogues;
mod model;
mod places;
mod quoting;
mod robustness;
mod schema;
mod writing;
