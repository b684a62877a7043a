//! What is shown of runs: recorded events in; tables, charts, pages and other systems' formats out.
//!
//! Nothing here reads a file or a clock, drives an engine, or knows who executed an attempt: a simulated run is
//! reported like a real one. Whoever calls replays the journal and hands over events, graph and facts.

mod bars;
mod character;
mod chart;
mod columns;
mod csv;
mod csv_files;
pub mod draw;
mod efficiency;
mod efficiency_tables;
mod export;
mod forecast;
mod frame;
mod gather;
mod html;
pub mod io;
mod kinds;
mod ledger;
pub mod live;
mod markdown;
mod markdown_table;
mod markup;
mod measured;
mod overview;
mod pieces;
mod run_tables;
mod scenario;
mod search;
mod search_tables;
mod spent;
mod statistics;
mod summary;
mod table;
mod tables;
mod timeline;
mod trace;
mod tracking;
mod transfers;
mod words;

pub use character::{Characterisation, Figure, JOB_FIGURES, JobLevel, Values, WORKFLOW_FIGURES};

pub use columns::{Columns, MOST_COLUMNS, Series};
pub use csv::CsvFile;
pub use csv_files::{csv, transfers as transfers_csv};
pub use efficiency::Efficiency;
pub use efficiency_tables::efficiency_text;
pub use export::{Exported, Measures, instance};
pub use forecast::{Figures, Forecast, ModeForecast};
pub use gather::Gathered;
pub use html::page;
pub use kinds::Kinds;
pub use ledger::Ledger;
pub use markdown::markdown;
pub use measured::{Measured, Utilisation};
pub use overview::{Overview, SideBySide, overview};
pub use scenario::{Aside, Document, NamedRuns, Scenario, Spread};
pub use search::{
    Drawing, Goal, SearchReport, Took, TrialRow, best_first, drawings, search_line, search_lines, search_sentences,
    searches,
};
pub use spent::{Rates, Spent};
pub use statistics::{Period, Statistics, StatisticsFacts, StatisticsTable, statistics, tables as statistics_tables};
pub use summary::{Occupation, RunFacts, RunReport, SetRow, compare, report};
pub use table::{ResultTable, TableFormat};
pub use timeline::{Occupied, SetTimes, Timeline};
pub use trace::chrome::{Counters, chrome};
pub use trace::otlp::otlp;
pub use tracking::{Searched, TrialFacts, TrialTimes, hparams, mlflow, searched, trial_state, trials_json, wandb};
pub use transfers::{Pair, Transfer, Transfers, all as all_transfers};
