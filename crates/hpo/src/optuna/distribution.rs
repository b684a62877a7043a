//! Domains in Optuna's words.

use crate::space::{Domain, Value};
use serde_json::{Value as Json, json};

/// The text that Optuna keeps for a domain; its keys stand in the order in which Optuna writes them.
pub fn written(domain: &Domain) -> String {
    let number = |value: f64| json!(value).to_string();
    match domain {
        Domain::Float { low, log, step, .. } => format!(
            r#"{{"name": "FloatDistribution", "attributes": {{"step": {}, "low": {}, "high": {}, "log": {log}}}}}"#,
            step.map_or("null".to_owned(), number),
            number(*low),
            number(domain.highest()),
        ),
        Domain::Int { low, log, step, .. } => format!(
            r#"{{"name": "IntDistribution", "attributes": {{"log": {log}, "step": {step}, "low": {low}, "high": {}}}}}"#,
            domain.highest() as i64,
        ),
        Domain::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| json!(choice).to_string()).collect();
            format!(r#"{{"name": "CategoricalDistribution", "attributes": {{"choices": [{}]}}}}"#, choices.join(", "))
        }
    }
}

/// A value from the number that Optuna keeps and the domain that it keeps with it.
pub fn value(distribution: &str, internal: f64) -> Option<Value> {
    let distribution: Json = serde_json::from_str(distribution).ok()?;
    Some(match distribution["name"].as_str()? {
        "CategoricalDistribution" => choice(distribution["attributes"]["choices"].get(internal as usize)?),
        // Older names end alike.
        name if name.starts_with("Int") => Value::Int(internal as i64),
        _ => Value::Float(internal),
    })
}

/// Of JSON; what has no counterpart is its text.
pub(super) fn choice(json: &Json) -> Value {
    match json {
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text.clone()),
        other => Value::Text(other.to_string()),
    }
}
