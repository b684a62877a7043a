//! `when:` — small comparisons over parameters, scatter variables and values in JSON files.
//!
//! `epochs > 5 and not dry`, `metrics.accuracy >= 0.9 or force == true`. It parses and evaluates; which
//! names exist is decided by the caller, and where values come from too.

use super::{Comparison, Condition, Operand, Span, Value};
use thiserror::Error;

/// Why a condition cannot be read, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct ConditionError {
    pub span: Span,
    pub reason: String,
    pub help: Option<String>,
}

/// Why a condition has no answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EvaluationError {
    #[error("there is no value for `{0}`")]
    Absent(String),
    #[error("`{0}` and `{1}` cannot be compared: one is a number, the other is not")]
    Incomparable(Value, Value),
}

/// A name in a condition with its place: `name` or `name.field.field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    pub name: String,
    /// The fields after the first dot; empty for a plain variable.
    pub fields: Vec<String>,
    pub span: Span,
}

/// Reads a condition. Names with fields become [`Operand::Field`], others [`Operand::Variable`]; the
/// mentions say where each stands, so that the caller can check them.
pub fn parse(text: &str) -> Result<(Condition, Vec<Mention>), ConditionError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, mentions: Vec::new(), end: text.len(), depth: 0 };
    let condition = parser.any()?;
    match parser.tokens.get(parser.at) {
        None => Ok((condition, parser.mentions)),
        Some((token, span)) => Err(ConditionError {
            span: *span,
            reason: format!("{} is not expected here", token.describe()),
            help: Some("join comparisons with `and` or `or`".to_owned()),
        }),
    }
}

/// What one operand stands for; `None` when it has no value. Literals are not asked for.
pub type Lookup<'l> = dyn Fn(&Operand) -> Option<Value> + 'l;

