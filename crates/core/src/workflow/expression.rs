//! Arithmetic that a retry may ask for: `memory * 2 if attempt > 1 else memory`. Numbers, names, and nothing that
//! could run for ever or touch anything.
//!
//! A subset of Python's expressions, because Pegasus' users write those.

use std::fmt;

/// Why an expression means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("`{0}` is not understood")]
    Unexpected(String),
    #[error("it ends too early")]
    TooShort,
    #[error("there is no name `{0}`")]
    Name(String),
    #[error("there is no function `{0}`")]
    Function(String),
    #[error("it is nested too deeply")]
    TooDeep,
    #[error("its value is no number")]
    NoNumber,
}

/// Parentheses and operators inside each other.
const DEEPEST: u32 = 64;

/// The value of an expression. `names` gives those that it may use.
pub fn evaluate(text: &str, names: &dyn Fn(&str) -> Option<f64>) -> Result<f64, ExpressionError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, names };
    let value = parser.conditional()?;
    match parser.tokens.get(parser.at) {
        Some(token) => Err(ExpressionError::Unexpected(token.to_string())),
        None if value.is_finite() => Ok(value),
        None => Err(ExpressionError::NoNumber),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "{number}"),
            Token::Name(name) => f.write_str(name),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

const SIGNS: &[&str] = &["**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || first == '.' {
            let mut end = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(rest.len());
            if rest[end..].starts_with(['e', 'E']) {
                let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
                let digits = rest[end + 1 + sign..].bytes().take_while(u8::is_ascii_digit).count();
                if digits > 0 {
                    end += 1 + sign + digits;
                }
            }
            let number = rest[..end].parse().map_err(|_| ExpressionError::Unexpected(rest[..end].to_owned()))?;
            found.push(Token::Number(number));
            end
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '.'));
            let end = end.unwrap_or(rest.len());
            found.push(Token::Name(rest[..end].to_owned()));
            end
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| ExpressionError::Unexpected(first.to_string()))?;
            found.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
    names: &'t dyn Fn(&str) -> Option<f64>,
}

