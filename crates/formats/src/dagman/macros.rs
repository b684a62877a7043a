//! `$(name)`, `$(name:default)` and the functions of submit descriptions. Values that differ between the jobs of one
//! `queue` stay symbols, so that a million jobs are one task set.

use super::Surroundings;
use super::paths;
use std::collections::BTreeMap;

/// Begins and ends the name of a symbol. [`super::lines`] keeps these letters out of what users wrote.
pub(crate) const OPEN: char = '\u{e000}';
pub(crate) const CLOSE: char = '\u{e001}';
/// The number of the retry, known only to the attempt.
pub(crate) const RETRY: char = '\u{e002}';
/// The number of the cluster, where nothing has set it.
pub(crate) const CLUSTER: char = '\u{e003}';

const DEEPEST: usize = 32;
const LONGEST: usize = 1 << 20;

/// Macros by their name in small letters, as condor_submit knows them.
#[derive(Clone, Default)]
pub(crate) struct Macros {
    values: BTreeMap<String, String>,
    /// Names that stand for symbols: variables of `queue`.
    symbols: BTreeMap<String, String>,
}

/// What a text came to, and what could not be known.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    pub(crate) undefined: Vec<String>,
    pub(crate) unknown: Vec<String>,
    pub(crate) too_long: bool,
    /// A function looked into the value of a symbol, which only the job knows.
    pub(crate) taken_apart: bool,
}

impl Macros {
    /// `x = $(x) more` means the value that `x` had.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        let own = format!("$({name})");
        let before = self.values.get(&name).cloned().unwrap_or_default();
        let mut value = value.to_owned();
        while let Some(at) = value.to_ascii_lowercase().find(&own) {
            value.replace_range(at..at + own.len(), &before);
            if before.to_ascii_lowercase().contains(&own) || value.len() > LONGEST {
                break;
            }
        }
        self.values.insert(name, value);
    }

    pub(crate) fn symbol(&mut self, name: &str, symbol: &str) {
        self.symbols.insert(name.to_ascii_lowercase(), symbol.to_owned());
    }

    pub(crate) fn is_symbol(&self, name: &str) -> bool {
        self.symbols.contains_key(&name.to_ascii_lowercase())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    pub(crate) fn expand(&self, text: &str, surroundings: &dyn Surroundings) -> Expanded {
        let mut out = Expanded::default();
        self.into(text, surroundings, 0, &mut out);
        out
    }

    fn into(&self, text: &str, surroundings: &dyn Surroundings, depth: usize, out: &mut Expanded) {
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            // Once is enough: macros that double themselves would be followed a thousand million times.
            if out.too_long || depth > DEEPEST || out.text.len() > LONGEST {
                out.too_long = true;
                return;
            }
            let name_end =
                rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
            let function = &rest[..name_end];
            if rest.starts_with("$(") {
                // `$$(attribute)` is filled in by the machine that runs the job.
                let inside = inside(&rest[1..]).unwrap_or("");
                out.unknown.push(format!("$$({inside})"));
                rest = &rest[(inside.len() + 3).min(rest.len())..];
                continue;
            }
            let Some(argument) = inside(&rest[name_end..]) else {
                out.text.push('$');
                continue;
            };
            rest = &rest[name_end + argument.len() + 2..];
            match function {
                "" => self.variable(argument, surroundings, depth, out),
                _ => self.function(function, argument, surroundings, depth, out),
            }
        }
        out.text.push_str(rest);
    }

    fn variable(&self, argument: &str, surroundings: &dyn Surroundings, depth: usize, out: &mut Expanded) {
        let (name, default) = match argument.split_once(':') {
            Some((name, default)) => (name.trim(), Some(default)),
            None => (argument.trim(), None),
        };
        let small = name.to_ascii_lowercase();
        if let Some(symbol) = self.symbols.get(&small) {
            out.text.push(OPEN);
            out.text.push_str(symbol);
            out.text.push(CLOSE);
            return;
        }
        if let Some(value) = self.values.get(&small) {
            return self.into(value, surroundings, depth + 1, out);
        }
        match (small.as_str(), default) {
            ("retry", _) => out.text.push(RETRY),
            ("cluster" | "clusterid", _) => out.text.push(CLUSTER),
            ("process" | "procid" | "step" | "itemindex" | "row" | "node", _) => out.text.push('0'),
            ("dollar", _) => out.text.push('$'),
            (_, Some(default)) => self.into(default, surroundings, depth + 1, out),
            _ => out.undefined.push(name.to_owned()),
        }
    }

    fn function(&self, name: &str, argument: &str, surroundings: &dyn Surroundings, depth: usize, out: &mut Expanded) {
        let mut of = |text: &str| {
            let mut inner = Expanded::default();
            self.into(text, surroundings, depth + 1, &mut inner);
            out.undefined.append(&mut inner.undefined);
            out.unknown.append(&mut inner.unknown);
            out.too_long |= inner.too_long;
            out.taken_apart |= inner.taken_apart || inner.text.contains(OPEN);
            inner.text
        };
        let upper = name.to_ascii_uppercase();
        let result = match upper.as_str() {
            "ENV" => {
                let (variable, default) = argument.split_once(':').unwrap_or((argument, "UNDEFINED"));
                surroundings.variable(variable.trim()).or_else(|| Some(default.to_owned()))
            }
            "INT" => of(&format!("$({argument})")).trim().parse::<i64>().ok().map(|number| number.to_string()),
            "STRING" => Some(of(&format!("$({argument})"))),
            "BASENAME" => Some(paths::last(&of(&format!("$({argument})"))).to_owned()),
            "DIRNAME" => Some(paths::folder(&of(&format!("$({argument})"))).to_owned()),
            // `$F…(name)`: parts of a file name, chosen by the letters that follow in small.
            _ if upper.starts_with('F') && name[1..].bytes().all(|letter| b"fpduwnxbqa".contains(&letter)) => {
                Some(part(&name[1..], &of(&format!("$({argument})"))))
            }
            _ => None,
        };
        match result {
            Some(text) => out.text.push_str(&text),
            None => out.unknown.push(format!("${name}({argument})")),
        }
    }
}

