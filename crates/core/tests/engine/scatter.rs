//! Scatter, gather, grafts and tolerated failures.

use super::Bench;
use tulpar_core::job::Ending;

#[test]
fn shared_variables_pair_and_others_gather() {
    let text = "
workflow: pairs
tasks:
  make: {for: {part: 1..2}, out: {a: 'a{part}'}, run: 'make {a}'}
  use: {for: {part: 1..2}, in: [a], out: {b: 'b{part}'}, run: 'use {a} {b}'}
  all: {in: [b], run: 'all {b}'}
";
    let mut bench = Bench::new(text);
    assert_eq!(bench.begin(), ["start make[part=1].1 on here-01", "start make[part=2].1 on here-01"]);
    let lines = bench.end_with("make[part=2]", Ending::Exit(0), &["a2"]);
    assert_eq!(lines[1..], ["start use[part=2].1 on here-01"]);
    assert_eq!(bench.shell_line("use[part=2]"), "use a2 b2");
    bench.end_with("make[part=1]", Ending::Exit(0), &["a1"]);
    bench.end_with("use[part=2]", Ending::Exit(0), &["b2"]);
    let lines = bench.end_with("use[part=1]", Ending::Exit(0), &["b1"]);
    assert_eq!(lines[1..], ["start all.1 on here-01"]);
    assert_eq!(bench.shell_line("all"), "all b1 b2");
}

const TILES: &str = "
workflow: tiles
tasks:
  cut: {out: {tiles: 'tiles/*.png'}, run: cut}
  label: {for: {tile: cut.tiles}, out: {label: 'labels/{tile.stem}.txt'}, run: 'label {tile} {label}'}
  count: {in: [label], out: {n: n.txt}, run: 'count {label.count} {n}'}
";

#[test]
fn tasks_over_files_are_known_when_the_files_are() {
    let mut bench = Bench::new(TILES);
    assert_eq!(bench.begin(), ["start cut.1 on here-01"]);
    let lines = bench.end_with("cut", Ending::Exit(0), &["tiles/a.png", "tiles/b.png"]);
    assert_eq!(
        lines,
        [
            "end cut Exit(0)",
            "grafted label 2",
            "start label[tile=tiles/a.png].1 on here-01",
            "start label[tile=tiles/b.png].1 on here-01"
        ]
    );
    assert_eq!(bench.shell_line("label[tile=tiles/b.png]"), "label tiles/b.png labels/b.txt");
    bench.end_with("label[tile=tiles/a.png]", Ending::Exit(0), &["labels/a.txt"]);
    bench.end_with("label[tile=tiles/b.png]", Ending::Exit(0), &["labels/b.txt"]);
    assert_eq!(bench.shell_line("count"), "count 2 n.txt");
    assert_eq!(bench.done("count").last().unwrap(), "run Done");
}

#[test]
fn a_dynamic_set_whose_source_failed_is_never_expanded_and_the_run_ends() {
    let mut bench = Bench::new(TILES);
    bench.begin();
    assert_eq!(bench.end("cut", Ending::Exit(1)), ["end cut Exit(1)", "failed cut Task", "run Failed"]);
}

#[test]
fn batches_hold_several_files_each() {
    let text = TILES.replace("cut.tiles}", "cut.tiles by 2}").replace("{tile.stem}", "{tile.index}");
    let mut bench = Bench::new(&text);
    bench.begin();
    let lines = bench.end_with("cut", Ending::Exit(0), &["tiles/a.png", "tiles/b.png", "tiles/c.png"]);
    assert_eq!(lines[1], "grafted label 2");
    assert_eq!(bench.shell_line("label[tile=1]"), "label tiles/a.png tiles/b.png labels/1.txt");
    assert_eq!(bench.shell_line("label[tile=2]"), "label tiles/c.png labels/2.txt");
}

#[test]
fn tolerated_failures_are_left_out_of_what_is_gathered() {
    let text = "
workflow: some
tasks:
  try: {for: {i: 1..3}, failures: 1, out: {r: 'r{i}'}, run: 'try {r}'}
  follow: {for: {i: 1..3}, in: [r], out: {f: 'f{i}'}, run: 'follow {r} {f}'}
  best: {in: [r], run: 'best {r}'}
";
    let mut bench = Bench::on("sites: {here: {nodes: 1, cpus: 9, memory: 8 GB, disk: 1 TB}}", text);
    bench.begin();
    bench.end_with("try[i=1]", Ending::Exit(0), &["r1"]);
    let lines = bench.end("try[i=2]", Ending::Exit(1));
    assert_eq!(lines[1..], ["failed try[i=2] Task", "skipped follow[i=2] because of try[i=2]"]);
    bench.end_with("try[i=3]", Ending::Exit(0), &["r3"]);
    assert_eq!(bench.shell_line("best"), "best r1 r3");
    bench.done("follow[i=1]");
    bench.done("follow[i=3]");
    assert_eq!(bench.done("best").last().unwrap(), "run Done");
}

#[test]
fn one_failure_too_many_is_not_tolerated() {
    let text = "
workflow: some
tasks:
  try: {for: {i: 1..3}, failures: 1, out: {r: 'r{i}'}, run: 'try {r}'}
  best: {in: [r], run: 'best {r}'}
";
    let mut bench = Bench::on("sites: {here: {nodes: 1, cpus: 9, memory: 8 GB, disk: 1 TB}}", text);
    bench.begin();
    bench.end("try[i=1]", Ending::Exit(1));
    let lines = bench.end("try[i=2]", Ending::Exit(1));
    assert_eq!(lines[1..], ["failed try[i=2] Task", "skipped best because of try[i=2]"]);
    assert_eq!(bench.done("try[i=3]").last().unwrap(), "run Failed");
}
