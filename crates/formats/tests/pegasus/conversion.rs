//! From Pegasus files to tasks.

use super::{real_files, variables};
use std::collections::BTreeMap;
use std::path::Path;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::{self, DataSource, Run, Span, Workflow};
use tulpar_formats::pegasus::{self, CODES, Properties, Text, Texts};

/// A folder with a workflow under its usual name and catalogues beside it.
fn convert_folder(folder: &Path, file: &str) -> (Option<Workflow>, Vec<Diagnostic>) {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let properties = text("pegasus.properties").unwrap_or_default();
    let files = Properties::parse(&properties).catalogue_files();
    let names = [files.replicas.0, files.transformations.0, files.sites.0];
    let texts: Vec<Option<String>> = names.iter().map(|name| text(name)).collect();
    let catalogue = |number: usize| texts[number].as_deref().map(|text| Text { name: &names[number], text });
    let workflow = text(file).expect("a workflow");
    let all = Texts {
        workflow: Text { name: file, text: &workflow },
        replicas: catalogue(0),
        transformations: catalogue(1),
        sites: catalogue(2),
        properties: Some(Text { name: "pegasus.properties", text: &properties }),
    };
    let mut environment = variables(&workflow);
    texts.iter().flatten().for_each(|text| environment.extend(variables(text)));
    let reading = pegasus::read(&all, &environment);
    let mut findings = reading.findings;
    let workflow = reading.model.map(|model| {
        let (workflow, found) = pegasus::convert(&model, None);
        findings.extend(found);
        workflow
    });
    (workflow, findings)
}

pub(super) fn convert(
    workflow: &str,
    replicas: &str,
    transformations: &str,
    sites: &str,
) -> (Workflow, Vec<Diagnostic>) {
    fn text<'t>(name: &'t str, text: &'t str) -> Option<Text<'t>> {
        Some(Text { name, text }).filter(|_| !text.is_empty())
    }
    let texts = Texts {
        workflow: Text { name: "workflow.yml", text: workflow },
        replicas: text("replicas.yml", replicas),
        transformations: text("transformations.yml", transformations),
        sites: text("sites.yml", sites),
        properties: None,
    };
    let reading = pegasus::read(&texts, &BTreeMap::new());
    let (workflow, found) = pegasus::convert(&reading.model.expect("a model"), None);
    (workflow, reading.findings.into_iter().chain(found).collect())
}

fn without_places(mut workflow: Workflow) -> Workflow {
    let nowhere = Span::default();
    workflow.data.iter_mut().for_each(|data| data.span = nowhere);
    for task in &mut workflow.tasks {
        task.span = nowhere;
        task.inputs.iter_mut().for_each(|input| input.span = nowhere);
        task.outputs.iter_mut().for_each(|output| output.span = nowhere);
    }
    workflow
}

pub(super) fn errors(findings: &[Diagnostic]) -> Vec<&Diagnostic> {
    findings.iter().filter(|finding| finding.is_error()).collect()
}

#[test]
fn a_diamond_becomes_the_tasks_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/pegasus/diamond");
    let (workflow, findings) = convert_folder(&folder, "workflow.yml");
    assert_eq!(findings, []);
    let written = workflow::write(&workflow.expect("a workflow"));
    let expected = folder.join("expected.yaml");
    if std::env::var_os("TULPAR_BLESS").is_some() {
        std::fs::write(&expected, &written).expect("the expectation can be written");
    }
    assert_eq!(written, std::fs::read_to_string(expected).unwrap_or_default());
}

/// `P010 nothing provides …`, sorted.
fn said(findings: &[Diagnostic]) -> Vec<String> {
    let mut said: Vec<String> =
        findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect();
    said.sort();
    said
}

