//! Submit descriptions with hostile values: `condor_submit` gives back what was meant, or they were refused before.

use crate::main::dry_run::{Dice, ads, cases, string, words};
use crate::main::harness::Pool;
use tulpar_formats::htcondor::items::Items;
use tulpar_formats::htcondor::submit::{Description, Value, literal_in_queue};

const PIECES: &[&str] = &[
    "a",
    "b9",
    " ",
    "  ",
    "'",
    "''",
    "\"",
    "\"\"",
    "$",
    "$(x)",
    "$$",
    "$$(y)",
    "$ENV(HOME)",
    "%",
    "%d",
    "\\",
    "\\n",
    "#",
    ",",
    ";",
    "=",
    "é",
    "漢",
    "\t",
    "(",
    ")",
    "|",
    "&",
    "{z}",
    "~",
    "*",
    "[1]",
    "-",
    "+",
    "!",
    "`",
    "<",
    ">",
    "?",
    ":",
    "@",
];

fn hostile(dice: &mut Dice) -> String {
    (0..1 + dice.below(5)).map(|_| *dice.one(PIECES)).collect()
}

struct Row {
    arguments: Vec<String>,
    variable: String,
    text: String,
    files: Vec<String>,
}

#[test]
fn hostile_values_come_out_as_they_went_in() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("submit-text");
    let mut checked = 0;
    for case in 0..cases() {
        let mut dice = Dice(case + 1);
        let mut items = Items::new(["args", "env", "text", "in"]);
        let mut rows: Vec<Row> = Vec::new();
        for number in 0..1 + dice.below(4) {
            let arguments: Vec<String> = (0..dice.below(4)).map(|_| hostile(&mut dice)).collect();
            let row = Row {
                arguments,
                variable: hostile(&mut dice),
                text: hostile(&mut dice),
                files: {
                    let name = |dice: &mut Dice| hostile(dice).replace([',', '\t'], "").trim().to_owned() + "x";
                    (0..1 + dice.below(3)).map(|_| name(&mut dice).trim().to_owned()).collect()
                },
            };
            let tag = number.to_string();
            let values = [
                Value::arguments(row.arguments.iter().map(String::as_str)),
                Value::environment([("A", row.variable.as_str()), ("NUMBER", tag.as_str())]),
                Value::string(&row.text),
                Value::files(row.files.iter().map(String::as_str)),
            ];
            // Three dollars before a parenthesis cannot be written; everything else can.
            match items.push(&values) {
                Ok(()) => rows.push(row),
                Err(why) => assert!(format!("{why}").contains("three times"), "{why}"),
            }
        }
        if rows.is_empty() {
            continue;
        }
        let mut description = Description::new()
            .comment("hostile \\")
            .set("executable", "/bin/true")
            .set("transfer_executable", false)
            .set("arguments", Value::reference("args"))
            .set("environment", Value::reference("env"))
            .custom("Text", Value::reference("text"))
            .set("transfer_input_files", Value::reference("in"))
            .set("batch_name", "ends with \\")
            .set("request_memory", 77);
        if case % 2 == 0 {
            // Alone, without items.
            let row = &rows[0];
            description = description
                .arguments(row.arguments.iter().map(String::as_str))
                .environment([("A", row.variable.as_str()), ("NUMBER", "0")])
                .custom("Text", Value::string(&row.text))
                .set("transfer_input_files", Value::files(row.files.iter().map(String::as_str)))
                .queue(1);
            rows.truncate(1);
        } else {
            project.write("items.txt", items.to_text());
            description = description.queue_from(&items, "items.txt");
        }
        let text = description.to_text().expect("what was taken can be written");
        project.write("job.sub", &text);
        let found = ads(&project, "job.sub");
        assert_eq!(found.len(), rows.len(), "case {case}:\n{text}\n{}", items.to_text());
        for (row, ad) in rows.iter().zip(&found) {
            let context = format!("case {case}:\n{text}\n{}", items.to_text());
            let given = ad.get("Arguments").map(|_| string(ad, "Arguments")).unwrap_or_default();
            assert_eq!(words(&given), row.arguments, "{context}");
            let environment = words(&string(ad, "Environment"));
            assert!(environment.contains(&format!("A={}", row.variable)), "{environment:?} {context}");
            assert_eq!(string(ad, "Text"), row.text, "{context}");
            let files = string(ad, "TransferInput");
            assert_eq!(files.split(',').collect::<Vec<_>>(), row.files, "{context}");
            assert_eq!(ad["RequestMemory"], "77", "{context}");
            checked += 1;
        }
    }
    assert!(checked >= cases(), "only {checked} jobs");
}

#[test]
fn what_was_said_of_a_job_is_found_again_by_asking_for_it() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("asked");
    let mut dice = Dice(5);
    let place = project.folder.display().to_string();
    let mut names: Vec<String> =
        [r"a\b", r#"a\"b"#, r"a\\b c", "a\"b"].map(|name| format!("{place}/{name}/end")).to_vec();
    names.extend((0..20).map(|_| format!("{place}/{}/end", hostile(&mut dice))));
    let mut seen = 0;
    for (number, name) in names.iter().enumerate() {
        let description = Description::new()
            .set("executable", "/bin/true")
            .set("hold", true)
            .custom("TulparRun", Value::string(name))
            .queue(1);
        // Some cannot be written, and are refused.
        let Ok(text) = description.to_text() else { continue };
        project.write(&format!("{number}.sub"), &text);
        let cluster = project.submit(&format!("{number}.sub"));
        let asked = format!("TulparRun == {}", literal_in_queue(name));
        let found = project.run(&["condor_q", "-constraint", &asked, "-af", "ClusterId"]).good();
        assert_eq!(found.trim(), cluster.to_string(), "{asked}");
        project.run(&["condor_rm", &cluster.to_string()]).good();
        seen += 1;
    }
    assert!(seen >= 10, "only {seen}");
}
