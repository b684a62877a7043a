//! Numbers as they are read in a sentence.

/// `14 %`, `1.5 %`; what is nothing is `0 %`.
pub(super) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent.abs() {
        size if size < 0.05 => "0 %".to_owned(),
        size if size < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        short if short > 0.0 && short < 0.95 => format!("{short:.3} s"),
        some if some < 9.95 => format!("{some:.1} s"),
        many => format!("{many:.0} s"),
    }
}

pub(super) fn cores(milli: u64) -> String {
    match milli {
        1000 => "1 core".to_owned(),
        _ => format!("{} cores", milli as f64 / 1000.0),
    }
}

pub(super) fn number(number: u64) -> String {
    const WORDS: [&str; 10] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    WORDS.get(number as usize).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

/// `a`, `a and b`, `a, b and c`, `a, b and 7 more`.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] if names.len() <= 4 => format!("{} and {last}", most.join(", ")),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_exact_as_one_says_them() {
        assert_eq!([0.1404, 0.0149, 0.0001, -0.2].map(percent), ["14 %", "1.5 %", "0 %", "-20 %"]);
        assert_eq!([1235.2, 3.12].map(seconds), ["1235 s", "3.1 s"]);
        assert_eq!([28_000, 1000, 500].map(cores), ["28 cores", "1 core", "0.5 cores"]);
        assert_eq!([1, 9, 16].map(number), ["one", "nine", "16"]);
        let names = |names: &[&str]| list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["a", "b", "c", "d"]), "a, b, c and d");
        assert_eq!(names(&["a", "b", "c", "d", "e"]), "a, b and 3 more");
    }
}
