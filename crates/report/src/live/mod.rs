//! The live page: its files, the graph of task sets and the lanes of attempts that it draws, and the figures for
//! Prometheus.
//!
//! What a page shows comes as JSON from whoever serves it; nothing here asks a store, drives an engine or opens a socket.

mod assets;
mod graph;
mod lanes;
mod metrics;

pub use assets::{Asset, POLICY, asset, shell};
pub use graph::{SetGraph, SetNode, set_graph};
pub use lanes::{Lanes, Spans, Window};
pub use metrics::{RunFigures, metrics};