#[test]
fn what_cannot_be_done_here_is_named() {
    let workflow = r#"
pegasus: "5.0"
name: all
hooks: {shell: [{_on: ending, cmd: mail me}, {_on: never, cmd: not me}]}
jobs:
- {id: a, name: here, arguments: ["{{x}}"], uses: [{lfn: none, type: input}, {lfn: f, type: inout}], profiles: {condor: {requirements: Big, request_memory: "int(1.5 * X)"}, dagman: {PRE: /pre.sh}, globus: {maxtime: 2}, pegasus: {memory.expr: "open(1)", queue.expr: "1"}}}
- {id: b, name: missing, uses: [{lfn: f, type: inout}]}
- {id: c, type: pegasusWorkflow, file: inner.yml, arguments: [--reuse, x, --unheard], uses: []}
- {id: d, type: condorWorkflow, file: inner.dag, uses: []}
- {id: e, name: boxed, surprise: 1, profiles: {dagman: {POST: /post.sh}}, uses: [{lfn: g, type: output}]}
- {id: f, name: pathless, uses: []}
- {id: f, name: elsewhere, uses: []}
- {id: g, name: far, uses: []}
- {id: h, name: held, uses: [], profiles: {dagman: {POST: /post.sh}}}
jobDependencies: [{id: a, children: [nobody]}]
"#;
    let replicas = r#"
replicas:
- {lfn: g, pfns: [{site: local, pfn: /g}]}
- {lfn: "(?=x)", regex: true, pfns: []}
"#;
    let transformations = r#"
transformations:
- {name: here, sites: [{name: local, pfn: /bin/true, type: installed}]}
- {name: boxed, sites: [{name: local, pfn: /bin/true, type: installed, container: box}]}
- {name: pathless, sites: [{name: local, pfn: "", type: stageable}]}
- {name: elsewhere, sites: [{name: far, pfn: /opt/x, type: installed, container: lost}, {name: local, pfn: ""}]}
- {name: far, sites: [{name: grid, pfn: /opt/far, type: installed}]}
- {name: held, sites: [{name: local, pfn: /bin/true, type: installed, container: kept}]}
containers:
- {name: box, type: docker, image: "scp://h/box.tar", mounts: ["/a:/b"]}
- {name: kept, type: singularity, image: "file:///kept.sif"}
"#;
    let sites = r#"
sites:
- {name: grid, grids: [{type: gt5, scheduler: pbs, contact: x, jobtype: compute}]}
- {name: other}
"#;
    let (_, findings) = convert(workflow, replicas, transformations, sites);
    assert_eq!(
        said(&findings),
        [
            "P003 a job has no key `surprise`; it is ignored",
            "P005 the profile `request_memory` of `condor` is not a number here: `int(1.5 * X)`",
            "P006 two jobs have the id `f`",
            "P007 there is no job with the id `nobody`",
            "P008 replicas.yml:4: `(?=x)` is not read as a regular expression: look-around, including look-ahead and look-behind, is not supported",
            "P010 nothing provides `inner.dag`, an input of `d`",
            "P010 nothing provides `inner.yml`, an input of `c`",
            "P010 nothing provides `none`, an input of `here_a`",
            "P011 `pathless`, which `pathless_f` runs, has no path on any site",
            "P011 the transformation catalogue has no `missing`, which `missing_b` runs",
            "P012 the transformation catalogue has no container `lost`, in which `elsewhere_f` runs",
            "P021 the hook of the workflow on `ending` is not run: mail me",
            "P022 the scripts before and after `held_h` run inside its container",
            "P023 the site `grid` is reached through gt5 (pbs)",
            "P024 the container `box` asks for mounts, which are not made: /a:/b",
            "P024 the image `scp://h/box.tar` of the container `box` cannot be used here",
            "P025 the profile `maxtime` of `globus` has no effect here (one job)",
            "P025 the profile `queue.expr` of `pegasus` has no effect here (one job)",
            "P025 the profile `requirements` of `condor` has no effect here (one job)",
            "P025 the sub-workflow `c` is given `--unheard`, `--reuse`, which has no effect here",
            "P027 nothing says in which order `here_a`, `missing_b` change `f`",
            "P028 doubled braces around a name cannot be carried over: `{{x}}`",
            "P029 `far` is installed on the site `grid`",
            "P030 jobs make `g`, of which the replica catalogue has copies",
            "P031 `memory.expr` of `here_a`, `open(1)`: there is no function `open`",
        ]
    );
}

