//! A value of a parameter, as people write it.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Value {
    /// The plainest meaning of a word: `true`, `3`, `0.5`, or text.
    pub fn parse(text: &str) -> Self {
        match text {
            "true" => return Self::Bool(true),
            "false" => return Self::Bool(false),
            _ => {}
        }
        if let Ok(number) = text.parse() {
            return Self::Int(number);
        }
        // `inf` and `nan` are numbers to Rust, and words to people.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && text.contains(|one: char| one.is_ascii_digit()) => Self::Float(number),
            _ => Self::Text(text.to_owned()),
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

/// `1` and `1.0` are the same value, whichever of them a format kept.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Int(one), Self::Int(other)) => one == other,
            _ => matches!((self.number(), other.number()), (Some(one), Some(other)) if one == other),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Int(value) => write!(formatter, "{value}"),
            // Every program reads 1e-05; few read 0.00001234 well, and none of them minds.
            Self::Float(value) if *value != 0.0 && (value.abs() < 1e-4 || value.abs() >= 1e16) => {
                write!(formatter, "{value:e}")
            }
            Self::Float(value) => write!(formatter, "{value}"),
            Self::Text(value) => formatter.write_str(value),
        }
    }
}
