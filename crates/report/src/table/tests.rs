use super::*;
use serde_json::json;

fn table() -> ResultTable {
    let mut table = ResultTable::default();
    let cells = |cells: Value| cells.as_object().cloned().into_iter().flatten();
    table.add(cells(json!({"name": "a, b", "n": 1, "loss": 0.5, "good": true})));
    table.add(cells(json!({"name": "c", "n": 2, "loss": 1, "list": [1], "more": "x"})));
    table
}

#[test]
fn what_a_row_lacks_is_empty() {
    let text = String::from_utf8(table().write(TableFormat::Csv)).expect("text");
    assert_eq!(text, "good,loss,n,name,more\r\ntrue,0.5,1,\"a, b\",\r\n,1,2,c,x\r\n");
    let text = String::from_utf8(table().write(TableFormat::Json)).expect("text");
    let rows: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows[1], json!({"good": null, "loss": 1, "n": 2, "name": "c", "more": "x"}));
}

#[test]
fn the_kind_of_a_file_is_in_its_name() {
    assert_eq!(TableFormat::of("a/b.Parquet"), Some(TableFormat::Parquet));
    assert_eq!(TableFormat::of("a/b"), None);
}

#[test]
fn a_parquet_file_begins_and_ends_as_one() {
    let bytes = table().write(TableFormat::Parquet);
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().expect("four")) as usize;
    assert!(length < bytes.len() - 12);
}