#[test]
fn the_documentation_has_every_code() {
    let page = include_str!("../../../../docs/pegasus.md");
    for (code, meaning) in CODES {
        assert!(
            page.contains(&format!("| {code} | {meaning} |")),
            "docs/pegasus.md has no row `| {code} | {meaning} |`"
        );
    }
}

#[test]
fn the_transformation_wins_over_the_site_and_the_site_over_the_job() {
    let workflow = r#"
pegasus: "5.0"
name: precedence
profiles: {env: {A: workflow, B: workflow, C: workflow, D: workflow}, pegasus: {memory: 1, cores: 1, gpus: 1}}
jobs:
- {id: a, name: x, uses: [], profiles: {env: {B: job, C: job, D: job}, pegasus: {tag: big, memory: 2, cores: 2, checkpoint.time: 2, maxwalltime: 4}}}
"#;
    let transformations = r#"
transformations:
- name: x
  profiles: {env: {D: transformation}, pegasus: {memory: 4}}
  sites: [{name: pool, pfn: /bin/true, type: installed, profiles: {pegasus: {diskspace: 5}}}]
"#;
    let sites = r#"
sites:
- {name: pool, profiles: {env: {C: site}, pegasus: {memory: 3, cores: 3}}, x-tags: [{name: big, profiles: {pegasus: {gpus: 7}}}]}
- {name: local}
"#;
    let (workflow, findings) = convert(workflow, "", transformations, sites);
    assert_eq!(findings, []);
    let settings = &workflow.tasks[0].settings;
    let variables: Vec<(&str, &str)> =
        settings.environment.variables.iter().map(|(name, value)| (name.as_str(), &*value.0)).collect();
    assert_eq!(
        variables,
        [
            ("A", "workflow"),
            ("B", "job"),
            ("C", "site"),
            ("D", "transformation"),
            ("PEGASUS_SITE", "pool"),
            ("PEGASUS_WF_LABEL", "precedence"),
        ]
    );
    let request = &settings.request;
    assert_eq!((request.milli_cpus, request.memory.0, request.disk.0, request.gpus), (3000, 4 << 20, 5 << 20, 7));
    assert_eq!(request.time.map(|time| time.as_secs()), Some(120));
    assert_eq!(settings.grace.map(|grace| grace.as_secs()), Some(60));
    assert_eq!((settings.retry.times, settings.retry.time_percent), (1, 100));
}

#[test]
fn a_checkpoint_begins_as_a_copy_of_its_replica() {
    let workflow = r#"
pegasus: "5.0"
name: saved
jobs: [{id: a, name: x, uses: [{lfn: state.txt, type: checkpoint}, {lfn: o, type: output}]}]
"#;
    let replicas = "replicas: [{lfn: state.txt, pfns: [{site: local, pfn: start/state.txt}]}]";
    let transformations = "transformations: [{name: x, sites: [{name: local, pfn: /bin/x, type: installed}]}]";
    let (workflow, findings) = convert(workflow, replicas, transformations, "");
    assert_eq!(findings, []);
    let task = &workflow.tasks[0];
    assert_eq!(
        task.settings.checkpoint.as_ref().map(|checkpoint| checkpoint.files.clone()),
        Some(vec!["state.txt".to_owned()])
    );
    let Run::Shell(line) = &task.run else { panic!("a shell line") };
    assert_eq!(&*line.0, "export PEGASUS_DAG_JOB_ID=x_a\n[ -e state.txt ] || cp .staged/state.txt state.txt\n/bin/x");
    let expected = BTreeMap::from([(".staged/state.txt".to_owned(), "start/state.txt".to_owned())]);
    assert_eq!(workflow.data[0].source, DataSource::Files(expected));
    let outputs: Vec<(&str, bool)> = task.outputs.iter().map(|output| (&*output.path.0, output.optional)).collect();
    assert_eq!(outputs, [("o", false), ("state.txt", true)]);
}

