//! A space as data, for workflow files and journals: names with short forms, lists of choices, or mappings.
//!
//! ```yaml
//! lr: log(1e-5, 1e-1)
//! opt: [adam, sgd]
//! layers: {int: [1, 8]}
//! momentum: {float: [0, 1], step: 0.1, when: {opt: sgd}}
//! ```
//! It is written as a list of mappings with names, because JSON objects keep no order.

use super::short::parse_domain;
use super::{Condition, Domain, Parameter, Space, Value};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt;

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Form {
    Short(String),
    Choices(Vec<Value>),
    Long(Box<Long>),
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Long {
    name: Option<String>,
    float: Option<(f64, f64)>,
    log: Option<Log>,
    int: Option<(i64, i64)>,
    choice: Option<Vec<Value>>,
    step: Option<f64>,
    when: BTreeMap<String, OneOrMore>,
}

/// `log: true` beside `float:` or `int:`, or bounds of its own.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Log {
    Yes(bool),
    Bounds((f64, f64)),
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Value),
    More(Vec<Value>),
}

impl Long {
    fn parameter(self, name: String) -> Result<Parameter, String> {
        let (log, own) = match self.log {
            Some(Log::Yes(log)) => (log, None),
            Some(Log::Bounds(bounds)) => (true, Some(bounds)),
            None => (false, None),
        };
        let domain = match (self.float.or(own), self.int, self.choice) {
            (Some((low, high)), None, None) => Domain::Float { low, high, log, step: self.step },
            (None, Some((low, high)), None) => {
                let step = self.step.unwrap_or(1.0);
                if step.fract() != 0.0 || step.abs() > 1e15 {
                    return Err(format!("`{name}`: a step of {step} does not fit whole numbers"));
                }
                Domain::Int { low, high, log, step: step as i64 }
            }
            (None, None, Some(choices)) if !log && self.step.is_none() => Domain::Choice(choices),
            (None, None, Some(_)) => return Err(format!("`{name}`: choices have neither step nor log")),
            _ => return Err(format!("`{name}` needs one of float, int, log and choice, as in {{float: [0, 1]}}")),
        };
        let when = self.when.into_iter().map(|(parent, values)| Condition {
            parent,
            values: match values {
                OneOrMore::One(value) => vec![value],
                OneOrMore::More(values) => values,
            },
        });
        Ok(Parameter { name, domain, when: when.collect() })
    }
}

impl Form {
    fn parameter(self, name: String) -> Result<Parameter, String> {
        match self {
            Self::Short(text) => {
                let (domain, when) = parse_domain(&name, &text).map_err(|error| error.to_string())?;
                Ok(Parameter { name, domain, when })
            }
            Self::Choices(choices) => Ok(Parameter { name, domain: Domain::Choice(choices), when: Vec::new() }),
            Self::Long(long) => long.parameter(name),
        }
    }
}

struct SpaceVisitor;

impl<'de> Visitor<'de> for SpaceVisitor {
    type Value = Space;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("parameters with their domains, as in {lr: \"log(1e-5, 1e-1)\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Space, A::Error> {
        let mut parameters = Vec::new();
        while let Some((name, form)) = map.next_entry::<String, Form>()? {
            parameters.push(form.parameter(name).map_err(de::Error::custom)?);
        }
        Space::new(parameters).map_err(de::Error::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Space, A::Error> {
        let mut parameters = Vec::new();
        while let Some(mut long) = items.next_element::<Long>()? {
            let name = long.name.take().unwrap_or_default();
            parameters.push(long.parameter(name).map_err(de::Error::custom)?);
        }
        Space::new(parameters).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpaceVisitor)
    }
}

impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.parameters().iter().map(Written))
    }
}

struct Written<'a>(&'a Parameter);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.0.name)?;
        match &self.0.domain {
            Domain::Float { low, high, log, step } => {
                map.serialize_entry("float", &(low, high))?;
                if *log {
                    map.serialize_entry("log", log)?;
                }
                if let Some(step) = step {
                    map.serialize_entry("step", step)?;
                }
            }
            Domain::Int { low, high, log, step } => {
                map.serialize_entry("int", &(low, high))?;
                if *log {
                    map.serialize_entry("log", log)?;
                }
                if *step != 1 {
                    map.serialize_entry("step", step)?;
                }
            }
            Domain::Choice(choices) => map.serialize_entry("choice", choices)?,
        }
        if !self.0.when.is_empty() {
            let when: BTreeMap<&str, &Vec<Value>> =
                self.0.when.iter().map(|condition| (condition.parent.as_str(), &condition.values)).collect();
            map.serialize_entry("when", &when)?;
        }
        map.end()
    }
}
