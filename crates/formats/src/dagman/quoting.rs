//! HTCondor's two ways to write arguments and environments: the old one without quotes around everything, and the new one.

/// Words of `arguments`. The new way is all in double quotes: `'` groups, `''` and `""` stand for themselves.
pub(crate) fn arguments(value: &str) -> Result<Vec<String>, &'static str> {
    match new_way(value)? {
        Some(inside) => split_new(&inside),
        // The old way knows only `\"`.
        None => Ok(value.split_whitespace().map(|word| word.replace("\\\"", "\"")).collect()),
    }
}

/// Pairs of `environment`: `"A=1 B='x y'"` or `A=1;B=x y`.
pub(crate) fn environment(value: &str) -> Result<Vec<(String, String)>, &'static str> {
    let pairs = match new_way(value)? {
        Some(inside) => split_new(&inside)?,
        None => value.split(';').map(str::trim).filter(|pair| !pair.is_empty()).map(str::to_owned).collect(),
    };
    pairs
        .into_iter()
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
            _ => Err("each variable is NAME=value"),
        })
        .collect()
}

/// The content of a value that is in double quotes as a whole, with `""` undone.
fn new_way(value: &str) -> Result<Option<String>, &'static str> {
    let value = value.trim();
    let Some(inside) = value.strip_prefix('"') else { return Ok(None) };
    let inside = inside.strip_suffix('"').ok_or("the double quote at the beginning has none at the end")?;
    let mut out = String::with_capacity(inside.len());
    let mut letters = inside.chars();
    while let Some(letter) = letters.next() {
        if letter == '"' && letters.next() != Some('"') {
            return Err("a double quote inside double quotes is written twice");
        }
        out.push(letter);
    }
    Ok(Some(out))
}

fn split_new(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let inside = word.get_or_insert_with(String::new);
                loop {
                    match letters.next() {
                        Some('\'') if letters.peek() == Some(&'\'') => {
                            letters.next();
                            inside.push('\'');
                        }
                        Some('\'') => break,
                        Some(letter) => inside.push(letter),
                        None => return Err("a single quote has no partner"),
                    }
                }
            }
            _ if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_both_ways() {
        for (value, words) in [
            ("a  b\tc", vec!["a", "b", "c"]),
            ("say \\\"x", vec!["say", "\"x"]),
            ("it's", vec!["it's"]),
            (r#""3 simple arguments""#, vec!["3", "simple", "arguments"]),
            (r#""one 'two with spaces' 3""#, vec!["one", "two with spaces", "3"]),
            (r#""one ""two"" 'spacey ''quoted'' argument'""#, vec!["one", "\"two\"", "spacey 'quoted' argument"]),
            (r#""x '' y""#, vec!["x", "", "y"]),
            ("\"\"", vec![]),
        ] {
            assert_eq!(
                arguments(value).as_deref(),
                Ok(words.into_iter().map(str::to_owned).collect::<Vec<_>>().as_slice()),
                "{value}"
            );
        }
        for broken in ["\"a", "\"a 'b\"", "\"a \"b\""] {
            assert!(arguments(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn environments_are_split_both_ways() {
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(environment("A=1; B=x y;"), Ok(pairs(&[("A", "1"), ("B", "x y")])));
        assert_eq!(
            environment(r#""A=1 B='x y' C=""q"" D=""#),
            Ok(pairs(&[("A", "1"), ("B", "x y"), ("C", "\"q\""), ("D", "")]))
        );
        assert!(environment("A").is_err());
    }
}
