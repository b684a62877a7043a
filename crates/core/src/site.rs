//! Places with compute: what nodes they have, and where Tulpar may pack tasks itself.

use crate::resources::Capacity;
use serde::{Deserialize, Serialize};

/// A place where jobs run. This one is *owned*: Tulpar packs its nodes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    pub name: String,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub capacity: Capacity,
}
