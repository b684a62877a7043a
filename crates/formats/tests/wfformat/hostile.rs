//! No text makes the reader panic, hang, or accept what contradicts itself.

use proptest::prelude::*;
use tulpar_formats::wfformat;

const GOOD: &str = r#"{"name": "x", "schemaVersion": "1.4", "wms": {"name": "Makeflow"}, "workflow": {
  "makespan": 3, "machines": [{"nodeName": "m", "cpu": {"count": 2}, "memory": 5}],
  "tasks": [{"name": "a_ID1", "id": "ID1", "runtime": 1, "children": ["b_ID2"], "memory": 3, "bytesRead": 2,
    "files": [{"name": "f", "link": "output", "size": 3}], "machine": "m"},
   {"name": "b_ID2", "id": "ID2", "runtime": 1e3, "parents": ["a_ID1"], "cores": 2,
    "files": [{"name": "f", "path": "p/", "link": "input", "sizeInBytes": 3}]}]}}"#;

#[test]
fn every_truncation_is_refused() {
    for end in (0..GOOD.len()).filter(|end| GOOD.is_char_boundary(*end)) {
        let (instance, findings) = wfformat::read(&GOOD[..end]);
        assert!(instance.is_none() && !findings.is_empty(), "{end}");
    }
    assert!(wfformat::read(GOOD).0.is_some());
}

#[test]
fn deep_nesting_is_refused() {
    let text = format!("{{\"workflow\": {}", "[".repeat(200_000));
    assert!(wfformat::read(&text).0.is_none());
    let text = format!("{{\"strange\": {}", "{\"a\":".repeat(200_000));
    assert!(wfformat::read(&text).0.is_none());
}

#[test]
fn large_numbers_and_long_chains_are_read() {
    let text = GOOD.replace("\"size\": 3", "\"size\": 1e300");
    assert_eq!(wfformat::read(&text).0.expect("an instance").files[0].size, u64::MAX);
    let tasks: Vec<String> = (0..20_000)
        .map(|number: u32| {
            let parent = if number == 0 { String::new() } else { format!("\"t{}\"", number - 1) };
            format!(r#"{{"name": "t{number}", "id": "t{number}", "parents": [{parent}]}}"#)
        })
        .collect();
    let tasks = tasks.join(",");
    let text = format!(r#"{{"schemaVersion": "1.5", "workflow": {{"specification": {{"tasks": [{tasks}]}}}}}}"#);
    let (instance, findings) = wfformat::read(&text);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(instance.expect("an instance").order().len(), 20_000);
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0..GOOD.len(), length in 0usize..40, put in "[\\[\\]{}\",:0-9a-z_\\-]{0,8}") {
        let (start, end) = (at, (at + length).min(GOOD.len()));
        prop_assume!(GOOD.is_char_boundary(start) && GOOD.is_char_boundary(end));
        let text = format!("{}{put}{}", &GOOD[..start], &GOOD[end..]);
        if let (Some(instance), _) = wfformat::read(&text) {
            prop_assert_eq!(instance.order().len(), instance.tasks.len());
            let (again, findings) = wfformat::read(&wfformat::write(&instance));
            prop_assert!(again.is_some(), "{:?}", findings);
            wfformat::convert(&instance);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        wfformat::read(&text);
        wfformat::is_wfformat(&text);
    }
}
