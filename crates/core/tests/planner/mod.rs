//! The planner on real workflows.

mod auto;
