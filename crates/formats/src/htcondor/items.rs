//! The items file of a `queue … from`: what differs between the jobs of one submit description.
//!
//! Measured on a pool (23.9): blanks and commas part the fields (U+001F does only in the schedd, not in
//! `condor_submit`), and **a job inherits from the first one** what its own item leaves empty, and every
//! environment variable that only the first had. It does not know which variable serves which command.

use super::submit::{After, NOTHING, Unwritable, Value};

/// What stands for a letter that parts fields, and how that macro is defined. Blanks are cut out of a text
/// that only the job's number completes: a macro that is a blank alone is lost when jobs are materialized late.
const BLANKS: [(char, &str, &str); 3] =
    [(',', "$(CM)", "CM = ,"), (' ', "$(SP)", "SP = $SUBSTR(BLANKS,1,1)"), ('\t', "$(TB)", "TB = $SUBSTR(BLANKS,3,1)")];
const TEXT_WITH_BLANKS: &str = "BLANKS = - -\t-$(Step)";

/// One line a job, and one value a variable. An item that HTCondor would mix with the first one is refused:
/// it belongs to another description.
#[derive(Clone, Debug)]
pub struct Items {
    variables: Vec<String>,
    text: String,
    count: usize,
    /// Letters that had to be replaced.
    replaced: Vec<char>,
    /// Of the first item, what others would have of each value.
    first: Vec<After>,
}

impl Items {
    pub fn new<'a>(variables: impl IntoIterator<Item = &'a str>) -> Self {
        let variables = variables.into_iter().map(str::to_owned).collect();
        Self { variables, text: String::new(), count: 0, replaced: Vec::new(), first: Vec::new() }
    }

    /// One more job, with the values of the variables in their order. After an error it is not there.
    pub fn push<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) -> Result<(), Unwritable> {
        let values: Vec<&Value> = values.into_iter().collect();
        if values.len() != self.variables.len() {
            return Err(Unwritable::Fields { expected: self.variables.len(), found: values.len() });
        }
        let mut line = String::new();
        for (at, (name, value)) in self.variables.iter().zip(&values).enumerate() {
            match (self.first.get(at), &value.after) {
                (Some(After::Variables(first)), After::Variables(these)) if first != these => {
                    return Err(Unwritable::Environment(name.clone()));
                }
                (Some(After::Nothing | After::Variables(_)), After::All) => {
                    return Err(Unwritable::Inherited(name.clone()));
                }
                _ => {}
            }
            if at > 0 {
                line.push(',');
            }
            let text = value.text.as_ref().map_err(Clone::clone)?;
            write(text, &mut line, &mut self.replaced);
        }
        if line.ends_with('\\') {
            line.push_str(NOTHING);
        }
        line.push('\n');
        if self.count == 0 {
            self.first = values.into_iter().map(|value| value.after.clone()).collect();
        }
        self.text.push_str(&line);
        self.count += 1;
        Ok(())
    }

    pub fn to_text(&self) -> &str {
        &self.text
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The definitions that the description needs for these items.
    pub(super) fn macros(&self) -> Vec<&'static str> {
        let used = BLANKS.iter().filter(|(letter, ..)| self.replaced.contains(letter));
        let mut macros: Vec<&str> = used.map(|(.., definition)| *definition).collect();
        if self.replaced.iter().any(|letter| *letter != ',') {
            macros.insert(0, TEXT_WITH_BLANKS);
        }
        macros
    }
}

fn write(text: &str, line: &mut String, replaced: &mut Vec<char>) {
    if text.is_empty() {
        line.push_str(NOTHING);
    }
    for letter in text.chars() {
        match BLANKS.iter().find(|(blank, ..)| *blank == letter) {
            Some((blank, instead, _)) => {
                line.push_str(instead);
                if !replaced.contains(blank) {
                    replaced.push(*blank);
                }
            }
            None => line.push(letter),
        }
    }
}
