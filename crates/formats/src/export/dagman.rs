//! A workflow for HTCondor's DAGMan: a DAG, one submit description a task set, and a script a job.

use super::jobs::{Exported, Job, Set, image_name, is_file};
use super::script::{CHECKPOINT, is_pattern};
use super::{Bundle, ExportError};
use crate::htcondor::submit::{Description, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tulpar_core::ids::JobId;
use tulpar_core::plan::Graph;
use tulpar_core::resources::Request;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::RetryOn;

const MEBIBYTE: u64 = 1 << 20;
/// For tasks that do not say how much they need.
const USUAL_MEMORY: Bytes = Bytes(1 << 30);
const USUAL_DISK: Bytes = Bytes(1 << 30);

/// Everything that `condor_submit_dag` needs, in one folder.
pub fn dagman(graph: &Graph) -> Result<Bundle, ExportError> {
    let exported = Exported::new(graph)?;
    let name = &graph.plan().workflow.name;
    let mut bundle = Bundle {
        folders: vec!["files".to_owned(), "logs".to_owned(), "jobs".to_owned()],
        links: exported.links.clone(),
        notes: exported.notes.clone(),
        ..Bundle::default()
    };
    for link in &mut bundle.links {
        link.path = format!("files/{}", link.path);
    }
    let cut =
        |set: &&Set<'_>| set.task.settings.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.every.is_some());
    let cut: Vec<&str> = exported.sets.iter().filter(cut).map(|set| set.task.name.as_str()).collect();
    if !cut.is_empty() {
        bundle.notes.push(format!("they run in one piece, whatever `every` says: {}", cut.join(", ")));
    }
    let mut problems = Vec::new();
    let mut dag = format!("# {}: run it with `condor_submit_dag workflow.dag`\n", one_line(name));
    for set in &exported.sets {
        match describe(set) {
            Ok(text) => bundle.file(format!("{}.sub", set.name), text, false),
            Err(why) => problems.push(format!("`{}`: {why}", set.task.name)),
        }
        let _ = writeln!(dag, "\n# {}", one_line(&set.task.name));
        for job in &set.jobs {
            bundle.file(format!("{}.sh", job.place), job.script.clone(), true);
            bundle.jobs += 1;
            if let Err(why) = node(set, job, &mut dag) {
                problems.push(format!("`{}`: {why}", job.node));
            }
        }
        if let Some(most) = set.task.settings.at_most {
            let _ = writeln!(dag, "MAXJOBS {} {most}", category(set));
        }
    }
    if !problems.is_empty() {
        problems.truncate(10);
        return Err(ExportError::Refused(problems));
    }
    dag.push('\n');
    edges(&exported, &mut dag);
    let unpacks = exported.sets.iter().flat_map(|set| &set.jobs).any(|job| !job.archives.is_empty());
    if unpacks {
        bundle.file("unpack.sh", UNPACK, true);
    }
    bundle.file("workflow.dag", dag, false);
    bundle.file("README.md", readme(name, &exported.secrets, unpacks), false);
    Ok(bundle)
}

const UNPACK: &str = "\
#!/bin/bash
# Runs where the DAG was submitted, after a job that ended with $1: unpacks the archives that it left.
[ \"$1\" = 0 ] || exit 1
shift
cd files || exit 1
for archive in \"$@\"; do
  tar -xf \"$archive\" || exit 1
done
";

fn readme(name: &str, secrets: &[String], unpacks: bool) -> String {
    let mut text = format!(
        "# {}\n\nWritten by Tulpar for HTCondor's DAGMan; it runs without Tulpar:\n\n    condor_submit_dag workflow.dag\n\n\
         - `workflow.dag`: the jobs, what differs between them, and their order\n\
         - `NAME.sub`: what the jobs of one task set have in common\n\
         - `jobs/`: the command of every job\n\
         - `files/`: what jobs read and write, your data as links; results come here\n\
         - `logs/`: what jobs print\n\n\
         Not below `/tmp`: DAGMan refuses to work there. A failed DAG goes on where it stopped when it is submitted again.\n",
        one_line(name)
    );
    if unpacks {
        text.push_str(
            "\nHTCondor cannot send files whose names are not known before. Jobs that leave such files pack them into\n\
             `files/.archives/`; `unpack.sh` unpacks them after the job.\n",
        );
    }
    if !secrets.is_empty() {
        text.push_str("\nBefore it is submitted, put every secret into a file of its own that only you can read:\n\n");
        text.push_str("    umask 077; mkdir -p files/secrets\n");
        for secret in secrets {
            let _ = writeln!(text, "    printf %s \"${secret}\" > files/secrets/{secret}");
        }
    }
    text
}

fn describe(set: &Set<'_>) -> Result<String, String> {
    let settings = &set.task.settings;
    let request = &settings.request;
    let mut description = Description::new()
        .comment(&format!("{}: {} of a DAG; the DAG says what differs between them.", set.task.name, count(set)))
        .set("executable", Value::reference("script"))
        .set("initialdir", "files")
        .set("should_transfer_files", "YES")
        .set("preserve_relative_paths", true)
        .set("transfer_input_files", Value::reference("inputs"))
        .set("transfer_output_files", Value::reference("outputs"))
        // A job that failed has no outputs to send, and would be held for their want.
        .set("when_to_transfer_output", "ON_SUCCESS")
        .set("success_exit_code", 0)
        .set("max_retries", 0)
        .set("output", Value::plain("../logs/").then(Value::reference("JOB")).then(Value::plain(".out")))
        .set("error", Value::plain("../logs/").then(Value::reference("JOB")).then(Value::plain(".err")));
    if let Some(container) = &settings.environment.container {
        let image = if is_file(container) { image_name(container) } else { container };
        description = description.set("container_image", image);
    }
    if let Some(checkpoint) = &settings.checkpoint {
        let archive = checkpoint.files.iter().any(|file| is_pattern(file));
        let files: Vec<&str> = match archive {
            true => vec![CHECKPOINT],
            false => checkpoint.files.iter().map(|file| file.trim_end_matches('/')).collect(),
        };
        description = description.set("checkpoint_exit_code", 85).set("transfer_checkpoint_files", Value::files(files));
    }
    if let Some(grace) = settings.grace {
        description = description.set("job_max_vacate_time", grace.as_secs().max(1));
    }
    requests(description, request)?.queue(1).to_text().map_err(|error| error.to_string())
}

fn requests(mut description: Description, request: &Request) -> Result<Description, String> {
    if request.nodes > 1 {
        return Err("it needs several nodes at once, which a DAG's jobs do not have".to_owned());
    }
    let or = |bytes: Bytes, usual: Bytes| if bytes.0 == 0 { usual } else { bytes };
    description = description
        .set("request_cpus", u64::from(request.milli_cpus.div_ceil(1000).max(1)))
        .set("request_memory", format!("{}MB", or(request.memory, USUAL_MEMORY).0.div_ceil(MEBIBYTE)))
        .set("request_disk", format!("{}MB", or(request.disk, USUAL_DISK).0.div_ceil(MEBIBYTE)));
    if request.gpus > 0 {
        description = description.set("request_gpus", u64::from(request.gpus));
        if request.gpu_memory.0 > 0 {
            let memory = format!("{}MB", request.gpu_memory.0.div_ceil(MEBIBYTE));
            description = description.set("gpus_minimum_memory", memory);
        }
        if request.gpu_capability > 0 {
            let capability = format!("{}.{}", request.gpu_capability / 10, request.gpu_capability % 10);
            description = description.set("gpus_minimum_capability", capability);
        }
    }
    for (name, amount) in request.named.iter() {
        let plain: String = name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
        description = description.set(&format!("request_{plain}"), u64::from(amount.div_ceil(1000)));
    }
    if let Some(time) = request.time {
        // HTCondor holds a job that takes too long, and the DAG would wait for it.
        description = description
            .set("allowed_execute_duration", time.as_secs().max(1))
            .set("periodic_remove", "JobStatus == 5 && HoldReasonCode == 47");
    }
    Ok(description)
}

fn node(set: &Set<'_>, job: &Job, dag: &mut String) -> Result<(), String> {
    let settings = &set.task.settings;
    let name = &job.node;
    let list = |files: &[String]| match files.is_empty() {
        true => Ok("\"\"".to_owned()),
        false => Value::files(files.iter().map(String::as_str)).text.map_err(|error| error.to_string()),
    };
    let _ = writeln!(dag, "JOB {name} {}.sub", set.name);
    let _ = writeln!(
        dag,
        "VARS {name} script=\"{}.sh\" inputs=\"{}\" outputs=\"{}\"",
        job.place,
        variable(&list(&job.inputs)?),
        variable(&list(&job.outputs)?)
    );
    let retry = &settings.retry;
    if retry.times > 0 && retry.on.iter().any(|on| matches!(on, RetryOn::Failure | RetryOn::Exit(_))) {
        let _ = writeln!(dag, "RETRY {name} {}", retry.times);
    }
    if settings.priority != 0 {
        let _ = writeln!(dag, "PRIORITY {name} {}", settings.priority);
    }
    if settings.at_most.is_some() {
        let _ = writeln!(dag, "CATEGORY {name} {}", category(set));
    }
    if !job.archives.is_empty() {
        if job.archives.iter().any(|archive| archive.contains(char::is_whitespace)) {
            return Err("an output has a blank in its name".to_owned());
        }
        let _ = writeln!(dag, "SCRIPT POST {name} unpack.sh $RETURN {}", job.archives.join(" "));
    }
    Ok(())
}

/// Inside the quotes of `VARS`.
fn variable(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn category(set: &Set<'_>) -> String {
    format!("limit_{}", set.name)
}

fn count(set: &Set<'_>) -> String {
    match set.jobs.len() {
        1 => "one job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}

/// Jobs that wait for the same are said together, so that a barrier is one line.
fn edges(exported: &Exported<'_>, dag: &mut String) {
    let node = |job: &JobId| {
        let (set, number) = exported.places[job];
        exported.sets[set].jobs[number].node.as_str()
    };
    for set in &exported.sets {
        let mut waiting: BTreeMap<&[JobId], Vec<&str>> = BTreeMap::new();
        for job in set.jobs.iter().filter(|job| !job.parents.is_empty()) {
            waiting.entry(&job.parents).or_default().push(&job.node);
        }
        for (parents, children) in waiting {
            let parents: Vec<&str> = parents.iter().map(node).collect();
            let _ = writeln!(dag, "PARENT {} CHILD {}", parents.join(" "), children.join(" "));
        }
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}
