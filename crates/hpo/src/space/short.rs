//! The short form of a parameter: `lr=log(1e-5,1e-1)`, `x=float(0,1,step=0.1)`, `opt=choice(adam,sgd)`,
//! `momentum=float(0,1) when opt=sgd|rmsprop and layers=2`.

use super::{Condition, Domain, Parameter, SpaceError, Value, hint};

impl Parameter {
    pub fn parse(text: &str) -> Result<Self, SpaceError> {
        let (name, rest) = text.split_once('=').ok_or_else(|| match text.trim() {
            "" => SpaceError::NoName,
            name => SpaceError::NotADomain { name: name.to_owned(), text: String::new() },
        })?;
        let name = name.trim();
        super::check_name(name)?;
        let (domain, when) = parse_domain(name, rest)?;
        Ok(Self { name: name.to_owned(), domain, when })
    }
}

/// A domain and the conditions after it: what stands on the right of the name.
pub(super) fn parse_domain(name: &str, text: &str) -> Result<(Domain, Vec<Condition>), SpaceError> {
    let text = text.trim();
    let nothing = || SpaceError::NotADomain { name: name.to_owned(), text: text.to_owned() };
    let (word, rest) = text.split_once('(').ok_or_else(nothing)?;
    let (inside, after) = closed(rest).ok_or_else(nothing)?;
    let words = split(inside);
    let word = word.trim();
    let domain = match word {
        "choice" | "categorical" => Domain::Choice(words.iter().map(|word| value(word)).collect()),
        "float" | "uniform" => numbers(name, word, &words, false)?,
        "log" | "loguniform" => numbers(name, word, &words, true)?,
        "int" => whole_numbers(name, &words)?,
        _ => {
            let known = ["float", "log", "int", "choice"].map(str::to_owned);
            return Err(SpaceError::UnknownDomain {
                name: name.to_owned(),
                word: word.to_owned(),
                hint: hint(word, &known),
            });
        }
    };
    let when = match after.trim() {
        "" => Vec::new(),
        after => conditions(after.strip_prefix("when ").ok_or_else(nothing)?).ok_or_else(nothing)?,
    };
    Ok((domain, when))
}

/// `a=1|2 and b=x`
fn conditions(text: &str) -> Option<Vec<Condition>> {
    let one = |text: &str| {
        let (parent, values) = text.split_once('=')?;
        let values: Vec<Value> = values.trim_start_matches('=').split('|').map(|word| value(word.trim())).collect();
        Some(Condition { parent: parent.trim().to_owned(), values })
    };
    text.split(" and ").map(one).collect()
}

fn value(word: &str) -> Value {
    let quoted = ['\'', '"'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
    quoted.map_or_else(|| Value::parse(word), |text| Value::Text(text.to_owned()))
}

/// What stands before the closing bracket, and what after it; brackets in quotes do not count.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ')') => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut quote, mut from) = (None, 0);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ',') => {
                words.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = text[from..].trim();
    if !last.is_empty() || !words.is_empty() {
        words.push(last);
    }
    words
}

fn number(name: &str, text: &str) -> Result<f64, SpaceError> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| SpaceError::NotANumber { name: name.to_owned(), text: text.to_owned() })
}

fn whole(name: &str, text: &str) -> Result<i64, SpaceError> {
    if let Ok(whole) = text.parse() {
        return Ok(whole);
    }
    let number = number(name, text)?;
    // 1e3 is how people write a thousand.
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return Ok(number as i64);
    }
    Err(SpaceError::NotWhole { name: name.to_owned(), text: text.to_owned() })
}

/// Bounds, then options.
fn parts<'a>(name: &str, word: &str, words: &[&'a str]) -> Result<(&'a str, &'a str, Options<'a>), SpaceError> {
    let [low, high, options @ ..] = words else {
        return Err(SpaceError::Bounds { name: name.to_owned(), word: word.to_owned() });
    };
    let mut found = Options { log: false, step: None };
    for option in options {
        match option.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("step", step)) => found.step = Some(step),
            Some(("log", "true")) => found.log = true,
            Some(("log", "false")) => {}
            None if *option == "log" => found.log = true,
            _ => {
                return Err(SpaceError::UnknownOption { name: name.to_owned(), word: (*option).to_owned() });
            }
        }
    }
    Ok((low, high, found))
}

struct Options<'a> {
    log: bool,
    step: Option<&'a str>,
}

fn numbers(name: &str, word: &str, words: &[&str], log: bool) -> Result<Domain, SpaceError> {
    let (low, high, options) = parts(name, word, words)?;
    let step = options.step.map(|step| number(name, step)).transpose()?;
    Ok(Domain::Float { low: number(name, low)?, high: number(name, high)?, log: log || options.log, step })
}

fn whole_numbers(name: &str, words: &[&str]) -> Result<Domain, SpaceError> {
    let (low, high, options) = parts(name, "int", words)?;
    let step = options.step.map_or(Ok(1), |step| whole(name, step))?;
    Ok(Domain::Int { low: whole(name, low)?, high: whole(name, high)?, log: options.log, step })
}
