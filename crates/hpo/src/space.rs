//! What is searched: parameters with their domains, and which of them exist only where others have certain values.
//!
//! Inside, a value is a number: the value itself, or the index of a choice. A [`Point`] has one for every parameter of
//! the space, in its order, and none where the parameter is not active. It does not know how points are chosen.

mod domain;
mod form;
mod short;
mod value;

pub use domain::Domain;
pub use value::Value;

use std::collections::BTreeMap;

/// Numbers of the active parameters, in the order of the space.
pub type Point = Vec<Option<f64>>;

/// Values of the active parameters by name.
pub type Values = BTreeMap<String, Value>;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpaceError {
    #[error("the parameter has no name; write NAME=float(0,1)")]
    NoName,
    #[error("`{name}`: a name has letters, digits, `_`, `-` and `.` and begins with a letter or `_`")]
    BadName { name: String },
    #[error("`{name}` is declared twice")]
    Twice { name: String },
    #[error(
        "`{name}`: `{text}` is no domain; write float(0,1), log(1e-5,1e-1), int(1,8), int(1,1024,log) or choice(a,b)"
    )]
    NotADomain { name: String, text: String },
    #[error("`{name}`: `{word}` is no domain; there are float, log, int and choice{hint}")]
    UnknownDomain { name: String, word: String, hint: String },
    #[error("`{name}`: `{text}` is no number")]
    NotANumber { name: String, text: String },
    #[error("`{name}`: `{text}` is no whole number; use float(...) for parts")]
    NotWhole { name: String, text: String },
    #[error("`{name}`: a lower and an upper bound are needed, as in {word}(1,8)")]
    Bounds { name: String, word: String },
    #[error("`{name}`: the lower bound {low} is above the upper bound {high}")]
    Reversed { name: String, low: f64, high: f64 },
    #[error("`{name}`: a log scale begins above 0, not at {low}")]
    LogOfNothing { name: String, low: f64 },
    #[error("`{name}`: a step is above 0 and at most the width of the domain, not {step}")]
    BadStep { name: String, step: f64 },
    #[error("`{name}`: a log scale has no steps; leave one of the two out")]
    LogStep { name: String },
    #[error("`{name}`: `{word}` is not known here; there are step=NUMBER and log")]
    UnknownOption { name: String, word: String },
    #[error("`{name}`: there is nothing to choose from")]
    NoChoices { name: String },
    #[error("`{name}`: `{choice}` is there twice")]
    SameChoice { name: String, choice: Value },
    #[error("`{name}` depends on `{parent}`, which is not in the space{hint}")]
    NoParent { name: String, parent: String, hint: String },
    #[error("`{name}` is active when `{parent}` is `{value}`, which it can never be: {reason}")]
    NeverActive { name: String, parent: String, value: Value, reason: String },
    #[error("`{name}` depends on itself")]
    Circle { name: String },
    #[error("the space has no parameters; give at least one, as in lr=log(1e-5,1e-1)")]
    Empty,
    #[error("`{name}` is not in the space{hint}")]
    Unknown { name: String, hint: String },
    #[error("`{name}` has no value")]
    Missing { name: String },
    #[error("`{name}` has a value, but is not active: {reason}")]
    Inactive { name: String, reason: String },
    #[error("`{name}` = {value}: {reason}")]
    Outside { name: String, value: Value, reason: String },
}

/// Active only where the parent has one of these values.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub parent: String,
    pub values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub domain: Domain,
    /// All of them must hold.
    pub when: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    parameters: Vec<Parameter>,
    /// Parents before children.
    order: Vec<usize>,
    /// For each parameter: parents and the numbers of theirs with which it is active.
    when: Vec<Vec<(usize, Vec<f64>)>>,
}