pub fn evaluate(condition: &Condition, lookup: &Lookup<'_>) -> Result<bool, EvaluationError> {
    match condition {
        Condition::All(parts) => {
            for part in parts {
                if !evaluate(part, lookup)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Condition::Any(parts) => {
            for part in parts {
                if evaluate(part, lookup)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Condition::Not(part) => evaluate(part, lookup).map(|truth| !truth),
        Condition::Truth(operand) => Ok(value(operand, lookup).is_some_and(|value| is_true(&value))),
        Condition::Compare { left, operator, right } => {
            let absent = |operand: &Operand| EvaluationError::Absent(name(operand));
            let left = value(left, lookup).ok_or_else(|| absent(left))?;
            let right = value(right, lookup).ok_or_else(|| absent(right))?;
            compare(&left, *operator, &right)
        }
    }
}

/// True when the condition has an answer and it is yes.
pub fn holds(condition: &Condition, lookup: &Lookup<'_>) -> bool {
    evaluate(condition, lookup).unwrap_or(false)
}

/// Whether the condition can be true as far as it can be told: `None` when that hangs on what is not known yet.
pub fn tells(condition: &Condition, lookup: &Lookup<'_>, unknown: &dyn Fn(&Operand) -> bool) -> Option<bool> {
    let all = |parts: &[Condition], decisive: bool| {
        let told: Vec<Option<bool>> = parts.iter().map(|part| tells(part, lookup, unknown)).collect();
        if told.contains(&Some(decisive)) {
            return Some(decisive);
        }
        if told.contains(&None) { None } else { Some(!decisive) }
    };
    match condition {
        Condition::All(parts) => all(parts, false),
        Condition::Any(parts) => all(parts, true),
        Condition::Not(part) => tells(part, lookup, unknown).map(|truth| !truth),
        Condition::Truth(operand) if unknown(operand) => None,
        Condition::Compare { left, right, .. } if unknown(left) || unknown(right) => None,
        Condition::Truth(_) | Condition::Compare { .. } => Some(holds(condition, lookup)),
    }
}

/// Calls back for every operand, literals too.
pub fn operands(condition: &Condition, visit: &mut dyn FnMut(&Operand)) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| operands(part, visit)),
        Condition::Not(part) => operands(part, visit),
        Condition::Truth(operand) => visit(operand),
        Condition::Compare { left, right, .. } => {
            visit(left);
            visit(right);
        }
    }
}

fn value(operand: &Operand, lookup: &Lookup<'_>) -> Option<Value> {
    match operand {
        Operand::Literal(value) => Some(value.clone()),
        other => lookup(other),
    }
}

fn name(operand: &Operand) -> String {
    match operand {
        Operand::Literal(value) => value.to_string(),
        Operand::Variable(name) => name.clone(),
        Operand::Field { input, pointer } => format!("{input}{}", pointer.replace('/', ".")),
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Text(text) => !text.is_empty(),
        other => other.number().is_some_and(|number| number != 0.0),
    }
}

fn compare(left: &Value, operator: Comparison, right: &Value) -> Result<bool, EvaluationError> {
    use std::cmp::Ordering;
    let ordering = match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => match (left.number(), right.number()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => {
                return match operator {
                    Comparison::Equal => Ok(false),
                    Comparison::NotEqual => Ok(true),
                    _ => Err(EvaluationError::Incomparable(left.clone(), right.clone())),
                };
            }
        },
    };
    // Not a number compares with nothing, not even itself.
    let Some(ordering) = ordering else { return Ok(operator == Comparison::NotEqual) };
    Ok(match operator {
        Comparison::Equal => ordering == Ordering::Equal,
        Comparison::NotEqual => ordering != Ordering::Equal,
        Comparison::Less => ordering == Ordering::Less,
        Comparison::LessOrEqual => ordering != Ordering::Greater,
        Comparison::Greater => ordering == Ordering::Greater,
        Comparison::GreaterOrEqual => ordering != Ordering::Less,
    })
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    And,
    Or,
    Not,
    Open,
    Close,
    Compare(Comparison),
    Literal(Value),
    Name(Vec<String>),
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Token::And => "`and`".to_owned(),
            Token::Or => "`or`".to_owned(),
            Token::Not => "`not`".to_owned(),
            Token::Open => "`(`".to_owned(),
            Token::Close => "`)`".to_owned(),
            Token::Compare(_) => "a comparison".to_owned(),
            Token::Literal(value) => format!("`{value}`"),
            Token::Name(parts) => format!("`{}`", parts.join(".")),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<(Token, Span)>, ConditionError> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let span = |end: usize| Span { start: start as u32, end: end as u32 };
        let fail = |end: usize, reason: String, help: &str| {
            Err(ConditionError { span: span(end), reason, help: Some(help.to_owned()) })
        };
        let two = text.get(at..at + 2).unwrap_or("");
        let token = match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'(' => Token::Open,
            b')' => Token::Close,
            _ if two == "==" => Token::Compare(Comparison::Equal),
            _ if two == "!=" => Token::Compare(Comparison::NotEqual),
            _ if two == "<=" => Token::Compare(Comparison::LessOrEqual),
            _ if two == ">=" => Token::Compare(Comparison::GreaterOrEqual),
            _ if two == "&&" => return fail(at + 2, "`&&` is not known here".to_owned(), "write `and`"),
            _ if two == "||" => return fail(at + 2, "`||` is not known here".to_owned(), "write `or`"),
            b'!' => return fail(at + 1, "`!` is not known here".to_owned(), "write `not`, or `!=` to compare"),
            b'=' => return fail(at + 1, "`=` does not compare".to_owned(), "write `==`"),
            b'<' => Token::Compare(Comparison::Less),
            b'>' => Token::Compare(Comparison::Greater),
            quote @ (b'"' | b'\'') => match text[at + 1..].find(quote as char) {
                Some(length) => Token::Literal(Value::Text(text[at + 1..at + 1 + length].to_owned())),
                None => return fail(text.len(), "the quotes are not closed".to_owned(), "close them after the text"),
            },
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let end = word_end(bytes, at);
                match &text[at..end] {
                    "and" => Token::And,
                    "or" => Token::Or,
                    "not" => Token::Not,
                    "true" => Token::Literal(Value::Bool(true)),
                    "false" => Token::Literal(Value::Bool(false)),
                    word => Token::Name(word.split('.').map(str::to_owned).collect()),
                }
            }
            byte if byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.') => {
                let end = number_end(bytes, at);
                match Value::from_text(&text[at..end]) {
                    Value::Text(text) => {
                        return fail(end.max(at + 1), format!("`{text}` is not a number"), "put text in quotes");
                    }
                    number => Token::Literal(number),
                }
            }
            _ => {
                let letter = text[at..].chars().next().unwrap_or(' ');
                let help = if letter == '{' || letter == '$' {
                    "names stand without braces here"
                } else {
                    "put text in quotes"
                };
                return fail(at + letter.len_utf8(), format!("`{letter}` is not expected here"), help);
            }
        };
        at += match &token {
            Token::Literal(Value::Text(text)) => text.len() + 2,
            Token::Open | Token::Close | Token::Compare(Comparison::Less | Comparison::Greater) => 1,
            Token::Compare(_) => 2,
            Token::Literal(Value::Bool(_)) | Token::And | Token::Or | Token::Not | Token::Name(_) => {
                word_end(bytes, at) - at
            }
            Token::Literal(_) => number_end(bytes, at) - at,
        };
        found.push((token, span(at)));
    }
    Ok(found)
}

/// `name-with-dash.field.0`
fn word_end(bytes: &[u8], start: usize) -> usize {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    start + bytes[start..].iter().take_while(|byte| part(byte)).count()
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let mut end = start + 1;
    while end < bytes.len() {
        let byte = bytes[end];
        let sign = matches!(byte, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || sign) {
            break;
        }
        end += 1;
    }
    end
}

struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    mentions: Vec<Mention>,
    end: usize,
    depth: usize,
}

