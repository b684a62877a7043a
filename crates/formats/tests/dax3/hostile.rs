//! No text makes the reader panic, expand without end, or accept half a file.

use super::{dax, said};
use proptest::prelude::*;
use tulpar_formats::pegasus::convert;
use tulpar_formats::pegasus::dax3;

const GOOD: &str = include_str!("../../testdata/dax3/diamond/diamond.dax");

#[test]
fn entities_of_a_document_type_are_never_expanded() {
    let bomb = "<!DOCTYPE adag [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>]>\
        <adag name='x'><job id='a' name='p'><argument>&b;</argument></job></adag>";
    assert!(dax3::is_dax(bomb));
    let (model, findings) = dax3::read(bomb);
    assert!(model.is_none());
    assert_eq!(findings[0].code, "X002");
    let outside = "<!DOCTYPE adag SYSTEM 'file:///etc/passwd'><adag name='x'/>";
    assert_eq!(dax3::read(outside).1[0].code, "X002");
    let (model, findings) = dax3::read(&dax("<job id='a' name='p'><argument>&other;</argument></job>"));
    assert!(model.is_none());
    assert_eq!(said(&findings), ["X002 the entity `&other;` is not one of XML's own"]);
    assert!(dax3::read(&dax("<job id='&other;' name='p'/>")).0.is_none());
}

#[test]
fn every_truncation_is_refused() {
    for end in (0..GOOD.trim_end().len()).filter(|end| GOOD.is_char_boundary(*end)) {
        let (model, findings) = dax3::read(&GOOD[..end]);
        assert!(model.is_none() && findings.iter().any(|finding| finding.is_error()), "{end}: {findings:?}");
    }
}

#[test]
fn deep_and_wide_texts_are_refused() {
    let deep = dax(&"<job>".repeat(100_000));
    assert_eq!(dax3::read(&deep).1.last().map(|finding| finding.code), Some("X003"));
    let wide: String = (0..100_000).map(|number| format!(" a{number}='x'")).collect();
    assert_eq!(dax3::read(&format!("<adag{wide}/>")).1[0].code, "X003");
    assert_eq!(dax3::read("<adag name='x' name='y'/>").1[0].code, "X001");
    assert_eq!(dax3::read("<adag/><adag/>").1[0].code, "X001");
    assert_eq!(dax3::read("<adag></job></adag>").1[0].code, "X001");
}

#[test]
fn many_jobs_with_the_same_flaw_give_one_finding() {
    let jobs: String = (0..5000).map(|number| format!("<job id='j{number}' name='p' colour='red'/>")).collect();
    let (model, findings) = dax3::read(&dax(&jobs));
    assert_eq!(model.map(|model| model.jobs.len()), Some(5000));
    assert_eq!(findings.len(), 1);
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0..GOOD.len(), length in 0usize..60, put in "[<>/\"'=& a-z;\\[\\]!]{0,8}") {
        let (start, end) = (at, (at + length).min(GOOD.len()));
        prop_assume!(GOOD.is_char_boundary(start) && GOOD.is_char_boundary(end));
        let text = format!("{}{put}{}", &GOOD[..start], &GOOD[end..]);
        if let (Some(model), _) = dax3::read(&text) {
            convert(&model, None);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        dax3::is_dax(&text);
        dax3::read(&text);
        dax3::read(&dax(&text));
    }
}
