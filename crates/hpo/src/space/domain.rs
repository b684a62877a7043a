//! What values a parameter can have, and where they lie on the unit interval: linear or logarithmic, and for steps,
//! whole numbers and choices as cells that fill it.

use super::{SpaceError, Value};
use crate::math::{exp, log};

#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    Float { low: f64, high: f64, log: bool, step: Option<f64> },
    Int { low: i64, high: i64, log: bool, step: i64 },
    Choice(Vec<Value>),
}

impl Domain {
    pub(super) fn check(&self, name: &str) -> Result<(), SpaceError> {
        let name = || name.to_owned();
        match *self {
            Self::Float { low, high, log, step } => {
                if !low.is_finite() || !high.is_finite() || !(high - low).is_finite() {
                    let text = if low.is_finite() { high } else { low }.to_string();
                    return Err(SpaceError::NotANumber { name: name(), text });
                }
                if low > high {
                    return Err(SpaceError::Reversed { name: name(), low, high });
                }
                if log && low <= 0.0 {
                    return Err(SpaceError::LogOfNothing { name: name(), low });
                }
                match step {
                    Some(_) if log => Err(SpaceError::LogStep { name: name() }),
                    Some(step) if !(step > 0.0 && step <= high - low) => {
                        Err(SpaceError::BadStep { name: name(), step })
                    }
                    _ => Ok(()),
                }
            }
            Self::Int { low, high, log, step } => {
                if low > high {
                    return Err(SpaceError::Reversed { name: name(), low: low as f64, high: high as f64 });
                }
                // Beyond 2^53 a number no longer holds every whole number.
                if let Some(far) = [low, high].into_iter().find(|bound| bound.unsigned_abs() > 1 << 52) {
                    return Err(SpaceError::NotANumber { name: name(), text: far.to_string() });
                }
                if log && low < 1 {
                    return Err(SpaceError::LogOfNothing { name: name(), low: low as f64 });
                }
                if log && step != 1 {
                    return Err(SpaceError::LogStep { name: name() });
                }
                if step < 1 || step > (high - low).max(1) {
                    return Err(SpaceError::BadStep { name: name(), step: step as f64 });
                }
                Ok(())
            }
            Self::Choice(ref choices) => {
                if choices.is_empty() {
                    return Err(SpaceError::NoChoices { name: name() });
                }
                let same = choices.iter().enumerate().find(|(at, choice)| choices[..*at].contains(choice));
                match same {
                    Some((_, choice)) => Err(SpaceError::SameChoice { name: name(), choice: choice.clone() }),
                    None => Ok(()),
                }
            }
        }
    }

    /// How many values there are, where they can be counted.
    pub fn cells(&self) -> Option<u64> {
        match *self {
            Self::Float { low, high, .. } if low == high => Some(1),
            Self::Float { step: None, .. } => None,
            Self::Float { low, high, step: Some(step), .. } => Some(((high - low) / step + 1e-8).floor() as u64 + 1),
            Self::Int { low, high, step, .. } => Some(((high - low) / step) as u64 + 1),
            Self::Choice(ref choices) => Some(choices.len() as u64),
        }
    }

    pub(crate) fn is_choice(&self) -> bool {
        matches!(self, Self::Choice(_))
    }

    /// The highest value that a step reaches.
    pub fn highest(&self) -> f64 {
        let last = self.cells().map(|cells| cells - 1);
        match *self {
            Self::Float { low, high, step, .. } => match (step, last) {
                (Some(step), Some(last)) => on_step(low, step, last).min(high),
                _ => high,
            },
            Self::Int { low, step, .. } => (low + step * last.unwrap_or(0) as i64) as f64,
            Self::Choice(ref choices) => choices.len() as f64 - 1.0,
        }
    }

    /// The value of one of the cells, in order.
    pub(crate) fn cell_number(&self, cell: u64) -> f64 {
        match *self {
            Self::Float { low, high, step: Some(step), .. } => on_step(low, step, cell).min(high),
            Self::Float { low, .. } => low,
            Self::Int { low, step, .. } => (low + step * cell as i64) as f64,
            Self::Choice(_) => cell as f64,
        }
    }

