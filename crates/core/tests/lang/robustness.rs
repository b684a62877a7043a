//! Reading never panics, whatever the text.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tulpar_core::catalogue;
use tulpar_core::workflow::{check, read, template};
use tulpar_core::yaml::Document;

fn read_all(text: &str) {
    let (workflow, diagnostics) = read(text, &BTreeMap::from([("parts".to_owned(), "3".to_owned())]));
    for diagnostic in &diagnostics {
        if let Some(span) = diagnostic.span {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} is no place in {text:?}");
        }
        for (span, _) in &diagnostic.related {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} is no place in {text:?}");
        }
    }
    if let Some(workflow) = workflow {
        let (found, _) = catalogue::read("sites: {s: {cpus: 4, memory: 8 GB}}");
        let listings = vec![Vec::new(); workflow.data.len()];
        check(&workflow, Some(&listings), found.sites.first());
        check(&workflow, None, None);
    }
    catalogue::read(text);
}

fn samples() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the folder of cases").map(|entry| entry.expect("a case").path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| std::fs::read_to_string(path).expect("text"))
        .collect()
}

#[test]
fn every_beginning_of_a_workflow_can_be_read() {
    let text = include_str!("../../testdata/check/good-everything.yaml");
    for (end, _) in text.char_indices() {
        read_all(&text[..end]);
    }
}

#[test]
fn a_scalar_knows_the_place_of_its_words_behind_wide_characters() {
    let text = "é: '日本 {x}'\nb: |\n  ö {y}\n";
    let (document, diagnostics) = Document::parse(text);
    assert_eq!(diagnostics, []);
    let document = document.expect("a document");
    let places: Vec<&str> = document
        .root()
        .entries()
        .flat_map(|(_, value)| {
            let words = template::names(value.text().expect("a scalar"));
            words.into_iter().map(move |word| value.span_within(word.span.start as usize, word.span.end as usize))
        })
        .map(|span| &text[span.start as usize..span.end as usize])
        .collect();
    assert_eq!(places, ["{x}", "{y}"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_can_be_read(text in "\\PC{0,200}") {
        read_all(&text);
    }

    #[test]
    fn text_of_the_language_s_own_signs_can_be_read(
        words in proptest::collection::vec(
            prop_oneof![
                Just("workflow"), Just("tasks"), Just("for"), Just("in"), Just("out"), Just("run"), Just("data"), Just("params"), Just("when"),
                Just(": "), Just(":"), Just("\n"), Just("\n  "), Just("\n    "), Just("- "), Just("["), Just("]"), Just("{"), Just("}"),
                Just(", "), Just("&a "), Just("*a"), Just("<<: "), Just("|\n"), Just("'"), Just("\""), Just("1..6"), Just("a by 3"),
                Just("{x}"), Just("é"), Just("x.y"), Just("#"), Just("---\n"), Just("!!str "), Just("\t"), Just("..\n"), Just("16 GB"),
            ],
            0..60,
        ),
    ) {
        read_all(&words.concat());
    }

    #[test]
    fn mutated_workflows_can_be_read(
        sample in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[ -~\\n\\té]{0,4}"), 1..4),
    ) {
        let samples = samples();
        let mut text = sample.get(&samples).clone();
        for (at, length, new) in cuts {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let start = at.index(places.len());
            let end = (start + length.index(6)).min(places.len() - 1);
            text.replace_range(places[start]..places[end], &new);
        }
        read_all(&text);
    }

    #[test]
    fn templates_keep_what_they_do_not_understand(text in "[a-z{}$. ']{0,20}") {
        let echo = |name: &str, attribute: &str| {
            let dot = if attribute.is_empty() { "" } else { "." };
            Some(template::Values::one(format!("{{{name}{dot}{attribute}}}")))
        };
        // With every name standing for itself only doubled braces change.
        let rendered = template::plain(&text, &mut { echo }).expect("every name is known");
        if !text.contains("{{") {
            prop_assert_eq!(rendered, text);
        }
    }
}
