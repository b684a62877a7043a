//! One axis of a chart: from where to where, in which steps, and what stands at its ticks. It draws nothing.

use super::choices;
use crate::frame::ticks;
use tulpar_core::hpo::Domain;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    low: f64,
    high: f64,
    log: bool,
    /// Only whole numbers are values.
    whole: bool,
    /// Names of what can be chosen; empty for numbers.
    choices: Vec<String>,
}

/// Values that differ by more than this factor are shown by their powers of ten.
const FAR: f64 = 200.0;

impl Axis {
    pub(super) fn of_domain(name: &str, domain: &Domain) -> Self {
        let (low, high, log) = match *domain {
            Domain::Float { low, high, log, .. } => (low, high, log),
            Domain::Int { low, high, log, .. } => (low as f64, high as f64, log),
            Domain::Choice(ref values) => (-0.5, values.len() as f64 - 0.5, false),
        };
        let whole = matches!(domain, Domain::Int { .. });
        Axis { name: name.to_owned(), low, high, log, whole, choices: choices(domain) }
    }

    /// Of measured values, with a little room at both ends.
    pub(super) fn of_values(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let name = name.to_owned();
        if low > high {
            return Axis { name, low: 0.0, high: 1.0, log: false, whole: false, choices: Vec::new() };
        }
        let log = low > 0.0 && high / low > FAR;
        let (low, high) = if log {
            (low / 1.15, high * 1.15)
        } else {
            let room = if high > low { (high - low) * 0.05 } else { (high.abs() * 0.1).max(0.5) };
            (low - room, high + room)
        };
        Axis { name, low, high, log, whole: false, choices: Vec::new() }
    }

    /// Whole numbers from 1 on.
    pub(super) fn of_counts(name: &str, most: f64) -> Self {
        Axis {
            name: name.to_owned(),
            low: 0.0,
            high: most.max(1.0) * 1.02,
            log: false,
            whole: true,
            choices: Vec::new(),
        }
    }

    /// Where a value lies, from 0 to 1.
    pub(super) fn unit(&self, value: f64) -> f64 {
        let unit = match self.log {
            true => (value.max(f64::MIN_POSITIVE).ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        if unit.is_finite() { unit.clamp(0.0, 1.0) } else { 0.5 }
    }

    pub(super) fn is_choice(&self) -> bool {
        !self.choices.is_empty()
    }

    /// Units and words; about as many as wanted.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        if self.is_choice() {
            let stride = self.choices.len().div_ceil(12).max(1);
            let named = self.choices.iter().enumerate().step_by(stride);
            return named.map(|(place, name)| (self.unit(place as f64), short(name))).collect();
        }
        let values = if self.log { self.powers(wanted) } else { self.even(wanted) };
        values.into_iter().map(|value| (self.unit(value), figure(value))).collect()
    }

    fn even(&self, wanted: usize) -> Vec<f64> {
        let span = self.high - self.low;
        let step = ticks(span, wanted).get(1).copied().unwrap_or(span).max(f64::MIN_POSITIVE);
        let step = if self.whole { step.ceil() } else { step };
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).clamp(0.0, 20.0) as u32;
        (0..=count).map(|number| (first + f64::from(number)) * step).collect()
    }

    fn powers(&self, wanted: usize) -> Vec<f64> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let (first, last) = (low.ceil() as i32, high.floor() as i32);
        if last - first < 1 {
            // Less than two powers of ten: even steps say more.
            return self.even(wanted);
        }
        let stride = ((last - first) as usize / wanted.max(1) + 1) as i32;
        (first..=last).step_by(stride.max(1) as usize).map(|power| 10f64.powi(power)).collect()
    }
}

fn short(name: &str) -> String {
    match name.char_indices().nth(14) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// `0.001`, `1e-5`, `20000`, `1e6`
pub(super) fn figure(value: f64) -> String {
    let size = value.abs();
    if value != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(axis: &Axis) -> Vec<String> {
        axis.ticks(5).into_iter().map(|(_, word)| word).collect()
    }

    #[test]
    fn ticks_are_round_numbers_powers_of_ten_or_names() {
        let log = Axis::of_domain("lr", &Domain::Float { low: 1e-5, high: 0.1, log: true, step: None });
        assert_eq!(said(&log), ["1e-5", "1e-4", "0.001", "0.01", "0.1"]);
        assert_eq!(log.unit(1e-3), 0.5);
        let int = Axis::of_domain("layers", &Domain::Int { low: 1, high: 8, log: false, step: 1 });
        assert_eq!(said(&int), ["2", "4", "6", "8"]);
        let choice = Domain::Choice(vec![
            tulpar_core::hpo::Value::Text("adam".into()),
            tulpar_core::hpo::Value::Text("sgd".into()),
        ]);
        let choice = Axis::of_domain("optimizer", &choice);
        assert_eq!((said(&choice), choice.unit(0.0)), (vec!["adam".to_owned(), "sgd".to_owned()], 0.25));
    }

    #[test]
    fn measured_values_have_room_and_far_ones_are_logarithmic() {
        let near = Axis::of_values("loss", [0.2, 0.4, f64::NAN].into_iter());
        assert!((near.unit(0.3) - 0.5).abs() < 1e-9 && near.unit(0.2) > 0.0);
        let far = Axis::of_values("loss", [0.001, 10.0].into_iter());
        assert!((far.unit(0.1) - 0.5).abs() < 1e-9);
        assert_eq!(Axis::of_values("loss", std::iter::empty()).unit(0.5), 0.5);
        assert_eq!(Axis::of_values("loss", [3.0].into_iter()).unit(3.0), 0.5);
    }
}