    /// Every part of the unit interval that is a value is as wide as the value is likely.
    pub(crate) fn at_unit(&self, unit: f64) -> f64 {
        match *self {
            Self::Float { low, high, log: true, .. } => exp(log(low) + unit * (log(high) - log(low))).clamp(low, high),
            Self::Float { low, high, step: None, .. } => (low + unit * (high - low)).clamp(low, high),
            Self::Int { low, high, log: true, .. } => {
                let (bottom, top) = (log(low as f64 - 0.5), log(high as f64 + 0.5));
                exp(bottom + unit * (top - bottom)).round().clamp(low as f64, high as f64)
            }
            _ => {
                let cells = self.cells().unwrap_or(1);
                self.cell_number(((unit * cells as f64).max(0.0) as u64).min(cells - 1))
            }
        }
    }

    /// The middle of what becomes this value.
    pub(crate) fn to_unit(&self, number: f64) -> f64 {
        match *self {
            Self::Float { low, high, .. } if low == high => 0.5,
            Self::Float { low, high, log: true, .. } => (log(number) - log(low)) / (log(high) - log(low)),
            Self::Float { low, high, step: None, .. } => (number - low) / (high - low),
            _ => self.cell(number).map_or(0.5, |(low, high)| 0.5 * (low + high)),
        }
    }

    /// From where to where the unit interval becomes this value; nothing where a value has no width.
    pub(crate) fn cell(&self, number: f64) -> Option<(f64, f64)> {
        match *self {
            Self::Float { step: None, .. } => None,
            Self::Int { low, high, log: true, .. } => {
                let (bottom, top) = (log(low as f64 - 0.5), log(high as f64 + 0.5));
                let unit = |number: f64| (log(number) - bottom) / (top - bottom);
                Some((unit(number - 0.5), unit(number + 0.5)))
            }
            Self::Float { low, step: Some(step), .. } => Some(self.even_cell(((number - low) / step).round())),
            Self::Int { low, step, .. } => Some(self.even_cell(((number - low as f64) / step as f64).round())),
            Self::Choice(_) => Some(self.even_cell(number)),
        }
    }

    fn even_cell(&self, cell: f64) -> (f64, f64) {
        let width = 1.0 / self.cells().unwrap_or(1) as f64;
        (cell * width, (cell + 1.0) * width)
    }

    pub(crate) fn contains(&self, number: f64) -> bool {
        match *self {
            Self::Float { low, high, step, .. } => {
                low <= number && number <= high && step.is_none_or(|step| near_whole((number - low) / step))
            }
            Self::Int { low, high, step, .. } => {
                (low as f64..=high as f64).contains(&number) && near_whole((number - low as f64) / step as f64)
            }
            Self::Choice(ref choices) => number >= 0.0 && number < choices.len() as f64 && number.fract() == 0.0,
        }
    }

    /// The number inside for a value outside, or why it has none.
    pub(crate) fn number(&self, value: &Value) -> Result<f64, String> {
        if let Self::Choice(choices) = self {
            return choices.iter().position(|choice| choice == value).map(|at| at as f64).ok_or_else(|| {
                let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
                format!("it is one of {}", choices.join(", "))
            });
        }
        let number = value.number().ok_or_else(|| "it is a number".to_owned())?;
        if self.contains(number) {
            return Ok(number);
        }
        Err(match *self {
            Self::Float { low, high, step: None, .. } => format!("it lies between {low} and {high}"),
            Self::Float { low, high, step: Some(step), .. } => {
                format!("it lies between {low} and {high} on steps of {step}")
            }
            Self::Int { low, high, step: 1, .. } => format!("it is a whole number between {low} and {high}"),
            Self::Int { low, high, step, .. } => {
                format!("it is a whole number between {low} and {high} on steps of {step}")
            }
            Self::Choice(_) => String::new(),
        })
    }

    pub(crate) fn value(&self, number: f64) -> Value {
        match self {
            Self::Float { .. } => Value::Float(number),
            Self::Int { .. } => Value::Int(number as i64),
            Self::Choice(choices) => choices[(number as usize).min(choices.len() - 1)].clone(),
        }
    }
}

/// 0.3, not 0.30000000000000004: what a person would have written.
fn on_step(low: f64, step: f64, times: u64) -> f64 {
    if times == 0 {
        return low;
    }
    let exact = low + step * times as f64;
    format!("{exact:.13e}").parse().unwrap_or(exact)
}

fn near_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-8 * (1.0 + number.abs())
}
