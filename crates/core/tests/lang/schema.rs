//! The published JSON Schema and the documentation against the decoder's own tables.

use serde_json::Value;
use std::collections::BTreeSet;
use tulpar_core::diagnostic::CODES;
use tulpar_core::workflow::keys;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/workflow.schema.json")).expect("the schema is JSON")
}

fn catalogue_schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/catalogue.schema.json")).expect("the schema is JSON")
}

fn properties(schema: &Value, pointer: &str) -> BTreeSet<String> {
    let object = schema.pointer(pointer).unwrap_or_else(|| panic!("the schema has {pointer}"));
    assert_eq!(object["additionalProperties"], Value::Bool(false), "{pointer} must refuse unknown keys");
    object["properties"].as_object().expect("an object").keys().cloned().collect()
}

fn table(tables: &[&[&str]]) -> BTreeSet<String> {
    tables.iter().flat_map(|table| table.iter().map(|key| key.to_string())).collect()
}

#[test]
fn the_schema_has_exactly_the_keys_of_the_decoder() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(properties(&schema, ""), table(&[keys::TOP]));
    assert_eq!(properties(&schema, "/$defs/task"), table(&[keys::TASK, keys::SETTINGS]));
    assert_eq!(properties(&schema, "/$defs/settings"), table(&[keys::SETTINGS]));
    assert_eq!(properties(&schema, "/$defs/retryMap"), table(&[keys::RETRY]));
    assert_eq!(properties(&schema, "/$defs/checkpointMap"), table(&[keys::CHECKPOINT]));
    assert_eq!(properties(&schema, "/$defs/outputMap"), table(&[keys::OUTPUT]));
    assert_eq!(properties(&schema, "/$defs/dataMap"), table(&[keys::DATA]));
    assert_eq!(properties(&schema, "/$defs/inputMap"), table(&[keys::INPUT]));
    assert_eq!(properties(&schema, "/$defs/clusterMap"), table(&[keys::CLUSTER]));
    assert_eq!(properties(&schema, "/$defs/variant"), table(&[keys::REQUEST, keys::VARIANT]));
    assert!(keys::REQUEST.iter().all(|key| keys::SETTINGS.contains(key)), "every request can be a setting");
}

#[test]
fn the_schema_of_catalogues_has_exactly_the_keys_of_the_decoder() {
    let schema = catalogue_schema();
    assert_eq!(properties(&schema, ""), table(&[keys::CATALOGUE]));
    for (definition, tables) in [
        ("site", &[keys::NODES, keys::SITE][..]),
        ("nodes", &[keys::NODES]),
        ("storeMap", &[keys::STORE]),
        ("serverMap", &[keys::SERVER]),
        ("link", &[keys::LINK]),
        ("replica", &[keys::REPLICA]),
        ("transformation", &[keys::TRANSFORMATION]),
        ("installation", &[keys::INSTALLATION]),
        ("container", &[keys::CONTAINER]),
        ("model", &[keys::MODEL]),
    ] {
        assert_eq!(properties(&schema, &format!("/$defs/{definition}")), table(tables), "{definition}");
    }
}

#[test]
fn the_documentation_of_catalogues_explains_every_key() {
    let page = include_str!("../../../../docs/sites.md");
    for key in table(&[
        keys::CATALOGUE,
        keys::NODES,
        keys::SITE,
        keys::STORE,
        keys::SERVER,
        keys::LINK,
        keys::REPLICA,
        keys::TRANSFORMATION,
        keys::INSTALLATION,
        keys::CONTAINER,
        keys::MODEL,
    ]) {
        assert!(page.contains(&format!("`{key}")), "docs/sites.md does not mention `{key}`");
    }
}

#[test]
fn every_catalogue_of_the_documentation_reads_without_a_finding() {
    let page = include_str!("../../../../docs/sites.md");
    let blocks: Vec<&str> = page.split("```yaml catalogue\n").skip(1).collect();
    assert!(blocks.len() >= 3, "{} catalogues", blocks.len());
    for block in blocks {
        let text = block.split("```").next().unwrap_or("");
        assert_eq!(tulpar_core::catalogue::read(text).1, [], "{text}");
    }
}

#[test]
fn the_settings_of_tasks_and_of_groups_are_described_alike() {
    let schema = schema();
    for key in keys::SETTINGS {
        let of = |definition: &str| schema.pointer(&format!("/$defs/{definition}/properties/{key}")).cloned();
        assert_eq!(of("task"), of("settings"), "{key}");
    }
}

#[test]
fn every_reference_inside_the_schema_leads_somewhere() {
    fn walk(value: &Value, root: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref") {
                    let pointer = target.strip_prefix('#').expect("references stay inside");
                    assert!(root.pointer(pointer).is_some(), "{target}");
                }
                map.values().for_each(|value| walk(value, root));
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, root)),
            _ => {}
        }
    }
    for schema in [schema(), catalogue_schema()] {
        walk(&schema, &schema);
    }
}

#[test]
fn the_documentation_explains_every_key_and_every_code() {
    let page = include_str!("../../../../docs/workflow.md");
    for key in table(&[keys::TOP, keys::TASK, keys::SETTINGS]) {
        assert!(page.contains(&format!("| `{key}` |")), "docs/workflow.md has no row for `{key}`");
    }
    for key in table(&[
        keys::RETRY,
        keys::CHECKPOINT,
        keys::OUTPUT,
        keys::DATA,
        keys::INPUT,
        keys::CLUSTER,
        keys::RETRY_ON,
        keys::BEST,
    ]) {
        assert!(page.contains(&format!("`{key}")), "docs/workflow.md does not mention `{key}`");
    }
    for (code, meaning) in CODES {
        assert!(
            page.contains(&format!("| {code} | {meaning} |")),
            "docs/workflow.md has no row `| {code} | {meaning} |`"
        );
    }
}

#[test]
fn every_complete_example_of_the_documentation_reads_without_a_finding() {
    let page = include_str!("../../../../docs/workflow.md");
    let mut count = 0;
    for block in page.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap_or("");
        if !text.starts_with("workflow:") {
            panic!("an example that is no whole workflow must be fenced as `yaml fragment`:\n{text}");
        }
        let (workflow, mut diagnostics) = tulpar_core::workflow::read(text, &Default::default());
        diagnostics.extend(workflow.iter().flat_map(|workflow| tulpar_core::workflow::check(workflow, None, None)));
        assert_eq!(diagnostics, [], "{text}");
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}
