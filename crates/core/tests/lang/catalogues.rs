//! Catalogues as their users write them.

use std::time::Duration;
use tulpar_core::catalogue::{Catalogue, Copy, DataConfiguration, Link, Operation, Replicated, read, read_after};
use tulpar_core::diagnostic::{Diagnostic, line_column};
use tulpar_core::resources::Gpu;
use tulpar_core::site::SiteModel;
use tulpar_core::units::Bytes;

#[track_caller]
fn good(text: &str) -> Catalogue {
    let (catalogue, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    catalogue
}

/// Each finding as `line:column message (first help)`.
fn said(text: &str, diagnostics: &[Diagnostic]) -> Vec<String> {
    let one = |diagnostic: &Diagnostic| {
        let (line, column) = diagnostic.span.map_or((0, 0), |span| line_column(text, &span));
        format!("{line}:{column} {} ({})", diagnostic.message, diagnostic.help.first().map_or("", String::as_str))
    };
    diagnostics.iter().map(one).collect()
}

const WORLD: &str = r#"
sites:
  local: {storage: results}
  head:
    scratch: {path: /scratch/, servers: http://head:8080/scratch/}
  cluster:
    nodes: 4
    cpus: 24
    memory: 192 GB
    gpus: 1
    data: nonsharedfs
    scratch: {path: /scratch/me, shared: true, servers: ["http://head:8080/scratch", {url: "scp://head/scratch", operation: put}], space: 2 TB}
    staging: head
    containers: [galaxy.sif]
links:
  - {between: [local, cluster], bandwidth: 100 Gbit/s, latency: 31 ms}
  - {from: head, to: cluster, bandwidth: 100 MB/s}
replicas:
  labels.csv:
    at: {local: data/labels.csv, cluster: [/data/labels.csv, "https://mirror/labels.csv"]}
    sha256: E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855
    size: 12 MB
  notes.txt: notes/today.txt
  images/: {at: {local: /data/images}, sha256: {a.jpg: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}}
  "*.npy": {at: {local: clean/}}
  'f\.(\d+)': {regex: true, at: {local: "/parts/[1].bin"}}
transformations:
  galaxy: {at: {cluster: /opt/galaxy, local: {path: bin/galaxy, staged: true}}, container: image}
  tool: {at: {local: "https://example.org/tool"}}
containers:
  image: {image: galaxy.sif, site: local, size: 2.4 GB}
  other: docker://python:3.12
"#;

#[test]
fn a_catalogue_describes_sites_links_copies_programs_and_images() {
    let world = good(WORLD);
    let cluster = world.site("cluster").expect("a site");
    assert_eq!((cluster.nodes.len(), cluster.data), (4, Some(DataConfiguration::NonSharedFs)));
    let scratch = cluster.scratch.as_ref().expect("scratch");
    assert_eq!(
        (scratch.path.as_str(), scratch.shared, scratch.space),
        ("/scratch/me", true, Some(Bytes(2_000_000_000_000)))
    );
    let servers: Vec<_> = scratch.servers.iter().map(|server| (server.url.as_str(), server.operation)).collect();
    assert_eq!(servers, [("http://head:8080/scratch", Operation::All), ("scp://head/scratch", Operation::Put)]);
    assert_eq!(
        (cluster.staging.as_deref(), cluster.containers.as_slice()),
        (Some("head"), &["galaxy.sif".to_owned()][..])
    );
    let head = world.site("head").expect("a site");
    assert!(head.nodes.is_empty() && head.scratch.as_ref().is_some_and(|scratch| scratch.path == "/scratch"));
    let link = |from: &str, to: &str, bandwidth, ms| Link {
        from: from.into(),
        to: to.into(),
        bandwidth: Bytes(bandwidth),
        latency: Duration::from_millis(ms),
    };
    assert_eq!(world.links, [link("local", "cluster", 12_500_000_000, 31), link("head", "cluster", 100_000_000, 0)]);
    let replicas: Vec<_> = world
        .replicas
        .iter()
        .map(|replica| {
            let places: Vec<&str> = replica.copies.iter().map(|copy| copy.place.as_str()).collect();
            (replica.what.clone(), places, replica.sha256.is_some(), replica.size)
        })
        .collect();
    let name = |name: &str| Replicated::Name(name.into());
    assert_eq!(
        replicas,
        [
            (
                name("labels.csv"),
                vec!["data/labels.csv", "/data/labels.csv", "https://mirror/labels.csv"],
                true,
                Some(12_000_000)
            ),
            (name("notes.txt"), vec!["notes/today.txt"], false, None),
            (name("images/a.jpg"), vec!["/data/images/a.jpg"], true, None),
            (Replicated::Directory("images/".into()), vec!["/data/images/"], false, None),
            (Replicated::Pattern(r"([^/]*)\.npy".into()), vec!["clean/[0]"], false, None),
            (Replicated::Pattern(r"f\.(\d+)".into()), vec!["/parts/[1].bin"], false, None),
        ]
    );
    let galaxy = world.transformation("galaxy").expect("a program");
    let places: Vec<_> =
        galaxy.places.iter().map(|place| (place.site.as_str(), place.staged, place.container.as_deref())).collect();
    assert_eq!(places, [("cluster", false, Some("image")), ("local", true, Some("image"))]);
    assert!(world.transformation("tool").expect("a program").places[0].staged, "nothing is installed behind a URL");
    let image = world.container("image").expect("a container");
    assert_eq!(
        (image.image.as_str(), image.site.as_deref(), image.size),
        ("galaxy.sif", Some("local"), Some(2_400_000_000))
    );
    assert_eq!(world.container("docker://python:3.12").map(|container| container.name.as_str()), Some("other"));
}

#[test]
fn all_problems_of_a_catalogue_are_said_at_once() {
    let text = r#"sits: {}
sites:
  a: {nodes: 2, cpus: 4, memory: 16 GB, stagin: b}
  b: {cpus: 4, memory: 16 GB, data: condor_io, staging: q, scratch: {shared: true}}
  d: {cpus: 4, groups: [{cpus: 1, memory: 1 GB}]}
  e: {}
links:
  - {between: [a, b, c], bandwidth: 10 Gbit/s}
  - {between: [local, b], bandwidth: 10 gb/s}
  - {from: local, to: e2}
replicas:
  x: {at: {}}
  ../y: data/y
  z: {at: {locl: z}, sha256: 123}
  "(": {regex: true, at: {local: z}}
  w/: {at: {local: z}, sha256: e3b0}
transformations:
  tool: {at: {local: {staged: true}}}
  other: {at: {local: /bin/x}, container: imge}
containers: {image: {site: local}}
"#;
    let (_, diagnostics) = read(text);
    insta::assert_snapshot!(said(text, &diagnostics).join("\n"), @r#"
    1:1 a catalogue has no key `sits` (did you mean `sites`?)
    3:41 a site has no key `stagin` (did you mean `staging`?)
    4:37 `data` of a site cannot be `condor_io` (did you mean `condorio`?)
    4:57 no site is called `q` (describe it under `sites:`, in this file or in one that is read before it)
    4:69 a directory of a site has no path (write `path: /scratch/me`, as the site's own nodes see it)
    5:7 nodes are described by `groups` or here, not both (move it into the groups)
    6:3 the site `e` says nothing of itself (write for example `{nodes: 2, cpus: 8, memory: 32 GB}`)
    8:15 `between` must be a list of two sites, as in `[local, cluster]` ()
    9:38 `bandwidth`: `gb/s` is not a unit of bandwidth (did you mean `GB/s`?)
    10:5 a link needs two sites and a bandwidth (write for example `{between: [local, cluster], bandwidth: 10 Gbit/s, latency: 5 ms}`)
    10:23 no site is called `e2` (did you mean `e`?)
    12:6 `x` has no copy anywhere (write where it is: `x: {at: {local: data/x}}`)
    13:3 the name of a file leads out of the task's folder: `../y` has `..` in it (write a path below the task's own folder; results are collected from there)
    14:12 no site is called `locl` (did you mean `local`?)
    14:30 this is not a SHA-256 checksum (it is 64 hexadecimal digits, as `sha256sum FILE` prints them)
    15:3 `(` is not a regular expression (without `regex: true`, `*` and `?` are patterns as in file names)
    16:32 the checksums of several files are a map of names: `sha256: {a.jpg: …}` ()
    18:15 where the program is on this site is missing (write `path: bin/galaxy`)
    19:43 no container is called `imge` (did you mean `image`?)
    20:21 the container `image` has no image (write for example `{image: tools.sif}` or `{image: docker://python:3.12}`)
    "#);
}

#[test]
fn a_file_that_declares_nothing_says_what_it_could() {
    let (_, diagnostics) = read("site: {}\n");
    let messages: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(messages, ["a catalogue has no key `site`", "the file declares nothing"]);
}

#[test]
fn later_catalogues_win_by_name_and_may_name_the_sites_of_earlier_ones() {
    let mut first =
        good("sites: {a: {cpus: 1, memory: 1 GB}}\nreplicas: {x: x.csv, y: y.csv}\ncontainers: {i: i.sif}\n");
    let text =
        "sites: {b: {cpus: 1, memory: 1 GB}}\nlinks: [{between: [a, b], bandwidth: 1 GB/s}]\nreplicas: {x: z/x.csv}\n";
    let (mut later, diagnostics) = read_after(text, &first);
    assert_eq!(diagnostics, []);
    assert_eq!(read(text).1.len(), 1, "alone it names a site that nobody describes");
    later.rebase("../shared/");
    first.merge(later);
    let names: Vec<&str> = first.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let copies: Vec<&[Copy]> = first.replicas.iter().map(|replica| replica.copies.as_slice()).collect();
    let local = |place: &str| [Copy { site: "local".into(), place: place.into() }];
    assert_eq!(copies, [local("../shared/z/x.csv"), local("y.csv")]);
}

#[test]
fn sixteen_nodes_with_ninety_six_devices_can_be_pretended() {
    let text = "sites: {summit: {nodes: 16, cpus: 168, memory: 512 GB, disk: 1 TB, gpus: 6, gpu_memory: 16 GB, gpu_capability: 7.0}}";
    let (Catalogue { sites, .. }, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    let nodes = &sites[0].nodes;
    assert_eq!((nodes.len(), nodes[0].name.as_str(), nodes[15].name.as_str()), (16, "summit-01", "summit-16"));
    assert_eq!(nodes.iter().map(|node| node.capacity.milli_cpus / 1000).sum::<u32>(), 2688);
    assert_eq!(nodes.iter().map(|node| node.capacity.gpus.len()).sum::<usize>(), 96);
    assert_eq!(nodes[3].capacity.gpus[5], Gpu { id: "5".into(), memory: Bytes(16_000_000_000), capability: 70 });
}

#[test]
fn groups_of_nodes_make_a_mixed_site() {
    let text = "
sites:
  mixed:
    - {name: fat, nodes: 2, cpus: 64, memory: 1 TB}
    - {cpus: 8, memory: 32 GB}
    - {nodes: 2, cpus: 4, memory: 16 GB, gpus: 1}
";
    let (Catalogue { sites, .. }, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    let names: Vec<&str> = sites[0].nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["fat-01", "fat-02", "mixed-01", "mixed-02", "mixed-03"]);
    assert_eq!(sites[0].nodes[4].capacity.gpus.len(), 1);
}

#[test]
fn a_site_that_cannot_be_read_is_left_out_and_said_why() {
    let text = "sites: {a: {nodes: 2, cpu: 4, memory: 16 GB}, b: {cpus: 2, memory: 16}, c: {nodes: 0, cpus: 1, memory: 1 GB}, d: {cpus: 1}}";
    let (Catalogue { sites, .. }, diagnostics) = read(text);
    assert_eq!(sites, []);
    let messages: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "a site has no key `cpu`",
            "`memory`: `16` has no unit",
            "`c` cannot have 0 nodes with 0 GPUs each",
            "the site `d` does not say `memory` of its nodes",
        ]
    );
    assert_eq!(diagnostics[0].help, ["did you mean `cpus`?"]);
}

const COPIES: &str = r#"
sites:
  head: {storage: {path: /store, servers: ["http://head/in", {url: "http://head/out", operation: put}]}}
  pool: {cpus: 1, memory: 1 GB}
replicas:
  everywhere: {at: {head: /h/f, local: f, pool: ["https://pool/f", /p/f]}}
  here: {at: {head: "https://head/f", local: f}}
  web: {at: {head: [/h/f, "https://head/f"]}}
  served: {at: {head: [/h/f, /store/deep/f]}}
  away: {at: {head: /h/f}}
  images/: {at: {local: /img/}, sha256: {a.jpg: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}}
  images/raw/: {at: {local: /raw/}}
  "*.npy": {at: {local: clean/}}
  part-*: {at: {local: "parts/[1]/data"}}
  docs/one: d/1
  docs/two: d/2
"#;

#[test]
fn the_nearest_copy_is_chosen() {
    let world = good(COPIES);
    let places = |name: &str, site: &str| -> Option<Vec<(String, String)>> {
        let found = tulpar_core::catalogue::resolve(&world, name, site)?;
        Some(found.iter().map(|copy| (copy.name().to_owned(), copy.place().to_owned())).collect())
    };
    for (name, site, expected) in [
        ("everywhere", "pool", "/p/f"),
        ("everywhere", "local", "f"),
        ("everywhere", "head", "/h/f"),
        ("here", "pool", "f"),
        ("here", "head", "https://head/f"),
        ("web", "pool", "https://head/f"),
        ("served", "pool", "http://head/in/deep/f"),
        ("served", "head", "/h/f"),
        ("away", "pool", "/h/f"),
        ("images/b.jpg", "pool", "/img/b.jpg"),
        ("images/raw/b.jpg", "pool", "/raw/b.jpg"),
        ("images/", "pool", "/img/"),
        ("images/x/", "pool", "/img/x/"),
        ("images/*.jpg", "pool", "/img/"),
        ("x.npy", "pool", "clean/x.npy"),
        ("*.npy", "pool", "clean/"),
        ("part-7", "pool", "parts/7/data"),
    ] {
        assert_eq!(places(name, site), Some(vec![(name.to_owned(), expected.to_owned())]), "{name} for {site}");
    }
    let several =
        |name: &str| places(name, "local").map(|found| found.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert_eq!(several("docs/"), Some(vec!["docs/one".to_owned(), "docs/two".to_owned()]));
    assert_eq!(several("docs/t*"), Some(vec!["docs/two".to_owned()]));
    for unknown in ["no", "part-*", "other/", "docs/x*"] {
        assert_eq!(places(unknown, "local"), None, "{unknown}");
    }
}

#[test]
fn tasks_get_the_places_that_the_catalogue_has_for_their_site() {
    let text = "
workflow: bound
data: {labels: {replica: [everywhere, images/]}, greet: x}
defaults: {programs: [greet]}
tasks:
  a: {in: [labels], run: '{greet} {labels}'}
  b: {for: {n: 1..2}, site: pol, run: '{greet} {n}'}
  c: {in: {x: greet}, container: image, run: '{greet} {x}'}
";
    let catalogue = format!(
        "{COPIES}transformations: {{greet: {{at: {{pool: /opt/greet, head: {{path: bin/greet, staged: true, container: other.sif}}}}}}}}\ncontainers: {{image: i.sif}}\n"
    );
    let world = good(&catalogue);
    let bound = |site: &str| {
        let (workflow, findings) = tulpar_core::workflow::read(text, &Default::default());
        assert_eq!(findings, []);
        let mut workflow = workflow.expect("a workflow");
        let findings = tulpar_core::catalogue::bind(&mut workflow, &world, site);
        assert_eq!(said(text, &findings), ["7:29 no site is called `pol` (did you mean `pool`?)"]);
        workflow
    };
    let programs = |workflow: &tulpar_core::workflow::Workflow| -> Vec<_> {
        let one = |task: &tulpar_core::workflow::Task| {
            let environment = &task.settings.environment;
            let inputs = task.inputs.iter().filter(|input| input.program).map(|input| input.name.clone());
            (environment.programs[0].place.clone(), inputs.collect::<Vec<_>>(), environment.container.clone())
        };
        workflow.tasks.iter().map(one).collect()
    };
    let installed = Some("/opt/greet".to_owned());
    let pool = bound("pool");
    assert_eq!(
        programs(&pool),
        [
            (installed.clone(), vec![], None),
            (installed.clone(), vec![], None),
            (installed, vec![], Some("i.sif".to_owned()))
        ]
    );
    assert_eq!(pool.tasks[0].settings.hints.program.as_deref(), Some("greet"));
    let sent = || vec!["greet".to_owned()];
    let other = |image: &str| Some(image.to_owned());
    let local = bound("local");
    assert_eq!(
        programs(&local),
        [(None, sent(), other("other.sif")), (None, sent(), other("other.sif")), (None, sent(), other("i.sif"))]
    );
    // One entry for all tasks that take it along, under a name that nothing else has.
    let names: Vec<&str> = local.data.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["labels", "greet", "greet_program"]);
}

#[test]
fn a_catalogue_of_thirty_thousand_files_is_read_and_asked_quickly() {
    let mut text = "replicas:\n".to_owned();
    for number in 0..30_000 {
        text.push_str(&format!("  f-{number}.jpg: /data/{number}.jpg\n"));
    }
    let world = good(&text);
    let index = tulpar_core::catalogue::Index::new(&world);
    let found = (0..30_000).filter(|number| index.find(&format!("f-{number}.jpg"), "local").is_some()).count();
    assert_eq!((found, index.find("f-*.jpg", "local").map(|files| files.len())), (30_000, Some(30_000)));
}

#[test]
fn a_site_has_named_resources_by_node_and_as_a_whole_and_a_model_of_itself() {
    let world = good(
        "
sites:
  lab:
    groups:
      - {nodes: 2, cpus: 64, memory: 1 GB, numa: 2, resources: {fpga: 2, none: 0}}
      - {cpus: 8, memory: 1 GB}
    shared: {matlab: 5}
  equal: {nodes: 2, cpus: 4, memory: 1 GB, resources: {fpga: 0.5}}
  summit:
    cpus: 168
    memory: 512 GB
    model: {launch_rate: 95 /s, dependency_latency: 7 s, queue_wait: 30 s, bandwidth: 1 GB/s, failure_rate: 1%, eviction_every: 4 h}
",
    );
    let nodes = |site: &str| -> Vec<String> {
        let nodes = &world.site(site).expect("a site").nodes;
        nodes.iter().map(|node| format!("{} {:?} {}", node.name, node.capacity.named, node.capacity.domains)).collect()
    };
    assert_eq!(nodes("lab"), [r#"lab-01 {"fpga": 2000} 2"#, r#"lab-02 {"fpga": 2000} 2"#, "lab-03 {} 0"]);
    assert_eq!(nodes("equal"), [r#"equal-01 {"fpga": 500} 0"#, r#"equal-02 {"fpga": 500} 0"#]);
    let shared = &world.site("lab").expect("a site").named;
    assert_eq!(shared.iter().collect::<Vec<_>>(), [(&"matlab".to_owned(), &5000)]);
    let model = world.site("summit").and_then(|site| site.model.clone()).expect("a model");
    let expected = SiteModel {
        launch_rate: Some(95_000),
        dependency_latency: Duration::from_secs(7),
        queue_wait: Duration::from_secs(30),
        bandwidth: Some(Bytes(1_000_000_000)),
        failure_rate: 10_000,
        eviction_every: Some(Duration::from_secs(4 * 3600)),
    };
    assert_eq!(model, expected);
    let written = serde_json::to_string(&expected).expect("plain data");
    assert_eq!(
        written,
        r#"{"launch_rate":95000,"dependency_latency":7000000,"queue_wait":30000000,"bandwidth":1000000000,"failure_rate":10000,"eviction_every":14400000000}"#
    );
    assert_eq!(serde_json::from_str::<SiteModel>(&written).expect("what was written"), expected);
    assert_eq!(serde_json::from_str::<SiteModel>("{}").expect("nothing said"), SiteModel::default());
}

#[test]
fn slips_in_resources_and_models_of_sites_are_found() {
    let text = "
sites:
  a:
    groups: [{cpus: 1, memory: 1 GB}]
    resources: {matlab: 5}
  b: {cpus: 2, memory: 1 GB, numa: 4, model: {lunch_rate: 5}}
  c: {cpus: 2, memory: 1 GB, shared: {cpus: 4}, model: {launch_rate: 0, failure_rate: 2}}
";
    assert_eq!(
        said(text, &read(text).1),
        [
            "5:5 nodes are described by `groups` or here, not both (move it into the groups)",
            "6:47 `model` has no key `lunch_rate` (did you mean `launch_rate`?)",
            "7:39 `cpus` is no resource with only a name (write `cpus` beside `shared`, not in it)",
            "7:70 `launch_rate`: nothing would ever start (write how many tasks can be started in a second: `95`, `0.5`, or `95 /s`)",
            "7:87 `failure_rate`: `2` is too large (write the part of all tries that fail: `0.01` or `1%`)",
        ]
    );
    let text = "sites: {b: {cpus: 2, memory: 1 GB, numa: 4}}";
    assert_eq!(
        said(text, &read(text).1),
        [
            "1:12 nodes of `b` have 4 memory domains, but 2 cores (`numa` says over how many domains the cores of one node are spread, often 2)"
        ]
    );
}

#[test]
fn every_node_that_is_played_may_have_a_folder_of_its_own() {
    let text = "sites:\n  east: {nodes: 2, cpus: 1, memory: 1 GB, node_folders: disks/}\n  \
                west: {groups: [{name: big, cpus: 8, memory: 64 GB}, {cpus: 1, memory: 1 GB}], node_folders: /disks}\n  \
                none: {cpus: 1, memory: 1 GB}\n";
    let mut world = good(text);
    world.rebase("above");
    let folders: Vec<Option<&str>> =
        world.sites.iter().flat_map(|site| &site.nodes).map(|node| node.folder.as_deref()).collect();
    let expected = ["above/disks/east-01", "above/disks/east-02", "/disks/big-01", "/disks/west-01"];
    assert_eq!(folders, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
}

#[test]
fn a_place_without_nodes_of_its_own_gives_them_no_folders() {
    let text = "sites:\n  pool: {kind: htcondor, node_folders: disks}\n  head: {scratch: /s, node_folders: disks}\n";
    let help = "say `nodes`, `cpus` and `memory` of it; the machines of a pool have disks of their own";
    assert_eq!(
        said(text, &read(text).1),
        [
            format!("2:40 `node_folders`: the site `pool` says nothing of nodes that are played here ({help})"),
            format!("3:37 `node_folders`: the site `head` says nothing of nodes that are played here ({help})")
        ]
    );
}

#[test]
fn a_line_of_a_pool_that_htcondor_does_not_know_is_named() {
    let text = "sites:\n  pool:\n    submit: {acounting_group: physics, +WantGPULab: true, MY.x: 1, request_fpgas: 1}\n    kind: htcondor\n    \
                classes: [{name: all, submit: {requirments: Memory > 1, wibblewobble: 1}}]\n  \
                cluster: {kind: slurm, submit: {--acount: x}}\n";
    assert_eq!(
        said(text, &read(text).1),
        [
            "3:14 HTCondor knows no command `acounting_group`: the line has no effect (did you mean `accounting_group`?)",
            "5:36 HTCondor knows no command `requirments`: the line has no effect (did you mean `requirements`?)",
            "5:61 HTCondor knows no command `wibblewobble`: the line has no effect (an attribute of the job is written `+wibblewobble`)",
        ]
    );
}
