//! The engine's properties in virtual time, over random graphs, policies and faults.

mod main {
    mod generate;
    mod planned;
    mod properties;
    mod scale;
}
