//! Planned workflows in virtual time: whatever is chosen, every job finds its files when it starts, nothing is removed
//! that is still needed, and all results are there in the end.

use super::generate::case_without_loops;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tulpar_core::catalogue::{Catalogue, DataConfiguration, FileServer, Store};
use tulpar_core::engine::Engine;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::{AttemptId, DataId, Digest, JobId};
use tulpar_core::job::{InputFile, JobSpec, ScriptWork, Source};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::planner::{self, Cleanup, Clustering, CompileError, Known, Options, Places, SiteId};
use tulpar_core::resources::Request;
use tulpar_core::site::Site;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::planned::{Operation, Staging, escape};
use tulpar_core::workflow::{ClusterHint, Data, DataSource, FileSource, Input, Span, Tolerance};
use tulpar_sim::{Faults, Simulation, World};

/// A random workflow with some data, on two sites, and what somebody may want of it.
fn wanted(seed: u64) -> (Plan, Catalogue, Options) {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x706c_616e);
    let mut plan = (*case_without_loops(seed).plan).clone();
    (plan.until, plan.forced) = (Vec::new(), Vec::new());
    let files: Vec<InputFile> = (0..7)
        .map(|number| InputFile {
            path: format!("data/{number} #.txt"),
            source: Source::Path(format!("{number}")),
            size: 1 + number * 1000,
            digest: Digest::of(&[number as u8]),
        })
        .collect();
    plan.workflow.data.push(Data {
        name: "d".into(),
        source: DataSource::File("d".into()),
        sha256: Default::default(),
        span: Span::default(),
    });
    plan.files.push(files.into());
    for task in &mut plan.workflow.tasks {
        let mut settings = (*task.settings).clone();
        if matches!(settings.tolerate, Tolerance::Tasks(_) | Tolerance::Percent(_)) {
            settings.tolerate = Tolerance::Any;
        }
        settings.hints.label = random.random_bool(0.4).then(|| format!("label{}", random.random_range(0..2)));
        task.settings = Arc::new(settings);
        if random.random_bool(0.5) {
            let source = FileSource::Data(DataId::from(0));
            let bypass = seed.is_multiple_of(11) && random.random_bool(0.5);
            task.inputs.push(Input { name: "d".into(), source, bypass, program: false, span: Span::default() });
        }
        task.outputs[0].register = random.random_bool(0.5);
        task.outputs[0].temporary = random.random_bool(0.3);
    }
    let server = FileServer { url: "http://other".into(), operation: Default::default() };
    let scratch = Store { path: "/scratch".into(), shared: true, servers: vec![server], space: None };
    let other = Site { name: "other".into(), scratch: Some(scratch), ..plan.site.clone() };
    let catalogue =
        Catalogue { sites: vec![Site { name: "local".into(), ..plan.site.clone() }, other], ..Catalogue::default() };
    let hint = Some(ClusterHint { size: Some(random.random_range(1..4)), ..ClusterHint::default() });
    let options = Options {
        data: [DataConfiguration::CondorIo, DataConfiguration::NonSharedFs, DataConfiguration::NonSharedFs]
            .get(random.random_range(0..3))
            .copied(),
        sites: if random.random_bool(0.5) { vec!["local".into(), "other".into()] } else { Vec::new() },
        choice: if random.random_bool(0.5) { planner::SiteChoice::Load } else { planner::SiteChoice::Locality },
        clustering: match random.random_range(0..5) {
            0 => vec![],
            1 => vec![Clustering::Horizontal(hint)],
            2 => vec![Clustering::Label, Clustering::Horizontal(hint)],
            3 => vec![Clustering::Whole],
            _ => vec![Clustering::Auto],
        },
        bypass: seed.is_multiple_of(5),
        cleanup: match random.random_range(0..4) {
            0 => Cleanup::None,
            1 => Cleanup::Leaf,
            2 => Cleanup::InPlace,
            _ => Cleanup::Space(Bytes(30_000)),
        },
        ..Options::default()
    };
    (plan, catalogue, options)
}

/// What lies at staging sites, kept by looking at what jobs are told.
#[derive(Default)]
struct Staged {
    urls: BTreeSet<String>,
}

impl Staged {
    fn starts(&self, seed: u64, spec: &JobSpec) {
        let removes = matches!(
            spec.script.as_ref().map(|script| &script.work),
            Some(ScriptWork::Operation(Operation::Remove | Operation::RemoveDirectory { .. }))
        );
        for file in spec.inputs.iter().flat_map(|input| input.files.iter()) {
            if let Source::Remote(url) = &file.source {
                assert!(removes || self.urls.contains(url), "seed {seed}: {} starts without {url}", spec.name);
            }
        }
    }

