//! Why no plan can be made.

use super::Circle;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{what} names the site `{name}`, which no catalogue has; {help}")]
    UnknownSite { name: String, what: String, help: String },
    #[error(
        "no site has what the task `{task}` asks for: {asks}; considered: {sites}. Ask for less, or let tasks go to a site that has more"
    )]
    NoSite { task: String, asks: String, sites: String },
    #[error("clusters wait for each other in a circle; change the labels, or plan without clustering")]
    Entangled,
    #[error(transparent)]
    Circle(#[from] Circle),
}