impl Space {
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        if parameters.is_empty() {
            return Err(SpaceError::Empty);
        }
        let mut index = BTreeMap::new();
        for (at, parameter) in parameters.iter().enumerate() {
            check_name(&parameter.name)?;
            parameter.domain.check(&parameter.name)?;
            if index.insert(parameter.name.clone(), at).is_some() {
                return Err(SpaceError::Twice { name: parameter.name.clone() });
            }
        }
        let mut when = Vec::with_capacity(parameters.len());
        for parameter in &parameters {
            let mut conditions = Vec::new();
            for condition in &parameter.when {
                let parent = *index.get(&condition.parent).ok_or_else(|| SpaceError::NoParent {
                    name: parameter.name.clone(),
                    parent: condition.parent.clone(),
                    hint: hint(&condition.parent, index.keys()),
                })?;
                let numbers = condition.values.iter().map(|value| {
                    parameters[parent].domain.number(value).map_err(|reason| SpaceError::NeverActive {
                        name: parameter.name.clone(),
                        parent: condition.parent.clone(),
                        value: value.clone(),
                        reason,
                    })
                });
                conditions.push((parent, numbers.collect::<Result<Vec<f64>, _>>()?));
            }
            when.push(conditions);
        }
        let order = ordered(&parameters, &when)?;
        Ok(Self { parameters, order, when })
    }

    /// From short forms, as on a command line: `lr=log(1e-5,1e-1)`, `momentum=float(0,1) when opt=sgd`.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, SpaceError> {
        Self::new(texts.into_iter().map(Parameter::parse).collect::<Result<_, _>>()?)
    }

    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Whether a parameter depends on others.
    pub fn is_conditional(&self, parameter: usize) -> bool {
        !self.when[parameter].is_empty()
    }

    /// Parents before their children.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Those that decide whether a parameter is active.
    pub(crate) fn parents(&self, parameter: usize) -> impl Iterator<Item = usize> + '_ {
        self.when[parameter].iter().map(|(parent, _)| *parent)
    }

    pub(crate) fn domain(&self, parameter: usize) -> &Domain {
        &self.parameters[parameter].domain
    }

    /// Whether a parameter is active, given the numbers of those before it in the order.
    pub(crate) fn active(&self, parameter: usize, point: &Point) -> bool {
        self.when[parameter]
            .iter()
            .all(|(parent, numbers)| point[*parent].is_some_and(|value| numbers.contains(&value)))
    }

    /// A point from one number in 0..1 for each parameter; those that are not active are left out.
    pub(crate) fn at_units(&self, units: &[f64]) -> Point {
        let mut point = vec![None; self.len()];
        for &at in &self.order {
            if self.active(at, &point) {
                point[at] = Some(self.domain(at).at_unit(units[at]));
            }
        }
        point
    }

    /// Where a point lies in the unit cube; not a number where a parameter is not active.
    pub(crate) fn to_units(&self, point: &Point) -> Vec<f64> {
        let unit = |(at, value): (usize, &Option<f64>)| value.map_or(f64::NAN, |value| self.domain(at).to_unit(value));
        point.iter().enumerate().map(unit).collect()
    }

    /// The number of points, when it is finite and not beyond what can be counted.
    pub fn size(&self) -> Option<u64> {
        if self.when.iter().all(Vec::is_empty) {
            return self.parameters.iter().try_fold(1u64, |size, one| size.checked_mul(one.domain.cells()?));
        }
        // Conditions make it a sum over the parents; an upper bound by product is not the size.
        None
    }

    pub fn values(&self, point: &Point) -> Values {
        let named = self.parameters.iter().zip(point);
        named.filter_map(|(one, number)| Some((one.name.clone(), one.domain.value((*number)?)))).collect()
    }

    /// The point that has these values: every active parameter has one inside its domain, and no other has.
    pub fn point(&self, values: &Values) -> Result<Point, SpaceError> {
        if let Some(name) = values.keys().find(|name| !self.parameters.iter().any(|one| one.name == **name)) {
            let names = self.parameters.iter().map(|one| &one.name);
            return Err(SpaceError::Unknown { name: name.clone(), hint: hint(name, names) });
        }
        let mut point = vec![None; self.len()];
        for &at in &self.order {
            let Parameter { name, domain, .. } = &self.parameters[at];
            let value = values.get(name);
            match (self.active(at, &point), value) {
                (true, Some(value)) => {
                    let number = domain.number(value).map_err(|reason| SpaceError::Outside {
                        name: name.clone(),
                        value: value.clone(),
                        reason,
                    })?;
                    point[at] = Some(number);
                }
                (true, None) => return Err(SpaceError::Missing { name: name.clone() }),
                (false, Some(_)) => {
                    return Err(SpaceError::Inactive { name: name.clone(), reason: self.reason(at) });
                }
                (false, None) => {}
            }
        }
        Ok(point)
    }

    /// Whether a point is one of this space.
    pub fn contains(&self, point: &Point) -> bool {
        point.len() == self.len()
            && (0..self.len()).all(|at| match point[at] {
                Some(number) => self.active(at, point) && self.domain(at).contains(number),
                None => !self.active(at, point),
            })
    }

    fn reason(&self, parameter: usize) -> String {
        let conditions = self.parameters[parameter].when.iter().map(|condition| {
            let values: Vec<String> = condition.values.iter().map(Value::to_string).collect();
            format!("{}={}", condition.parent, values.join("|"))
        });
        format!("it needs {}", conditions.collect::<Vec<_>>().join(" and "))
    }
}

fn check_name(name: &str) -> Result<(), SpaceError> {
    let Some(first) = name.chars().next() else { return Err(SpaceError::NoName) };
    let fits = |character: char| character.is_alphanumeric() || "_-.".contains(character);
    if (first.is_alphabetic() || first == '_') && name.chars().all(fits) {
        Ok(())
    } else {
        Err(SpaceError::BadName { name: name.to_owned() })
    }
}

fn ordered(parameters: &[Parameter], when: &[Vec<(usize, Vec<f64>)>]) -> Result<Vec<usize>, SpaceError> {
    let mut order: Vec<usize> = Vec::with_capacity(parameters.len());
    let mut placed = vec![false; parameters.len()];
    while order.len() < parameters.len() {
        let ready = |at: &usize| !placed[*at] && when[*at].iter().all(|(parent, _)| placed[*parent]);
        let next: Vec<usize> = (0..parameters.len()).filter(ready).collect();
        if next.is_empty() {
            let stuck = placed.iter().position(|placed| !placed).unwrap_or_default();
            return Err(SpaceError::Circle { name: parameters[stuck].name.clone() });
        }
        next.iter().for_each(|&at| placed[at] = true);
        order.extend(next);
    }
    Ok(order)
}

/// ` (did you mean …?)` where a known name is near.
fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a String>) -> String {
    if word.is_empty() {
        return String::new();
    }
    let near = known.into_iter().map(|name| (distance(word, name), name)).min();
    match near {
        Some((distance, name)) if distance <= (1 + word.chars().count() / 3).min(word.chars().count() - 1) => {
            format!(" (did you mean `{name}`?)")
        }
        _ => String::new(),
    }
}

fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