    fn ends(&mut self, spec: &JobSpec, outputs: &[tulpar_core::job::OutputFile]) {
        let Some(script) = &spec.script else { return };
        match &script.work {
            ScriptWork::Operation(Operation::StageIn { below }) => {
                for input in &spec.inputs {
                    let places =
                        input.files.iter().map(|file| format!("{below}/{}/{}", input.name, escape(&file.path)));
                    self.urls.extend(places);
                }
            }
            ScriptWork::Operation(Operation::Remove) => {
                for file in spec.inputs.iter().flat_map(|input| input.files.iter()) {
                    if let Source::Remote(url) = &file.source {
                        self.urls.remove(url);
                    }
                }
            }
            ScriptWork::Operation(Operation::RemoveDirectory { url }) => {
                self.urls.retain(|other| !other.starts_with(&format!("{url}/")));
            }
            _ => {}
        }
        if let Some(below) = &script.push {
            let places = outputs.iter().map(|file| format!("{below}/{}/{}", file.output, escape(&file.path)));
            self.urls.extend(places);
        }
    }
}

fn spec_of(engine: &Engine, attempt: AttemptId) -> JobSpec {
    engine.spec_context().spec(attempt, 0, &Request::default(), "node", Vec::new()).expect("templates are good")
}

#[test]
fn planned_runs_find_their_files_keep_what_is_needed_and_leave_every_result() {
    let factor: u64 = std::env::var("TULPAR_CAMPAIGN").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (mut ran, mut scripts) = (0, BTreeMap::<&str, u32>::new());
    for seed in 0..400 * factor {
        let (plan, catalogue, options) = wanted(seed);
        let unfolded = Graph::new(Arc::new(plan.clone())).unwrap();
        let (graph, _) = planner::from_plan(&unfolded, &catalogue, &Known::default()).unwrap();
        let layout = match planner::plan(&graph, &catalogue, &options, &[]) {
            Ok(layout) => layout,
            Err(planner::PlanError::NoSite { .. }) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let staged = options.data == Some(DataConfiguration::NonSharedFs);
        let staging = (0..layout.sites.len())
            .map(|site| {
                let site = layout.site(SiteId(site as u16)).to_owned();
                staged.then(|| Staging { url: format!("http://{site}/run"), threads: 2, site })
            })
            .collect();
        let sites = catalogue.sites.iter().map(|site| (site.name.clone(), site.clone())).collect();
        let places = Places { staging, sites, bypass: options.bypass, ..Places::default() };
        let compiled = match planner::compile(&unfolded, &graph, &layout, places) {
            Ok(compiled) => Arc::new(compiled),
            Err(CompileError::Dynamic(_)) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let world = World::new(seed, Faults::default());
        let mut simulation =
            Simulation::new(compiled, case_without_loops(seed).policy, world).expect("a plan has no circle");
        let mut here = Staged::default();
        let mut published: BTreeSet<String> = BTreeSet::new();
        let outcome = simulation.run_watched(|engine, events| {
            for (_, event) in events {
                match event {
                    Event::Submitted { attempt, .. } => here.starts(seed, &spec_of(engine, *attempt)),
                    Event::Ended { attempt, report, .. } => {
                        let spec = spec_of(engine, *attempt);
                        if let Some(script) = &spec.script {
                            let kind = match &script.work {
                                ScriptWork::Command => "command",
                                ScriptWork::Cluster { .. } => "cluster",
                                ScriptWork::Operation(Operation::Transfer) => "transfer",
                                ScriptWork::Operation(Operation::Register { .. }) => "register",
                                ScriptWork::Operation(_) => "operation",
                            };
                            *scripts.entry(kind).or_default() += 1;
                        }
                        here.ends(&spec, &report.outputs);
                        let publication = engine.publication(attempt.job, false);
                        let shown =
                            publication.outputs.iter().filter(|file| !publication.temporary.contains(&file.output));
                        published.extend(shown.map(|file| file.path.clone()));
                    }
                    _ => {}
                }
            }
        });
        assert_eq!(outcome, Some(Outcome::Done), "seed {seed}: {options:?}");
        if matches!(options.cleanup, Cleanup::Leaf | Cleanup::InPlace | Cleanup::Space(_)) {
            assert_eq!(here.urls, BTreeSet::new(), "seed {seed}: left behind");
        }
        for job in (0..unfolded.len()).map(JobId::from) {
            let task = plan.task(unfolded.set_of(job));
            if !task.outputs[0].temporary && task.outputs[0].kind == tulpar_core::workflow::OutputKind::File {
                let name = graph.files[first_output(&plan, &unfolded, job)].name.to_string();
                assert!(published.contains(&name), "seed {seed}: `{name}` is not shown");
            }
        }
        ran += 1;
    }
    assert!(ran > 100, "too few cases ran: {ran}");
    for kind in ["command", "cluster", "transfer", "register", "operation"] {
        assert!(scripts.contains_key(kind), "no case had a {kind}: {scripts:?}");
    }
}

/// Files come in the order of the data entries, then of the jobs, which have one output each here.
fn first_output(plan: &Plan, _: &Graph, job: JobId) -> usize {
    plan.files.iter().map(|files| files.len()).sum::<usize>() + job.index()
}
