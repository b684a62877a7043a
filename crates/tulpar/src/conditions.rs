//! A `when:` in words, with what its names stood for.

use crate::replay::Replayed;
use tulpar_core::ids::JobId;
use tulpar_core::workflow::{Comparison, Condition, Operand, condition};
use tulpar_exec::driver::path_of;
use tulpar_exec::folder::Project;

/// `metrics.accuracy >= threshold (metrics.accuracy is 0.93, threshold is 0.99)`
pub(crate) fn words(project: &Project, replayed: &Replayed, job: JobId) -> Option<String> {
    let engine = &replayed.engine;
    let when = engine.plan().task(engine.graph().set_of(job)).when.as_ref()?;
    let mut facts: Vec<String> = Vec::new();
    condition::operands(when, &mut |operand: &Operand| {
        let value = match operand {
            Operand::Literal(_) => return,
            Operand::Variable(name) => engine.spec_context().value(job, name).map(|value| value.to_string()),
            Operand::Field { input, pointer } => field(project, replayed, job, input, pointer),
        };
        let fact = match value {
            Some(value) => format!("{} is {value}", name(operand)),
            None => format!("{} is not there", name(operand)),
        };
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    });
    Some(match facts.is_empty() {
        true => text(when),
        false => format!("{} ({})", text(when), facts.join(", ")),
    })
}

fn field(project: &Project, replayed: &Replayed, job: JobId, input: &str, pointer: &str) -> Option<String> {
    let inputs = replayed.engine.spec_context().inputs(job);
    let file = inputs.iter().find(|files| files.name == input)?.files.first()?.clone();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path_of(project, &file)).ok()?).ok()?;
    json.pointer(pointer).map(|value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

fn name(operand: &Operand) -> String {
    match operand {
        Operand::Literal(value) => match value.number() {
            Some(_) => value.to_string(),
            None => format!("'{value}'"),
        },
        Operand::Variable(name) => name.clone(),
        Operand::Field { input, pointer } => format!("{input}{}", pointer.replace('/', ".")),
    }
}

fn text(condition: &Condition) -> String {
    let part = |inner: &Condition| match inner {
        Condition::All(_) | Condition::Any(_) => format!("({})", text(inner)),
        _ => text(inner),
    };
    let joined = |parts: &[Condition], word: &str| parts.iter().map(part).collect::<Vec<_>>().join(word);
    match condition {
        Condition::All(parts) => joined(parts, " and "),
        Condition::Any(parts) => joined(parts, " or "),
        Condition::Not(inner) => format!("not {}", part(inner)),
        Condition::Truth(operand) => name(operand),
        Condition::Compare { left, operator, right } => {
            let operator = match operator {
                Comparison::Equal => "==",
                Comparison::NotEqual => "!=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::Greater => ">",
                Comparison::GreaterOrEqual => ">=",
            };
            format!("{} {operator} {}", name(left), name(right))
        }
    }
}
