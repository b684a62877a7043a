//! Workflows as DAGMan and Slurm get them: literal texts, and what cannot be said there.

use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::ids::Digest;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::workflow::{self, DataFile};
use tulpar_formats::export::{Bundle, ExportError, dagman, slurm};

/// The plan of a workflow, each of whose data entries is one file of that name.
fn graph(text: &str) -> Graph {
    let (workflow, findings) = workflow::read(text, &BTreeMap::new());
    assert!(findings.iter().all(|finding| !finding.is_error()), "{findings:?}");
    let workflow = workflow.expect("a workflow");
    let file = |name: &str| DataFile {
        path: format!("data/{name}"),
        from: format!("/archive/{name}"),
        size: 1,
        digest: Digest([1; 32]),
    };
    let files = workflow.data.iter().map(|data| vec![file(&data.name)]).collect();
    Graph::new(Arc::new(Plan::new(workflow, files, Default::default()))).expect("no circle")
}

fn text<'b>(bundle: &'b Bundle, path: &str) -> &'b str {
    let names: Vec<&str> = bundle.files.iter().map(|file| file.path.as_str()).collect();
    let file = bundle.files.iter().find(|file| file.path == path);
    &file.unwrap_or_else(|| panic!("no {path} among {names:?}")).text
}

/// How many files a job reads.
fn lines(bundle: &Bundle, job: &str) -> usize {
    text(bundle, &format!("jobs/{job}.in")).lines().count()
}