/// Deeper parentheses are no condition that a person wrote.
const DEEPEST: usize = 32;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.all()?];
        while self.take(&Token::Or) {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) })
    }

    fn all(&mut self) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.negation()?];
        while self.take(&Token::And) {
            parts.push(self.negation()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn negation(&mut self) -> Result<Condition, ConditionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.unexpected("the condition is nested too deep"));
        }
        let condition = if self.take(&Token::Not) {
            Condition::Not(Box::new(self.negation()?))
        } else if self.take(&Token::Open) {
            let inside = self.any()?;
            if !self.take(&Token::Close) {
                return Err(self.unexpected("a `)` is missing"));
            }
            inside
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Result<Condition, ConditionError> {
        let left = self.operand()?;
        let Some(Token::Compare(operator)) = self.peek().cloned() else { return Ok(Condition::Truth(left)) };
        self.at += 1;
        let right = self.operand()?;
        Ok(Condition::Compare { left, operator, right })
    }

    fn operand(&mut self) -> Result<Operand, ConditionError> {
        let Some((token, span)) = self.tokens.get(self.at).cloned() else {
            return Err(self.unexpected("the condition ends too early"));
        };
        let operand = match token {
            Token::Literal(value) => Operand::Literal(value),
            Token::Name(parts) => {
                let name = parts[0].clone();
                let fields: Vec<String> = parts[1..].to_vec();
                if fields.iter().any(String::is_empty) {
                    return Err(self.unexpected("a dot must stand between names"));
                }
                let operand = if fields.is_empty() {
                    Operand::Variable(name.clone())
                } else {
                    Operand::Field { input: name.clone(), pointer: format!("/{}", fields.join("/")) }
                };
                self.mentions.push(Mention { name, fields, span });
                operand
            }
            other => {
                let reason = format!("{} is not expected here", other.describe());
                return Err(self.unexpected(&reason));
            }
        };
        self.at += 1;
        Ok(operand)
    }

    fn unexpected(&self, reason: &str) -> ConditionError {
        let end = Span { start: self.end as u32, end: self.end as u32 };
        let span = self.tokens.get(self.at).map_or(end, |(_, span)| *span);
        let help = "write for example `epochs > 5 and not dry`, or `metrics.accuracy >= 0.9`";
        ConditionError { span, reason: reason.to_owned(), help: Some(help.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(operand: &Operand) -> Option<Value> {
        match operand {
            Operand::Variable(name) => Some(match name.as_str() {
                "epochs" => Value::Integer(8),
                "dry" => Value::Bool(false),
                "mode" => Value::Text("fast".to_owned()),
                "rate" => Value::from_text("1e-3"),
                _ => return None,
            }),
            Operand::Field { input, pointer } if input == "metrics" && pointer == "/accuracy" => {
                Some(Value::Number(0.93))
            }
            _ => None,
        }
    }

    #[test]
    fn conditions_mean_what_they_say() {
        for (text, expected) in [
            ("epochs > 5 and not dry", true),
            ("epochs > 5 and dry", false),
            ("metrics.accuracy >= 0.9 or dry == true", true),
            ("mode == 'fast'", true),
            ("mode != \"fast\"", false),
            ("not (epochs < 5 or mode == 'slow')", true),
            ("rate < 0.01", true),
            ("epochs == 8.0", true),
            ("unset", false),
            ("not unset", true),
            ("mode == 3", false),
            ("epochs >= -1", true),
            ("dry or epochs > 5 and mode == 'slow'", false),
            ("true", true),
        ] {
            let (condition, _) = parse(text).unwrap();
            assert_eq!(evaluate(&condition, &lookup), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_answer_says_so_and_does_not_hold() {
        let (condition, _) = parse("metrics.loss < 1").unwrap();
        assert_eq!(evaluate(&condition, &lookup).unwrap_err().to_string(), "there is no value for `metrics.loss`");
        assert!(!holds(&condition, &lookup));
        let (condition, _) = parse("mode < 3").unwrap();
        assert!(matches!(evaluate(&condition, &lookup), Err(EvaluationError::Incomparable(..))));
    }

    #[test]
    fn slips_are_answered_with_what_to_write() {
        for (text, reason, help, start) in [
            ("epochs = 5", "`=` does not compare", "write `==`", 7),
            ("a && b", "`&&` is not known here", "write `and`", 2),
            ("a || b", "`||` is not known here", "write `or`", 2),
            ("!a", "`!` is not known here", "write `not`, or `!=` to compare", 0),
            ("{epochs} > 5", "`{` is not expected here", "names stand without braces here", 0),
            ("a == 'x", "the quotes are not closed", "close them after the text", 5),
            ("a b", "`b` is not expected here", "join comparisons with `and` or `or`", 2),
            (
                "a >",
                "the condition ends too early",
                "write for example `epochs > 5 and not dry`, or `metrics.accuracy >= 0.9`",
                3,
            ),
            ("(a", "a `)` is missing", "write for example `epochs > 5 and not dry`, or `metrics.accuracy >= 0.9`", 2),
            ("a > 5x", "`5x` is not a number", "put text in quotes", 4),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                (error.reason.as_str(), error.help.as_deref(), error.span.start),
                (reason, Some(help), start),
                "{text}"
            );
        }
    }
}