/// The line of the task with this name.
fn line<'w>(workflow: &'w Workflow, name: &str) -> &'w str {
    let task = workflow.tasks.iter().find(|task| task.name == name).expect("a task");
    let Run::Shell(line) = &task.run else { panic!("a shell line") };
    &line.0
}

const PROGRAMS: &str = "transformations: [{name: x, sites: [{name: local, pfn: /bin/x, type: installed}], hooks: {shell: [{_on: all, cmd: tell}]}}]";

#[test]
fn a_sub_workflow_is_this_program_again_with_the_files_that_it_makes() {
    let workflow = r#"
pegasus: "5.0"
name: outer
jobs:
- {id: a, name: x, uses: [{lfn: inner.yml, type: output}]}
- {id: b, type: pegasusWorkflow, file: inner.yml, arguments: [--conf, inner.conf, -vvv], uses: [{lfn: inner.conf, type: input, forPlanning: true}, {lfn: f d, type: output}]}
- {id: c, name: x, uses: [{lfn: f d, type: input}]}
- {id: d, type: pegasusWorkflow, file: inner.yml, uses: [], profiles: {pegasus: {cores: 2}}}
"#;
    let replicas = "replicas: [{lfn: inner.conf, pfns: [{site: local, pfn: inner.conf}]}]";
    let (workflow, findings) = convert(workflow, replicas, PROGRAMS, "");
    assert_eq!(findings, []);
    assert_eq!(
        line(&workflow, "b"),
        "exec \"$TULPAR_EXE\" __subworkflow inner.yml --makes 'f d' -- --conf inner.conf -vvv"
    );
    let inputs: Vec<&str> = workflow.tasks[1].inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(inputs, ["inner_conf", "inner_yml"]);
    let settings = &workflow.tasks[1].settings;
    assert_eq!(settings.cache, workflow::Caching::Off);
    assert_eq!(&*settings.environment.variables[tulpar_core::workflow::SUB_WORKFLOW_VARIABLE].0, "node");
    let settings = &workflow.tasks[3].settings;
    assert_eq!(&*settings.environment.variables[tulpar_core::workflow::SUB_WORKFLOW_VARIABLE].0, "cores");
    assert_eq!(settings.request.milli_cpus, 2000);
}

#[test]
fn a_file_that_jobs_change_has_versions_and_people_see_the_last() {
    let workflow = r#"
pegasus: "5.0"
name: changed
jobs:
- {id: a, name: x, uses: [{lfn: d/f, type: inout}]}
- {id: b, name: x, uses: [{lfn: d/f, type: inout}]}
- {id: c, name: x, uses: [{lfn: d/f, type: input}]}
- {id: d, name: x, uses: [{lfn: d/f, type: input}]}
jobDependencies: [{id: a, children: [b]}, {id: d, children: [b]}]
"#;
    let replicas = "replicas: [{lfn: d/f, pfns: [{site: local, pfn: start}]}]";
    let (workflow, findings) = convert(workflow, replicas, PROGRAMS, "");
    assert_eq!(findings, []);
    assert_eq!(
        line(&workflow, "x_a"),
        "export PEGASUS_DAG_JOB_ID=x_a\nmkdir -p d\ninstall -m 644 .versions/0/d/f d/f\n/bin/x\nmkdir -p .versions/1/d && mv d/f .versions/1/d/f"
    );
    assert_eq!(
        line(&workflow, "x_b"),
        "export PEGASUS_DAG_JOB_ID=x_b\nmkdir -p d\ninstall -m 644 .versions/1/d/f d/f\n/bin/x"
    );
    assert_eq!(line(&workflow, "x_c"), "export PEGASUS_DAG_JOB_ID=x_c\n/bin/x");
    assert_eq!(
        line(&workflow, "x_d"),
        "export PEGASUS_DAG_JOB_ID=x_d\nmkdir -p d\nln -s \"$PWD\"/.versions/1/d/f d/f\n/bin/x"
    );
    let outputs: Vec<(&str, bool)> = workflow
        .tasks
        .iter()
        .flat_map(|task| task.outputs.iter().map(|output| (&*output.path.0, output.temporary)))
        .collect();
    assert_eq!(outputs, [(".versions/1/d/f", true), ("d/f", false)]);
    assert_eq!(errors(&workflow::check(&workflow, None, None)), [] as [&Diagnostic; 0]);
}