impl Parser<'_> {
    fn sign(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if wanted.contains(sign) => {
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    fn word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(name)) if name == wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &'static str) -> Result<(), ExpressionError> {
        match self.sign(&[wanted]) {
            Some(_) => Ok(()),
            None => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> ExpressionError {
        match self.tokens.get(self.at) {
            Some(token) => ExpressionError::Unexpected(token.to_string()),
            None => ExpressionError::TooShort,
        }
    }

    /// `x if c else y`. Both sides are evaluated: neither can do anything.
    fn conditional(&mut self) -> Result<f64, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ExpressionError::TooDeep);
        }
        let value = self.either()?;
        let value = if self.word("if") {
            let condition = self.either()?;
            if !self.word("else") {
                return Err(self.unexpected());
            }
            let other = self.conditional()?;
            if condition != 0.0 { value } else { other }
        } else {
            value
        };
        self.depth -= 1;
        Ok(value)
    }

    fn either(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.both()?;
        while self.word("or") {
            let other = self.both()?;
            value = if value != 0.0 { value } else { other };
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.negation()?;
        while self.word("and") {
            let other = self.negation()?;
            value = if value != 0.0 { other } else { value };
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<f64, ExpressionError> {
        let mut negated = false;
        while self.word("not") {
            negated = !negated;
        }
        let value = self.comparison()?;
        Ok(if negated { f64::from(value == 0.0) } else { value })
    }

    fn comparison(&mut self) -> Result<f64, ExpressionError> {
        let mut left = self.sum()?;
        let mut result = None;
        while let Some(sign) = self.sign(&["==", "!=", "<=", ">=", "<", ">"]) {
            let right = self.sum()?;
            let holds = match sign {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            // As in Python, `a < b < c` is both.
            result = Some(result.unwrap_or(true) && holds);
            left = right;
        }
        Ok(result.map_or(left, f64::from))
    }

    fn sum(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let other = self.product()?;
            value = if sign == "+" { value + other } else { value - other };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.signed()?;
        while let Some(sign) = self.sign(&["*", "/", "//", "%"]) {
            let other = self.signed()?;
            value = match sign {
                "*" => value * other,
                "/" => value / other,
                "//" => (value / other).floor(),
                _ => value - other * (value / other).floor(),
            };
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<f64, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ExpressionError::TooDeep);
        }
        let value = match self.sign(&["+", "-"]) {
            Some("-") => -self.signed()?,
            Some(_) => self.signed()?,
            None => {
                let base = self.value()?;
                match self.sign(&["**"]) {
                    Some(_) => base.powf(self.signed()?),
                    None => base,
                }
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn value(&mut self) -> Result<f64, ExpressionError> {
        let Some(token) = self.tokens.get(self.at) else { return Err(ExpressionError::TooShort) };
        match token {
            Token::Number(number) => {
                self.at += 1;
                Ok(*number)
            }
            Token::Sign("(") => {
                self.at += 1;
                let value = self.conditional()?;
                self.expect(")")?;
                Ok(value)
            }
            Token::Sign(_) => Err(self.unexpected()),
            Token::Name(name) => {
                self.at += 1;
                match name.as_str() {
                    "True" => return Ok(1.0),
                    "False" => return Ok(0.0),
                    _ => {}
                }
                if self.sign(&["("]).is_none() {
                    return (self.names)(name).ok_or_else(|| ExpressionError::Name(name.clone()));
                }
                let mut values = Vec::new();
                while self.sign(&[")"]).is_none() {
                    values.push(self.conditional()?);
                    if self.sign(&[","]).is_none() {
                        self.expect(")")?;
                        break;
                    }
                }
                call(name, &values)
            }
        }
    }
}

fn call(name: &str, values: &[f64]) -> Result<f64, ExpressionError> {
    match (name, values) {
        ("min", [first, rest @ ..]) => Ok(rest.iter().copied().fold(*first, f64::min)),
        ("max", [first, rest @ ..]) => Ok(rest.iter().copied().fold(*first, f64::max)),
        ("int", [value]) => Ok(value.trunc()),
        ("float", [value]) => Ok(*value),
        ("abs", [value]) => Ok(value.abs()),
        // To the nearest even number, as in Python.
        ("round", [value]) => Ok(value.round_ties_even()),
        ("ceil" | "math.ceil", [value]) => Ok(value.ceil()),
        ("floor" | "math.floor", [value]) => Ok(value.floor()),
        _ => Err(ExpressionError::Function(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        let names =
            |name: &str| [("memory", 1000.0), ("attempt", 2.0)].iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        evaluate(text, &names).map_err(|error| error.to_string())
    }

    #[test]
    fn expressions_mean_what_they_mean_to_python() {
        for (text, expected) in [
            ("memory * 2", 2000.0),
            ("memory*(1 + attempt)", 3000.0),
            ("2 ** 3 ** 2", 512.0),
            ("-2 ** 2", -4.0),
            ("7 // 2 + 7 % 4 - 1e1", -4.0),
            ("-7 % 4", 1.0),
            ("max(memory, 1500, 3) if attempt >= 2 else memory", 1500.0),
            ("1 if attempt > 5 else 2 if attempt > 1 else 3", 2.0),
            ("int(memory * 1.0015)", 1001.0),
            ("round(2.5) + round(3.5)", 6.0),
            ("1 < attempt < 3", 1.0),
            ("not attempt == 2 or attempt == 2 and 5", 5.0),
            ("math.ceil(.5)", 1.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, error) in [
            ("__import__('os')", "`'` is not understood"),
            ("exec(1)", "there is no function `exec`"),
            ("disk + 1", "there is no name `disk`"),
            ("memory +", "it ends too early"),
            ("memory 2", "`2` is not understood"),
            ("1 / 0", "its value is no number"),
            ("[1][0]", "`[` is not understood"),
            ("1 if 2", "it ends too early"),
            ("", "it ends too early"),
        ] {
            assert_eq!(value(text), Err(error.to_owned()), "{text}");
        }
        assert_eq!(value(&"(".repeat(5000)), Err("it is nested too deeply".to_owned()));
        assert_eq!(value(&"-".repeat(5000)), Err("it is nested too deeply".to_owned()));
        assert_eq!(value(&"1 if 1 else ".repeat(5000)), Err("it is nested too deeply".to_owned()));
    }
}
