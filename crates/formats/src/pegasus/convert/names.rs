//! Names that Tulpar's language takes, for things that Pegasus names freely.

use rustc_hash::FxHashMap;
use tulpar_core::workflow::LONGEST_NAME;
use tulpar_core::workflow::template::is_identifier;

/// Gives each thing a name of its own.
pub(crate) struct Names {
    /// Each name that was given, with the next number to try when it is wanted again.
    given: FxHashMap<String, u32>,
}

impl Default for Names {
    fn default() -> Self {
        // What every command can name already.
        Self { given: ["cpus", "gpus"].map(|name| (name.to_owned(), 2)).into_iter().collect() }
    }
}

impl Names {
    pub(crate) fn unique(&mut self, wanted: &str) -> String {
        let name = identifier(wanted);
        let Some(next) = self.given.get_mut(&name) else {
            self.given.insert(name.clone(), 2);
            return name;
        };
        let mut number = *next;
        let mut other = format!("{name}_{number}");
        while self.given.contains_key(&other) {
            number += 1;
            other = format!("{name}_{number}");
        }
        self.given.insert(name, number + 1);
        self.given.insert(other.clone(), 2);
        other
    }
}

/// `train_class_0_7.jpg` becomes `train_class_0_7_jpg`.
fn identifier(text: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = text.chars().map(letter).collect();
    if is_identifier(&name) { name } else { format!("_{name}") }
}

/// The name of a workflow names a folder too.
pub(crate) fn plain(name: &str) -> String {
    let name: String =
        name.chars().map(|letter| if letter == '/' || letter.is_control() { '_' } else { letter }).collect();
    let mut name = if name.is_empty() || name.starts_with(['.', '-']) { format!("workflow{name}") } else { name };
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_an_identifier_of_its_own() {
        let mut names = Names::default();
        for (wanted, given) in [
            ("a.jpg", "a_jpg"),
            ("a/jpg", "a_jpg_2"),
            ("a jpg", "a_jpg_3"),
            ("a_jpg_2", "a_jpg_2_2"),
            ("7", "_7"),
            ("f.å", "f__"),
            ("cpus", "cpus_2"),
            ("", "_"),
        ] {
            assert_eq!(names.unique(wanted), given, "{wanted}");
        }
    }
}
