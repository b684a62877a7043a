//! `${NAME}` in the raw text of workflows and catalogues, put in place before YAML is read, as Pegasus does it.

use super::Properties;
use super::codes::VARIABLE;
use super::decoder::Decoder;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Span;

/// The values of variables. Pegasus looks them up whatever the case of their letters.
pub(super) struct Variables {
    exact: FxHashMap<String, String>,
    folded: FxHashMap<String, String>,
}

impl Variables {
    pub(super) fn new(environment: &BTreeMap<String, String>, properties: &Properties) -> Self {
        let own = properties.below("env.").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let exact: FxHashMap<String, String> =
            environment.iter().map(|(name, value)| (name.clone(), value.clone())).chain(own).collect();
        let folded = exact.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        Self { exact, folded }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.exact.get(name).or_else(|| self.folded.get(&name.to_lowercase())).map(String::as_str)
    }
}

/// The text with every `${NAME}` replaced and `\${NAME}` unescaped; a variable that is not set is an error
/// and stays as it is.
pub(super) fn expand<'t>(text: &'t str, variables: &Variables, decoder: &mut Decoder<'_>) -> Cow<'t, str> {
    if !text.contains("${") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 256);
    let mut rest = 0;
    while let Some(found) = text[rest..].find("${") {
        let open = rest + found;
        let line_end = text[open..].find('\n').map_or(text.len(), |end| open + end);
        let Some(close) = text[open..line_end].find('}').map(|end| open + end) else {
            out.push_str(&text[rest..open + 2]);
            rest = open + 2;
            continue;
        };
        let name = &text[open + 2..close];
        if text[rest..open].ends_with('\\') {
            out.push_str(&text[rest..open - 1]);
            out.push_str(&text[open..=close]);
        } else {
            out.push_str(&text[rest..open]);
            match variables.get(name) {
                Some(value) => out.push_str(value),
                None => {
                    // The place in the text that findings are shown in, which is the expanded one.
                    let span = Span { start: out.len() as u32, end: (out.len() + close + 1 - open) as u32 };
                    out.push_str(&text[open..=close]);
                    decoder.report(
                        Diagnostic::error(VARIABLE, span, format!("the variable `{name}` is not set"))
                            .help(format!("set it in the environment: `{name}=… tulpar run …`, or write `env.{name}=…` into pegasus.properties"))
                            .help(format!("for the text itself write `\\${{{name}}}`")),
                    );
                }
            }
        }
        rest = close + 1;
    }
    out.push_str(&text[rest..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::diagnostic::Findings;

    #[test]
    fn only_braced_variables_are_put_in_place() {
        let environment = BTreeMap::from([("HOME_DIR".to_owned(), "/home/x".to_owned())]);
        let properties = Properties::parse("env.DATA = /data");
        let variables = Variables::new(&environment, &properties);
        let mut findings = Findings::default();
        let mut decoder = Decoder::new(&mut findings, None);
        for (text, expanded) in [
            ("pfn: ${HOME_DIR}/a", "pfn: /home/x/a"),
            ("pfn: ${home_dir}/a", "pfn: /home/x/a"),
            ("$HOME_DIR ${DATA}${DATA}", "$HOME_DIR /data/data"),
            ("\\${HOME_DIR}", "${HOME_DIR}"),
            ("${open\n}", "${open\n}"),
            ("é${DATA}é", "é/dataé"),
        ] {
            assert_eq!(expand(text, &variables, &mut decoder), expanded, "{text}");
        }
        assert_eq!(findings.finish(), []);
    }

    #[test]
    fn a_variable_that_is_not_set_is_an_error_at_its_place() {
        let variables = Variables::new(&BTreeMap::new(), &Properties::default());
        let mut findings = Findings::default();
        assert_eq!(expand("a: ${NO}", &variables, &mut Decoder::new(&mut findings, None)), "a: ${NO}");
        let found = findings.finish();
        assert_eq!(found[0].message, "the variable `NO` is not set");
        assert_eq!(found[0].span, Some(Span { start: 3, end: 8 }));
    }
}
