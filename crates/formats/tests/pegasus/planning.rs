//! What Pegasus files tell a planner: hints of tasks, the catalogue, the properties.

use super::conversion::errors;
use std::collections::BTreeMap;
use std::time::Duration;
use tulpar_core::catalogue::{Copy, DataConfiguration, FileServer, Installation, Operation, Replica, Replicated};
use tulpar_core::ids::Digest;
use tulpar_core::workflow::{ClusterHint, FileSource, Hints};
use tulpar_formats::pegasus::{
    self, CleanupStrategy, IntegrityChecking, Model, PlanArguments, Text, Texts, TransferClusters,
};

const TRANSFORMATIONS: &str = r#"
transformations:
- {namespace: ns, name: x, version: '2', sites: [{name: local, pfn: "file:///bin/x", type: stageable, bypass: true, container: box}], profiles: {pegasus: {clusters.size: 3}}}
- {name: y, sites: [{name: pool, pfn: /bin/y, type: installed}]}
containers:
- {name: box, type: singularity, image: "file:///images/box.sif", image.site: pool, metadata: {size: 1000}}
"#;

fn read(workflow: &str, replicas: &str, sites: &str, properties: &str) -> Model {
    let texts = Texts {
        workflow: Text { name: "workflow.yml", text: workflow },
        replicas: Some(Text { name: "replicas.yml", text: replicas }),
        transformations: Some(Text { name: "transformations.yml", text: TRANSFORMATIONS }),
        sites: Some(Text { name: "sites.yml", text: sites }),
        properties: Some(Text { name: "pegasus.properties", text: properties }),
    };
    let reading = pegasus::read(&texts, &BTreeMap::new());
    assert_eq!(reading.findings, []);
    reading.model.expect("a model")
}

#[test]
fn a_run_time_need_not_be_whole_seconds() {
    let workflow = |seconds: &str| {
        format!(
            "{{pegasus: '5.0', name: w, jobs: [{{id: a, name: x, uses: [], profiles: {{pegasus: {{runtime: '{seconds}'}}}}}}]}}"
        )
    };
    let runtime = |seconds: &str| {
        let (converted, _) = pegasus::convert(&read(&workflow(seconds), "", "", ""), None);
        converted.tasks[0].settings.hints.runtime
    };
    assert_eq!(runtime("13.49"), Some(Duration::from_millis(13_490)));
    assert_eq!(runtime("90"), Some(Duration::from_secs(90)));
    assert_eq!(runtime("-1"), None);
}

#[test]
fn profiles_become_hints() {
    let workflow = r#"
pegasus: "5.0"
name: hinted
jobs:
- {id: a, namespace: ns, name: x, version: '2', uses: [], profiles: {pegasus: {runtime: 90, label: one, clusters.num: 2, clusters.maxruntime: 600}, selector: {execution.site: pool}}}
- {id: b, name: y, uses: [], profiles: {pegasus: {group_of: two}}}
"#;
    let (converted, _) = pegasus::convert(&read(workflow, "", "", ""), None);
    let hints: Vec<&Hints> = converted.tasks.iter().map(|task| &task.settings.hints).collect();
    let first = Hints {
        runtime: Some(Duration::from_secs(90)),
        label: Some("one".into()),
        program: Some("ns::x:2".into()),
        site: Some("pool".into()),
        cluster: Some(ClusterHint { size: Some(3), count: Some(2), runtime: Some(Duration::from_secs(600)) }),
    };
    assert_eq!(hints, [&first, &Hints { program: Some("y".into()), ..Hints::default() }]);
    // The name of the label is the user's to choose.
    let named = read(workflow, "", "", "pegasus.clusterer.label.key = group_of");
    let (converted, findings) = pegasus::convert(&named, None);
    assert_eq!(errors(&findings), [] as [&tulpar_core::diagnostic::Diagnostic; 0]);
    assert_eq!(converted.tasks[1].settings.hints.label.as_deref(), Some("two"));
    assert_eq!(converted.tasks[0].settings.hints.label, None);
}

#[test]
fn an_input_that_bypasses_the_staging_site_is_no_entry_with_others() {
    let workflow = r#"
pegasus: "5.0"
name: bypassed
jobs:
- {id: a, name: y, uses: [{lfn: f, type: input, bypass: true}, {lfn: g, type: input}, {lfn: h, type: input}]}
- {id: b, name: y, uses: [{lfn: g, type: input}, {lfn: h, type: input}]}
- {id: c, namespace: ns, name: x, version: '2', uses: []}
"#;
    let replicas = "replicas: [{lfn: '.*', regex: true, pfns: [{site: local, pfn: '/d/[0]'}]}]";
    let bypassed = |properties: &str| -> Vec<Vec<(String, bool, bool)>> {
        let (converted, _) = pegasus::convert(&read(workflow, replicas, "", properties), None);
        let of = |task: &tulpar_core::workflow::Task| {
            let inputs = task.inputs.iter().map(|input| (input.name.clone(), input.bypass, input.program));
            inputs.collect::<Vec<_>>()
        };
        assert!(
            converted
                .tasks
                .iter()
                .flat_map(|task| &task.inputs)
                .all(|input| matches!(input.source, FileSource::Data(_)))
        );
        converted.tasks.iter().map(of).collect()
    };
    let named = |name: &str, bypass, program| (name.to_owned(), bypass, program);
    assert_eq!(
        bypassed(""),
        [
            vec![named("f", true, false), named("shared_files", false, false)],
            vec![named("shared_files", false, false)],
            vec![named("staged_ns-x-2", true, true)],
        ]
    );
    let all = bypassed("pegasus.transfer.bypass.input.staging = true");
    assert!(all.iter().flatten().all(|(_, bypass, _)| *bypass), "{all:?}");
}