const STUDY: &str = "\
workflow: study
data: {labels: labels.csv}
tasks:
  train:
    for: {rate: [0.1, 0.01]}
    in: [labels]
    out: {model: 'model {rate}.pt', notes: 'notes/{rate}/'}
    gpus: 1
    gpu_memory: 20 GiB
    gpu_capability: 8.0
    cpus: 2
    memory: 4 GiB
    disk: 2 GiB
    time: 2 h
    priority: 3
    at_most: 1
    retry: {times: 2, on: [failure]}
    checkpoint: [state.pt]
    env: {MODE: \"it's\"}
    run: train {labels} --rate {rate} --out {model} --notes {notes}
  best:
    in: [train.model, train.notes]
    out: {winner: winner.txt}
    run: pick {model} {notes} > {winner}
";

#[test]
fn a_dag_says_what_differs_and_in_which_order() {
    let bundle = dagman(&graph(STUDY)).expect("can be exported");
    let expected = r#"# study: run it with `condor_submit_dag workflow.dag`

# train
JOB train_0 train.sub
VARS train_0 script="jobs/train/0.sh" inputs="data/labels" outputs="model 0.1.pt, .archives/train_0-notes.tar"
RETRY train_0 2
PRIORITY train_0 3
CATEGORY train_0 limit_train
SCRIPT POST train_0 unpack.sh $RETURN .archives/train_0-notes.tar
JOB train_1 train.sub
VARS train_1 script="jobs/train/1.sh" inputs="data/labels" outputs="model 0.01.pt, .archives/train_1-notes.tar"
RETRY train_1 2
PRIORITY train_1 3
CATEGORY train_1 limit_train
SCRIPT POST train_1 unpack.sh $RETURN .archives/train_1-notes.tar
MAXJOBS limit_train 1

# best
JOB best best.sub
VARS best script="jobs/best.sh" inputs=".archives/train_0-notes.tar, .archives/train_1-notes.tar, model 0.01.pt, model 0.1.pt" outputs="winner.txt"

PARENT train_0 train_1 CHILD best
"#;
    assert_eq!(text(&bundle, "workflow.dag"), expected);
    assert_eq!(
        (bundle.links[0].path.as_str(), bundle.links[0].target.as_str()),
        ("files/data/labels", "/archive/labels")
    );
    assert_eq!((bundle.jobs, bundle.notes.len()), (3, 0));
}

#[test]
fn a_submit_description_asks_for_what_the_task_asked_for() {
    let bundle = dagman(&graph(STUDY)).expect("can be exported");
    let expected = "\
# train: 2 jobs of a DAG; the DAG says what differs between them.
executable = $(script)
initialdir = files
should_transfer_files = YES
preserve_relative_paths = true
transfer_input_files = $(inputs)
transfer_output_files = $(outputs)
when_to_transfer_output = ON_SUCCESS
success_exit_code = 0
max_retries = 0
output = ../logs/$(JOB).out
error = ../logs/$(JOB).err
checkpoint_exit_code = 85
transfer_checkpoint_files = state.pt
request_cpus = 2
request_memory = 4096MB
request_disk = 2048MB
request_gpus = 1
gpus_minimum_memory = 20480MB
gpus_minimum_capability = 8.0
allowed_execute_duration = 7200
periodic_remove = JobStatus == 5 && HoldReasonCode == 47
queue 1
";
    assert_eq!(text(&bundle, "train.sub"), expected);
    assert!(text(&bundle, "best.sub").contains("request_memory = 1024MB\n"));
}

#[test]
fn scripts_pack_what_only_the_run_knows_and_unpack_it_where_it_is_read() {
    let bundle = dagman(&graph(STUDY)).expect("can be exported");
    let train = r#"#!/bin/bash
# train[rate=0.1]
# It finds its inputs where it starts, and leaves its outputs there.
set -e
export MODE='it'\''s'
mkdir -p .archives notes
(
train data/labels --rate 0.1 --out 'model 0.1.pt' --notes notes/0.1
)
[ -e 'model 0.1.pt' ] || { echo 'model 0.1.pt' was not made >&2; exit 1; }
mapfile -t made < <(find notes/0.1 -type f | LC_ALL=C sort)
printf '%s\n' "${made[@]}" | sed '/^$/d' | tar -cf .archives/train_0-notes.tar --verbatim-files-from -T -
"#;
    assert_eq!(text(&bundle, "jobs/train/0.sh"), train);
    let best = text(&bundle, "jobs/best.sh");
    assert!(best.contains("mapfile -t files_1 < <(tar --quoting-style=literal -xvf .archives/train_1-notes.tar)\n"));
    assert!(
        best.contains("pick 'model 0.1.pt' 'model 0.01.pt' \"${files_0[@]}\" \"${files_1[@]}\" > winner.txt\n"),
        "{best}"
    );
}

#[test]
fn slurm_gets_an_array_a_task_set_chained_by_dependencies() {
    let bundle = slurm(&graph(STUDY)).expect("can be exported");
    let submit = r#"#!/bin/bash
# study: submits every task set, each after those that it needs.
set -e
cd "$(dirname "$0")"
set0_train=
set0_train+=:$(sbatch --parsable --array=0-1%1 train.sbatch)
echo "train$set0_train"
set1_best=:$(sbatch --parsable --kill-on-invalid-dep=yes --dependency="afterok$set0_train" best.sbatch)
echo "best$set1_best"
"#;
    assert_eq!(text(&bundle, "submit.sh"), submit);
    let batch = r#"#!/bin/bash
# train
#SBATCH --job-name=train
#SBATCH --output=logs/train-%A_%a.out
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4096M
#SBATCH --gres=gpu:1
# It needs GPUs with at least 21.5 GB and capability 8.0: name a type, --gres=gpu:TYPE:1
#SBATCH --time=120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@30
exec ./run.sh "jobs/train/$((SLURM_ARRAY_TASK_ID + ${OFFSET:-0}))" 3
"#;
    assert_eq!(text(&bundle, "train.sbatch"), batch);
    assert_eq!(text(&bundle, "jobs/train/1.out"), "model 0.01.pt\n.archives/train_1-notes.tar\n");
}

#[test]
fn jobs_that_wait_for_their_own_number_alone_start_without_the_others() {
    let pairs = "\
workflow: pairs
tasks:
  first: {for: {part: 1..3}, out: {a: 'a{part}.txt'}, run: 'echo {part} > {a}'}
  second: {for: {part: 1..3}, in: [first.a], out: {b: 'b{part}.txt'}, run: 'cat {a} > {b}'}
";
    assert!(
        text(&slurm(&graph(pairs)).expect("exported"), "submit.sh").contains("--dependency=\"aftercorr$set0_first\"")
    );
    let many = pairs.replace("1..3", "1..2500");
    let bundle = slurm(&graph(&many)).expect("exported");
    let submit = text(&bundle, "submit.sh");
    assert!(submit.contains("sbatch --parsable --array=0-499 --export=ALL,OFFSET=2000 --kill-on-invalid-dep=yes --dependency=\"afterok$set0_first\""), "{submit}");
    let dag = dagman(&graph(&many)).expect("exported");
    assert!(text(&dag, "workflow.dag").contains("PARENT first_2499 CHILD second_2499\n"));
}

#[test]
fn secrets_come_from_files_and_patterns_of_checkpoints_are_packed() {
    let bundle = dagman(&graph(
        "\
workflow: w
tasks:
  a:
    secrets: [API_TOKEN]
    checkpoint: ['states/*.pt']
    out: {x: x.txt, extra: {path: extra.txt, optional: true}}
    run: use > {x}
",
    ))
    .expect("exported");
    let script = text(&bundle, "jobs/a.sh");
    assert!(script.contains("export API_TOKEN=\"$(cat secrets/API_TOKEN)\"\n"), "{script}");
    assert!(script.contains("[ ! -e checkpoint.tar ] || tar -xf checkpoint.tar\n"), "{script}");
    assert!(script.contains("  tar -cf checkpoint.tar -- states/*.pt\n"), "{script}");
    assert!(script.contains("made=(extra.txt)\nshopt -u nullglob globstar\n[ -e extra.txt ] || made=()\n"), "{script}");
    assert!(text(&bundle, "a.sub").contains("transfer_checkpoint_files = checkpoint.tar\n"));
    assert!(text(&bundle, "workflow.dag").contains("inputs=\"secrets/API_TOKEN\""));
    assert!(text(&bundle, "README.md").contains("printf %s \"$API_TOKEN\" > files/secrets/API_TOKEN\n"));
}

#[test]
fn a_job_that_reads_a_whole_folder_names_the_folder() {
    let text = "\
workflow: images
data: {images: images/*.png, one: images/7.png}
tasks:
  all: {in: [images], out: {x: x.txt}, run: 'cat {images} > {x}'}
  one: {in: [one], out: {y: y.txt}, run: 'cat {one} > {y}'}
  beside: {in: [images], out: {z: 'images/z.txt'}, run: 'cat {images} > {z}'}
";
    let inputs = |text: &str| -> Vec<usize> {
        let (workflow, _) = workflow::read(text, &BTreeMap::new());
        let file = |number: u32| DataFile {
            path: format!("images/{number}.png"),
            from: format!("/archive/{number}.png"),
            size: 1,
            digest: Digest([1; 32]),
        };
        let files = vec![(0..100).map(file).collect(), vec![file(7)]];
        let plan = Plan::new(workflow.expect("a workflow"), files, Default::default());
        let bundle = slurm(&Graph::new(Arc::new(plan)).expect("no circle")).expect("exported");
        assert_eq!(bundle.links.len(), 100);
        ["all", "one"].iter().map(|name| lines(&bundle, name)).collect()
    };
    assert_eq!(inputs(text), [100, 1]);
    assert_eq!(inputs(&text.replace("images/z.txt", "z.txt")), [1, 1]);
}

#[test]
fn what_needs_an_engine_beside_it_is_refused_with_its_reason() {
    let refused = |text: &str| match dagman(&graph(text)) {
        Err(ExportError::Refused(reasons)) => reasons.join("; "),
        other => panic!("{other:?}"),
    };
    let head = "workflow: w\ntasks:\n  a: {out: {files: 'f/*.txt', one: one.txt}, run: make}\n";
    let dynamic = format!("{head}  b: {{for: {{file: a.files}}, run: 'use {{file}}'}}\n");
    assert_eq!(refused(&dynamic), "`b` has as many tasks as others leave files, which is known only while it runs");
    let counted = format!("{head}  b: {{in: [a.files], run: 'use {{files.count}}'}}\n");
    assert_eq!(refused(&counted), "`b`: its command has `{files.count}`, which is known only when the files are there");
    let comma = "workflow: w\ntasks:\n  a: {out: {x: 'a,b.txt'}, run: 'echo > {x}'}\n";
    assert!(refused(comma).contains("`a,b.txt` has a comma"), "{}", refused(comma));
    assert!(slurm(&graph(comma)).is_ok());
    let gang = "workflow: w\ntasks:\n  a: {nodes: 2, run: 'true'}\n";
    assert!(refused(gang).contains("several nodes"), "{}", refused(gang));
}

#[test]
fn an_image_that_is_a_file_goes_along_and_an_address_is_left_to_the_system() {
    let boxed = |image: &str| {
        graph(&format!(
            "workflow: w\ntasks:\n  a: {{container: '{image}', gpus: 1, out: {{x: x.txt}}, run: 'use > {{x}}'}}\n"
        ))
    };
    let file = boxed("images/my tools.sif");
    let dag = dagman(&file).expect("exported");
    assert!(text(&dag, "a.sub").contains("container_image = my tools.sif\n"), "{}", text(&dag, "a.sub"));
    let link =
        |bundle: &Bundle| bundle.links.iter().map(|link| (link.path.clone(), link.target.clone())).collect::<Vec<_>>();
    assert_eq!(link(&dag), [("files/my tools.sif".to_owned(), "images/my tools.sif".to_owned())]);
    let bundle = slurm(&file).expect("exported");
    assert_eq!(link(&bundle), link(&dag));
    let batch = text(&bundle, "a.sbatch");
    assert!(batch.contains("export IMAGE=\"$PWD\"/files/'my tools.sif'\nexport IMAGE_OPTIONS=--nv\n"), "{batch}");
    let address = boxed("docker://python:3.12");
    let dag = dagman(&address).expect("exported");
    assert!(text(&dag, "a.sub").contains("container_image = docker://python:3.12\n"));
    assert_eq!(link(&dag), []);
    assert!(text(&slurm(&address).expect("exported"), "a.sbatch").contains("export IMAGE=docker://python:3.12\n"));
    let two =
        "workflow: w\ntasks:\n  a: {container: one/x.sif, run: 'true'}\n  b: {container: two/x.sif, run: 'true'}\n";
    assert!(matches!(dagman(&graph(two)), Err(ExportError::Refused(why)) if why[0].contains("both called `x.sif`")));
}

#[test]
fn a_task_on_several_nodes_is_started_on_each_of_them_by_slurm() {
    let gang = graph("workflow: w\ntasks:\n  a: {nodes: 2, cpus: 3, out: {x: x.txt}, run: \"work 'it' > {x}\"}\n");
    let bundle = slurm(&gang).expect("exported");
    let script = text(&bundle, "jobs/a.sh");
    assert!(
        script
            .contains("\nexport TULPAR_NODES=2 TULPAR_FIRST_NODE=\"$SLURMD_NODENAME\"\nsrun '--nodes=2' '--ntasks=2' "),
        "{script}"
    );
    assert!(script.contains(" bash -e -c 'work '\\''it'\\'' > x.txt'\n)\n"), "{script}");
    let boxed = graph("workflow: w\ntasks:\n  a: {nodes: 2, container: x.sif, run: work}\n");
    assert!(
        matches!(slurm(&boxed), Err(ExportError::Refused(why)) if why[0].contains("on several nodes in a container"))
    );
}

#[test]
fn a_checkpoint_survives_another_start_and_every_is_the_time_of_one_job() {
    let study = "workflow: w\ntasks:\n  a: {checkpoint: {files: ['states/*.pt', log.txt], every: 4 h}, time: 3 d, grace: 40 s, run: work}\n";
    let bundle = slurm(&graph(study)).expect("exported");
    assert_eq!(text(&bundle, "jobs/a.keep"), "states/*.pt\nlog.txt\n");
    let batch = text(&bundle, "a.sbatch");
    assert!(batch.contains("#SBATCH --time=241\n#SBATCH --requeue\n"), "{batch}");
    assert!(batch.contains("#SBATCH --signal=B:TERM@60\n"), "{batch}");
    assert_eq!(dagman(&graph(study)).expect("exported").notes, ["they run in one piece, whatever `every` says: a"]);
}
