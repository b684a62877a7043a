//! Python's own `sqlite3` reads the store and must say the same; `docs/store.md` must tell the truth.

use super::fixture::{Runs, asked, eventful, moved, record, started, submitted, told};
use std::process::Command;

#[test]
fn python_reads_the_same_from_the_file() {
    let runs = Runs::new();
    runs.write("galaxy-1", 1, &eventful("galaxy-1"));
    runs.record("galaxy-1", &record(0, 2));
    let store = runs.synced();
    let program = "
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
ask = lambda query: db.execute(query).fetchall()
print(json.dumps([
    ask('SELECT name, outcome, events, started, ended FROM runs'),
    ask('SELECT job, name, task_set, state, attempts, blame FROM jobs ORDER BY job'),
    ask('SELECT job, n, ending, code, wall_us, host FROM attempts ORDER BY job, n'),
    ask('SELECT job, path, size, substr(digest, 1, 8), attempt FROM outputs ORDER BY job'),
    ask('SELECT count(*), min(seq), max(seq) FROM events'),
    ask(\"SELECT json_extract(data, '$.report.ending.exit') FROM events WHERE kind = 'ended' ORDER BY seq\"),
    ask('PRAGMA integrity_check'),
]))
";
    let output = match Command::new("python3").args(["-c", program]).arg(runs.store_path()).output() {
        Ok(output) => output,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return,
        Err(cause) => panic!("{cause}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let zero = &tulpar_core::ids::Digest::of(b"zero").hex()[..8];
    let one = &tulpar_core::ids::Digest::of(b"one").hex()[..8];
    let expected = serde_json::json!([
        [["galaxy-1", "failed", 15, 1_000_000, 15_000_000]],
        [
            [0, "train[n=0]", "train", "done", 2, null],
            [1, "train[n=1]", "train", "done", 0, null],
            [2, "train[n=2]", "train", "failed", 1, "task"],
            [3, "evaluate[m=1]", "evaluate", "skipped", 0, null],
            [4, "evaluate[m=2]", "evaluate", "waiting", 0, null]
        ],
        [[0, 1, "memory", null, 400, null], [0, 2, "exit", 0, 200, "host-a"], [2, 1, "exit", 3, 600, null]],
        [[0, "m0.bin", 4, zero, 2], [1, "m1.bin", 3, one, null]],
        [[15, 1, 15]],
        [[null], [0], [3]],
        [["ok"]]
    ]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), expected);
    drop(store);
}

#[test]
fn the_documented_tables_are_those_of_the_store_and_the_documented_queries_work() {
    let runs = Runs::new();
    runs.write("galaxy-1", 1, &eventful("galaxy-1"));
    runs.write("galaxy-2", 1, &[started("galaxy-2"), submitted(0, 1), moved(0, 1)]);
    runs.write(
        "tuning-1",
        1,
        &[started("tuning-1"), asked(0, r#"{"lr": 0.1, "layers": 2}"#), submitted(0, 1), told(0, 0.5, &[])],
    );
    drop(runs.synced());
    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let text = include_str!("../../../../docs/store.md");
    let mut documented = Vec::new();
    let mut table = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("### `").and_then(|rest| rest.strip_suffix('`')) {
            table = name.to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let names = row.split('|').next().unwrap();
            for column in names.split(',').map(|name| name.trim().trim_matches('`')) {
                documented.push((table.clone(), column.trim_matches('`').to_owned()));
            }
        }
    }
    let mut statement = sql
        .prepare("SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'")
        .unwrap();
    let mut real: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    real.sort();
    documented.sort();
    assert_eq!(documented, real);

    let mut queries = 0;
    for block in text.split("```sql\n").skip(1) {
        let query = block.split("```").next().unwrap();
        let mut statement = sql.prepare(query).unwrap_or_else(|error| panic!("{query}\n{error}"));
        let found = statement.query_map([], |_| Ok(())).unwrap().count();
        assert!(found > 0, "nothing found by\n{query}");
        queries += 1;
    }
    assert!(queries >= 5);
}
