//! What is shown of runs: recorded events in; tables, charts, pages and other systems' formats out.
//!
//! Nothing here reads a file or a clock, drives an engine, or knows who executed an attempt: a simulated run is
//! reported like a real one. Whoever calls replays the journal and hands over events, graph and facts.

mod chart;
mod columns;
mod export;
mod forecast;
mod html;
mod kinds;
pub mod live;
mod markdown;
mod summary;
mod timeline;
mod words;

pub use columns::{Columns, MOST_COLUMNS, Series};
pub use export::{Exported, Measures, instance};
pub use forecast::{Figures, Forecast, ModeForecast};
pub use html::page;
pub use kinds::Kinds;
pub use markdown::markdown;
pub use summary::{Measured, Occupation, RunFacts, RunReport, SetRow, Utilisation, compare, report};
pub use timeline::{Occupied, SetTimes, Timeline};
