//! Catalogues at work: replicas by name, folder and pattern, checksums, programs, and what `sites` says of it all.

use super::harness::Scene;

/// `sha256sum` of "a\n" and of "b\n".
const SUM_A: &str = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7";
const SUM_B: &str = "0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f";

fn scene(data: &str, catalogue: &str) -> Scene {
    let scene = Scene::new(&format!(
        "workflow: named
data: {{files: {{replica: {data}}}}}
tasks:
  list:
    in: [files]
    out: {{listing: listing.txt}}
    run: for f in {{files}}; do echo $f $(cat $f); done > {{listing}}
"
    ));
    scene.write("catalogue.yaml", catalogue);
    scene.write("store/a", "a\n");
    scene.write("store/deep/b", "b\n");
    scene
}

#[test]
fn a_replica_is_seen_under_its_own_name() {
    let scene =
        scene("labels/one.csv", &format!("replicas: {{labels/one.csv: {{at: {{local: store/a}}, sha256: {SUM_A}}}}}"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/listing.txt"), "labels/one.csv a\n");
}

#[test]
fn a_folder_and_a_pattern_mean_every_file_of_theirs() {
    let sums = format!("sha256: {{a: {SUM_A}, deep/b: {SUM_B}}}");
    let folder = scene("raw/", &format!("replicas: {{raw/: {{at: {{local: store}}, {sums}}}}}"));
    folder.tulpar("run").done();
    assert_eq!(folder.read("results/listing.txt"), "raw/a a\nraw/deep/b b\n");
    let selected = scene("raw/*", "replicas: {raw/: {at: {local: store}}}");
    selected.tulpar("run").done();
    assert_eq!(selected.read("results/listing.txt"), "raw/a a\n");
    let pattern = scene(
        "[x-a, x-deep-b]",
        r#"replicas: {x-a: store/a, 'x-(\w+)-(\w+)': {regex: true, at: {local: "store/[1]/[2]"}}}"#,
    );
    pattern.tulpar("run").done();
    assert_eq!(pattern.read("results/listing.txt"), "x-a a\nx-deep-b b\n");
    let listed = scene("\"?\"", "replicas: {\"?\": {at: {local: store/deep/}}}");
    listed.tulpar("run").done();
    assert_eq!(listed.read("results/listing.txt"), "b b\n");
}

#[test]
fn a_copy_with_another_checksum_stops_the_run_and_is_named() {
    let one = scene("one.csv", &format!("replicas: {{one.csv: {{at: {{local: store/a}}, sha256: {SUM_B}}}}}"));
    let said = one.tulpar("run").expect(2);
    let expected = format!(
        "data `files`: one.csv: its SHA-256 is {SUM_A}, and the catalogue says {SUM_B}. The copy store/a is damaged"
    );
    assert!(said.err.contains(&expected), "{said}");
    let sums = format!("sha256: {{a: {SUM_A}, deep/b: {SUM_A}}}");
    let folder = scene("raw/", &format!("replicas: {{raw/: {{at: {{local: store}}, {sums}}}}}"));
    let said = folder.tulpar("run").expect(2);
    assert!(
        said.err.contains(&format!("raw/deep/b: its SHA-256 is {SUM_B}, and the catalogue says {SUM_A}")),
        "{said}"
    );
    // Repaired, it runs; damaged again, the sum that was remembered does not hide it.
    folder.write("store/deep/b", "a\n");
    folder.tulpar("run").done();
    folder.write("store/deep/b", "c\n");
    folder.tulpar("run").expect(2);
}

#[test]
fn a_file_that_has_a_checksum_but_is_gone_is_named() {
    let scene = scene("raw/", &format!("replicas: {{raw/: {{at: {{local: store}}, sha256: {{gone: {SUM_A}}}}}}}"));
    let said = scene.tulpar("check").expect(2);
    assert!(said.err.contains("store/gone: no such file. The catalogue has a checksum of it"), "{said}");
}

#[test]
fn a_name_that_no_catalogue_has_is_pointed_at() {
    let scene = scene("one.csb", "replicas: {one.csv: store/a}");
    insta::assert_snapshot!(scene.tulpar("check"), @r#"
    exit code 2
    --- stderr
    error[W010]: the catalogue knows no replica of `one.csb`
     --> ./workflow.yaml:2:8
      |
    2 | data: {files: {replica: one.csb}}
      |  ^^^^^
      |
      = help: did you mean `one.csv`?
      = help: describe it under `replicas:` in catalogue.yaml, or give its path here

    ./workflow.yaml: 1 errors, 0 warnings
    "#);
}

#[test]
fn a_program_is_installed_on_one_site_and_sent_to_another() {
    let scene = Scene::new(
        "workflow: programs
tasks:
  say:
    for: {n: 1..2}
    programs: [greet]
    out: {words: 'words-{n}.txt'}
    run: \"{greet} {n} > {words}\"
  listed:
    programs: [greet]
    out: {words: listed.txt}
    run: [sh, -c, '\"$0\" list > listed.txt', '{greet}']
",
    );
    scene.write("tools/greet.sh", "#!/bin/sh\necho sent $1\n");
    scene.write("opt/greet", "#!/bin/sh\necho installed $1\n");
    let installed = scene.path("opt/greet");
    std::fs::set_permissions(&installed, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let catalogue = format!(
        "sites:
  far: {{cpus: 2, memory: 4 GB}}
  bare: {{cpus: 2, memory: 4 GB}}
transformations:
  greet: {{at: {{far: {}, local: {{path: tools/greet.sh, staged: true}}}}}}
",
        installed.display()
    );
    scene.write("catalogue.yaml", &catalogue);
    scene.tulpar("run").done();
    assert_eq!(
        (scene.read("results/words-2.txt"), scene.read("results/listed.txt")),
        ("sent 2\n".into(), "sent list\n".into())
    );
    scene.tulpar("run --site far").done();
    assert_eq!(
        (scene.read("results/words-2.txt"), scene.read("results/listed.txt")),
        ("installed 2\n".into(), "installed list\n".into())
    );
    // Nothing can be sent when it is only installed elsewhere.
    scene.write("catalogue.yaml", &catalogue.replace(", local: {path: tools/greet.sh, staged: true}", ""));
    let said = scene.tulpar("check --site bare").expect(2);
    assert!(said.err.contains("`greet`, which `say` runs, is not installed on the site `bare`"), "{said}");
}

const WORLD: &str = "
sites:
  local: {scratch: work, storage: {path: kept, space: 2 TB}}
  head: {scratch: {path: /no/such/scratch, servers: 'http://127.0.0.1:1/scratch'}}
  cluster: {nodes: 2, cpus: 4, memory: 16 GB, data: nonsharedfs, staging: head, containers: [tools.sif]}
links: [{between: [local, cluster], bandwidth: 8 Gbit/s, latency: 31 ms}]
replicas: {a: store/a, b: store/b}
";

#[test]
fn sites_show_stores_links_and_how_files_come() {
    let scene = Scene::empty();
    scene.write("world.yaml", WORLD);
    let view = scene.tulpar("sites --catalogue world.yaml --json").done().json();
    let names: Vec<&str> = view.as_array().unwrap().iter().map(|site| site["site"].as_str().unwrap()).collect();
    assert_eq!(names, ["local", "head", "cluster"]);
    assert!(view[0]["nodes"].as_u64() >= Some(1), "the nodes of this machine: {view}");
    assert_eq!(view[0]["storage"], serde_json::json!({"path": "kept", "space": 2_000_000_000_000_u64}));
    assert_eq!(view[1]["scratch"]["servers"][0]["url"], "http://127.0.0.1:1/scratch");
    let cluster = &view[2];
    assert_eq!((&cluster["data"], &cluster["staging"]), (&"nonsharedfs".into(), &"head".into()));
    assert_eq!(
        cluster["links"][0],
        serde_json::json!({"to": "local", "bytes_per_second": 1_000_000_000, "latency_ms": 31.0})
    );
    let said = scene.tulpar("sites --catalogue world.yaml").done();
    assert!(said.out.contains("cluster: files come by nonsharedfs\ncluster: files are staged at head\n"), "{said}");
}

#[test]
fn the_check_of_sites_tries_stores_servers_and_copies() {
    let scene = Scene::empty();
    scene.write("catalogue.yaml", WORLD);
    scene.write("store/a", "a\n");
    std::fs::create_dir(scene.path("work")).unwrap();
    let view = scene.tulpar("sites check --json").done().json();
    let of = |what: &str| -> Vec<(String, String)> {
        let findings = view["findings"].as_array().unwrap().iter().filter(|finding| finding["what"] == what);
        findings
            .map(|finding| {
                (finding["verdict"].as_str().unwrap().to_owned(), finding["says"].as_str().unwrap().to_owned())
            })
            .collect()
    };
    let verdicts = |what: &str| of(what).into_iter().map(|(verdict, _)| verdict).collect::<Vec<_>>();
    assert_eq!(verdicts("scratch"), ["good", "missing"]);
    assert_eq!(verdicts("storage"), ["good"]);
    assert_eq!(verdicts("server"), ["warn"], "nothing listens on port 1");
    assert!(of("replicas")[0].1.contains("1 of 2 copies here are missing"), "{view}");
}

#[test]
fn a_site_that_only_holds_data_runs_nothing() {
    let scene = Scene::new("workflow: w\ntasks:\n  a: {run: echo}\n");
    scene.write("catalogue.yaml", WORLD);
    let said = scene.tulpar("run --site head").expect(2);
    assert!(said.err.contains("the site `head` has no nodes that could run tasks"), "{said}");
}