/// The text between `(` at the beginning and its `)`.
fn inside(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('(')?;
    let mut open = 1;
    for (at, letter) in rest.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(&rest[..at]);
        }
    }
    None
}

/// `p` folder, `d` its last part, `n` name without extension, `x` extension, `b` drops the extension's dot or the
/// folder's slash, `q` quotes.
fn part(letters: &str, path: &str) -> String {
    let has = |letter: char| letters.contains(letter);
    let path = path.trim().trim_matches('"');
    let split = path.rfind('/').map_or(0, |slash| slash + 1);
    let (folder, name) = path.split_at(split);
    let dot = name.rfind('.').filter(|dot| *dot > 0).unwrap_or(name.len());
    let (stem, extension) = name.split_at(dot);
    let mut out = String::new();
    if !(has('p') || has('d') || has('n') || has('x')) {
        out.push_str(path);
    }
    if has('p') {
        out.push_str(folder);
    } else if has('d') {
        out.push_str(paths::last(folder));
        out.push('/');
    }
    if has('n') {
        out.push_str(stem);
    }
    if has('x') {
        out.push_str(if has('b') && !has('n') { extension.trim_start_matches('.') } else { extension });
    }
    let out = if has('b') { out.trim_end_matches('/').to_owned() } else { out };
    if has('q') { format!("\"{out}\"") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dagman::Found;

    struct Nothing;

    impl Surroundings for Nothing {
        fn text(&self, _: &str) -> Option<String> {
            None
        }
        fn found(&self, _: &str) -> Found {
            Found::Nothing
        }
        fn matching(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
        fn variable(&self, name: &str) -> Option<String> {
            (name == "HOME").then(|| "/home/x".to_owned())
        }
    }

    #[test]
    fn macros_expand_when_they_are_used() {
        let mut macros = Macros::default();
        macros.set("base", "out_$(n)");
        macros.set("N", "1");
        macros.set("n", "$(n)2");
        macros.set("file", "/a/b/c.tar.gz");
        macros.symbol("Process", "p");
        for (text, expected) in [
            ("$(BASE).txt", "out_12.txt"),
            ("$(none:x$(n))", "x12"),
            ("$ENV(HOME)/$ENV(NO:d)", "/home/x/d"),
            ("$Fnx(file) $Fn(file) $Fp(file) $Fd(file) $Fx(file)", "c.tar.gz c.tar /a/b/ b/ .gz"),
            ("$BASENAME(file) $DIRNAME(file)", "c.tar.gz /a/b"),
            ("100$ $(DOLLAR)x", "100$ $x"),
            ("$(process)", "\u{e000}p\u{e001}"),
            ("$(Cluster)", "\u{e003}"),
        ] {
            assert_eq!(macros.expand(text, &Nothing).text, expected, "{text}");
        }
        assert_eq!(macros.expand("$(nobody)", &Nothing).undefined, ["nobody"]);
        assert_eq!(
            macros.expand("$$(Arch) $RANDOM_CHOICE(1,2)", &Nothing).unknown,
            ["$$(Arch)", "$RANDOM_CHOICE(1,2)"]
        );
    }

    #[test]
    fn macros_that_grow_without_end_are_cut() {
        let mut macros = Macros::default();
        macros.set("a", "$(b)$(b)");
        macros.set("b", "$(a)$(a)");
        assert!(macros.expand("$(a)", &Nothing).too_long);
        macros.set("x", "$(x)$(x)");
        assert_eq!(macros.expand("$(x)", &Nothing).text, "");
        let mut bomb = Macros::default();
        bomb.set("y0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        (1..31).for_each(|step| bomb.set(&format!("y{step}"), &format!("$(y{0})$(y{0})", step - 1)));
        assert!(bomb.expand("$(y30)", &Nothing).too_long);
    }
}