#[test]
fn the_catalogues_are_one_catalogue() {
    let workflow = "pegasus: '5.0'\nname: known\njobs: [{id: a, name: y, uses: []}]\n";
    let sum = "a".repeat(64);
    let replicas = format!(
        "replicas:\n- {{lfn: f, pfns: [{{site: local, pfn: 'file:///d/f'}}, {{site: web, pfn: 'http://h/f'}}], checksum: {{sha256: {sum}}}, metadata: {{size: 7}}}}\n- {{lfn: 'n(.*)', regex: true, pfns: [{{site: local, pfn: '/d/[1]'}}]}}\n"
    );
    let sites = r#"
sites:
- name: pool
  directories:
  - {type: sharedScratch, path: /scratch, sharedFileSystem: true, fileServers: [{url: "http://h/scratch", operation: get}, {url: "scp://h/scratch", operation: put}]}
  - {type: localStorage, path: /keep, fileServers: [{url: "file:///keep", operation: all}]}
  profiles: {pegasus: {data.configuration: nonsharedfs, auxillary.local: true, stagein.clusters: 4}}
"#;
    let model = read(workflow, &replicas, sites, "");
    let known = pegasus::catalogue(&model);
    let names: Vec<&str> = known.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["pool", "local", "condorpool"]);
    let pool = known.site("pool").expect("a site");
    assert_eq!(pool.data, Some(DataConfiguration::NonSharedFs));
    let scratch = pool.scratch.as_ref().expect("a scratch");
    assert_eq!((scratch.path.as_str(), scratch.shared), ("/scratch", true));
    assert_eq!(
        scratch.servers,
        [
            FileServer { url: "http://h/scratch".into(), operation: Operation::Get },
            FileServer { url: "scp://h/scratch".into(), operation: Operation::Put },
        ]
    );
    assert_eq!(pool.storage.as_ref().map(|store| (store.path.as_str(), store.shared)), Some(("/keep", false)));
    let copy = |site: &str, place: &str| Copy { site: site.into(), place: place.into() };
    assert_eq!(
        known.replicas,
        [
            Replica {
                what: Replicated::Name("f".into()),
                copies: vec![copy("local", "/d/f"), copy("web", "http://h/f")],
                sha256: Digest::parse(&sum),
                size: Some(7),
            },
            Replica {
                what: Replicated::Pattern("n(.*)".into()),
                copies: vec![copy("local", "/d/[1]")],
                sha256: None,
                size: None,
            },
        ]
    );
    let program = &known.transformations[0];
    assert_eq!(program.name, "ns::x:2");
    let place =
        Installation { site: "local".into(), place: "/bin/x".into(), staged: true, container: Some("box".into()) };
    assert_eq!(program.places, [place]);
    let image = &known.containers[0];
    assert_eq!(
        (image.image.as_str(), image.site.as_deref(), image.size),
        ("/images/box.sif", Some("pool"), Some(1000))
    );
    let planning = pegasus::planning(&model, &PlanArguments::default());
    assert!(planning.auxiliary_local.contains("pool"));
    assert_eq!(planning.site_stage_in["pool"], TransferClusters { any: Some(4), ..Default::default() });
    assert!(planning.site_stage_out.is_empty());
}

#[test]
fn properties_and_options_say_how_to_plan() {
    let workflow = "pegasus: '5.0'\nname: said\njobs: [{id: a, name: y, uses: []}]\n";
    let properties = "
pegasus.data.configuration = sharedfs
pegasus.file.cleanup.strategy = Constraint
pegasus.file.cleanup.constraint.maxspace 1000
pegasus.file.cleanup.constraint.pool.maxspace 500
pegasus.file.cleanup.clusters.size = 3
pegasus.clusterer.preference = Runtime
pegasus.clusterer.job.aggregator.seqexec.firstjobfail = false
pegasus.stagein.remote.clusters = 2
pegasus.transfer.threads = 8
pegasus.transfer.links = true
pegasus.integrity.checking = nosymlink
pegasus.register = false
pegasus.selector.site = RoundRobin
";
    let model = read(workflow, "", "", properties);
    let arguments = PlanArguments::parse(["--cluster", "Label", "--output-sites", "store", "--cleanup", "leaf", "-f"]);
    let said = pegasus::planning(&model, &arguments);
    assert_eq!((said.data, said.cleanup), (Some(DataConfiguration::SharedFs), Some(CleanupStrategy::Leaf)));
    assert_eq!(said.cleanup_space, BTreeMap::from([(String::new(), 1000), ("pool".to_owned(), 500)]));
    assert_eq!((said.cleanup_count, said.cleanup_size), (None, Some(3)));
    assert_eq!((said.cluster, said.cluster_by_runtime, said.cluster_goes_on), (vec!["label".to_owned()], true, true));
    assert_eq!(said.stage_in, TransferClusters { remote: Some(2), ..Default::default() });
    assert_eq!((said.transfer_threads, said.links, said.bypass, said.register), (Some(8), true, false, false));
    assert_eq!((said.integrity, said.label_key.as_str()), (IntegrityChecking::NoSymlink, "label"));
    assert_eq!((said.output_sites, said.force), (vec!["store".to_owned()], true));
    assert_eq!(said.site_selector.as_deref(), Some("roundrobin"));
    let usual = pegasus::planning(&read(workflow, "", "", ""), &PlanArguments::default());
    assert_eq!((usual.cleanup, usual.integrity, usual.register), (None, IntegrityChecking::Full, true));
}