#[test]
fn scripts_messages_hooks_and_expressions_are_carried_over() {
    let workflow = r#"
pegasus: "5.0"
name: surrounded
hooks: {shell: [{_on: error, cmd: mail me}]}
jobs:
- id: a
  name: x
  arguments: ["1"]
  uses: [{lfn: o, type: output}]
  stdout: o
  hooks: {shell: [{_on: start, cmd: begin}, {_on: never, cmd: nothing}]}
  profiles:
    dagman: {PRE: /pre.sh, PRE.ARGUMENTS: "$JOB 1", POST: mine, POST.PATH.mine: /my post, POST.ARGUMENTS: $RETURN}
    pegasus: {exitcode.failuremsg: it's bad, memory: 100, memory.expr: memory * 2 if attempt > 1 else memory}
"#;
    let (workflow, findings) = convert(workflow, "", PROGRAMS, "");
    assert_eq!(findings, []);
    assert_eq!(
        line(&workflow, "x_a"),
        "export PEGASUS_DAG_JOB_ID=x_a
JOB=x_a RETRY=$((TULPAR_ATTEMPT - 1))
/pre.sh $JOB 1 || { echo 'the PRE script failed' >&2; exit 1; }
set +e
{ { { > o /bin/x 1
}; echo $? > .status; } 2>&1 >&3 | tee .stderr >&2; } 3>&1 | tee .stdout
RETURN=$(cat .status)
if [ \"$RETURN\" = 0 ] && grep -qsF -e 'it'\\''s bad' .stdout .stderr o; then echo 'the job failed, because it says:' 'it'\\''s bad' >&2; RETURN=1; fi
'/my post' $RETURN
RETURN=$?
[ $RETURN = 0 ] || { echo 'the POST script failed' >&2; exit $RETURN; }
set -e"
    );
    let hook = |on, run: &str| workflow::Hook { on, run: run.into() };
    assert_eq!(workflow.hooks, [hook(workflow::Occasion::Error, "mail me")]);
    let settings = &workflow.tasks[0].settings;
    assert_eq!(settings.hooks, [hook(workflow::Occasion::Start, "begin"), hook(workflow::Occasion::All, "tell")]);
    let expected = workflow::RetryExpression {
        what: workflow::Quantity::Memory,
        text: "memory * 2 if attempt > 1 else memory".into(),
    };
    assert_eq!(settings.retry.expressions, [expected]);
}

#[test]
fn every_real_workflow_is_converted_and_written() {
    let Some(folder) = real_files() else { return };
    let mut converted = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a case").path();
        if !path.join("workflow.yml").is_file() {
            continue;
        }
        let (workflow, findings) = convert_folder(&path, "workflow.yml");
        let workflow = workflow.expect("every workflow can be read");
        if errors(&findings).is_empty() {
            let (again, problems) = workflow::read(&workflow::write(&workflow), &BTreeMap::new());
            assert_eq!(errors(&problems), [] as [&Diagnostic; 0], "{}", path.display());
            assert_eq!(without_places(again.expect("a workflow")), without_places(workflow), "{}", path.display());
            converted += 1;
        }
    }
    assert!(converted >= 20, "only {converted} workflows were converted without an error");
}
