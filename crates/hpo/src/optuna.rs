//! Optuna's storages.
