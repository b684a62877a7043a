//! A workflow for Slurm: one array a task set, chained by dependencies, on a file system that all nodes share.

use super::dagman::one_line;
use super::jobs::{Exported, Set, image_name, is_file};
use super::{Bundle, ExportError};
use crate::pegasus::convert::command::word;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use tulpar_core::plan::Graph;
use tulpar_core::resources::USUAL_GRACE;
use tulpar_core::workflow::RetryOn;

const MEBIBYTE: u64 = 1 << 20;
/// For `run.sh` to ask for the job again, after the task has used its grace time.
const TIDYING: Duration = Duration::from_secs(20);
/// Larger arrays are refused where nobody changed the limit.
const LARGEST_ARRAY: usize = 1000;

/// Everything that `submit.sh` needs, in one folder on a file system that the nodes share.
pub fn slurm(graph: &Graph) -> Result<Bundle, ExportError> {
    let exported = Exported::new(graph)?;
    let name = &graph.plan().workflow.name;
    let mut bundle = Bundle {
        folders: vec!["files".to_owned(), "logs".to_owned(), "jobs".to_owned(), "work".to_owned()],
        links: exported.links.clone(),
        notes: exported.notes.clone(),
        ..Bundle::default()
    };
    for link in &mut bundle.links {
        link.path = format!("files/{}", link.path);
    }
    let mut submit = format!(
        "#!/bin/bash\n# {}: submits every task set, each after those that it needs.\nset -e\ncd \"$(dirname \"$0\")\"\n",
        one_line(name)
    );
    for (position, set) in exported.sets.iter().enumerate() {
        for job in &set.jobs {
            bundle.file(format!("{}.sh", job.place), job.script.clone(), true);
            let lines = |files: &[String]| files.iter().map(|file| format!("{file}\n")).collect::<String>();
            bundle.file(format!("{}.in", job.place), lines(&job.inputs), false);
            bundle.file(format!("{}.out", job.place), lines(&job.outputs), false);
            if let Some(checkpoint) = &set.task.settings.checkpoint {
                bundle.file(format!("{}.keep", job.place), lines(&checkpoint.files), false);
            }
            bundle.jobs += 1;
        }
        bundle.file(format!("{}.sbatch", set.name), batch(set), true);
        chain(&exported, position, &mut submit);
    }
    bundle.file("run.sh", RUN, true);
    bundle.file("submit.sh", submit, true);
    bundle.file("README.md", readme(name, &exported.secrets), false);
    Ok(bundle)
}

const RUN: &str = "\
#!/bin/bash
# run.sh JOB TRIES: one job in a folder of its own, with links to its inputs; its outputs go to files/ when it is done.
# JOB.keep names the files that hold its state: a later start, after a failure or a requeue, finds them again.
root=$PWD
job=$1
tries=$2
work=$root/work/${job#jobs/}

saved() {
  [ -e \"$root/$job.keep\" ] || return
  shopt -s nullglob globstar
  while IFS= read -r pattern; do
    IFS=
    for file in $pattern; do
      [ ! -e \"$file\" ] || printf '%s\\n' \"$file\"
    done
  done < \"$root/$job.keep\"
}

prepare() {
  # The old folder is there until the new one has all that is kept of it.
  [ -e \"$work\" ] || [ ! -e \"$work.new\" ] || mv \"$work.new\" \"$work\" || exit 1
  rm -rf \"$work.new\"
  mkdir -p \"$work\" \"$work.new\" || exit 1
  (cd \"$work\" && saved | tar -cf - --verbatim-files-from -T - | tar -xf - -C \"$work.new\") || exit 1
  rm -rf \"$work\" && mv \"$work.new\" \"$work\" || exit 1
  while IFS= read -r file; do
    mkdir -p \"$work/$(dirname \"$file\")\" && ln -sfn \"$root/files/$file\" \"$work/$file\" || exit 1
  done < \"$root/$job.in\"
}

start() {
  cd \"$work\" || exit 1
  [ -n \"$IMAGE\" ] || exec bash \"$root/$job.sh\"
  # The container sees this folder, and wherever links to data lead.
  declare -A seen
  binds=(--bind \"$root\")
  while IFS= read -r file; do
    place=$(dirname \"$(readlink -f \"$root/files/$file\")\")
    [ -n \"${seen[$place]}\" ] || binds+=(--bind \"$place\")
    seen[$place]=1
  done < \"$root/$job.in\"
  exec apptainer exec $IMAGE_OPTIONS \"${binds[@]}\" \"$IMAGE\" bash \"$root/$job.sh\"
}

# Slurm warns before the time limit: the task saves its state, and the job goes on later from there.
set -m
stopped=
trap 'stopped=1; kill -TERM -- -$child 2> /dev/null' TERM
code=1
while [ \"$tries\" -gt 0 ] && [ $code != 0 ] && [ -z \"$stopped\" ]; do
  tries=$((tries - 1))
  prepare
  # 85: it saved its state, and wants to go on.
  code=85
  while [ $code = 85 ] && [ -z \"$stopped\" ]; do
    (start) &
    child=$!
    wait $child
    code=$?
    # A signal ends the waiting; what saves its state is waited for.
    while [ -n \"$stopped\" ] && kill -0 -- -$child 2> /dev/null; do
      sleep 0.2
    done
  done
done
if [ $code != 0 ] && [ -n \"$stopped\" ] && [ -e \"$root/$job.keep\" ]; then
  scontrol requeue \"${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}\"
fi
[ $code = 0 ] || exit $code
while IFS= read -r file; do
  mkdir -p \"$root/files/$(dirname \"$file\")\" && mv -f \"$work/$file\" \"$root/files/$file\" || exit 1
  case $file in
    .archives/*) tar -xf \"$root/files/$file\" -C \"$root/files\" || exit 1 ;;
  esac
done < \"$root/$job.out\"
rm -rf \"$work\"
";

fn readme(name: &str, secrets: &[String]) -> String {
    let mut text = format!(
        "# {}\n\nWritten by Tulpar for Slurm; it runs without Tulpar, in a folder that all nodes share:\n\n    ./submit.sh\n\n\
         - `submit.sh`: submits every task set, each after those that it needs\n\
         - `NAME.sbatch`: what a task set asks for\n\
         - `jobs/`: the command of every job, and which files it reads (`.in`), leaves (`.out`) and goes on from (`.keep`)\n\
         - `run.sh`: runs one job in a folder of its own below `work/`\n\
         - `files/`: what jobs read and write, your data as links; results come here\n\
         - `logs/`: what jobs print\n",
        one_line(name)
    );
    if !secrets.is_empty() {
        text.push_str("\nBefore it is submitted, put every secret into a file of its own that only you can read:\n\n");
        text.push_str("    umask 077; mkdir -p files/secrets\n");
        for secret in secrets {
            let _ = writeln!(text, "    printf %s \"${secret}\" > files/secrets/{secret}");
        }
    }
    text
}

fn batch(set: &Set<'_>) -> String {
    let settings = &set.task.settings;
    let every = settings.checkpoint.as_ref().and_then(|checkpoint| checkpoint.every);
    let request = &settings.request.of_one_part(every, settings.grace);
    let scattered = !set.task.scatter.is_empty();
    let mut text = format!("#!/bin/bash\n# {}\n", one_line(&set.task.name));
    let _ = writeln!(text, "#SBATCH --job-name={}", set.name);
    let _ = writeln!(text, "#SBATCH --output=logs/{}{}.out", set.name, if scattered { "-%A_%a" } else { "" });
    let _ = writeln!(text, "#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1", request.nodes.max(1));
    let _ = writeln!(text, "#SBATCH --cpus-per-task={}", request.milli_cpus.div_ceil(1000).max(1));
    if request.memory.0 > 0 {
        let _ = writeln!(text, "#SBATCH --mem={}M", request.memory.0.div_ceil(MEBIBYTE));
    }
    if request.gpus > 0 {
        let _ = writeln!(text, "#SBATCH --gres=gpu:{}", request.gpus);
        if request.gpu_memory.0 > 0 || request.gpu_capability > 0 {
            let (memory, capability) = (request.gpu_memory, request.gpu_capability);
            let _ = writeln!(
                text,
                "# It needs GPUs with at least {memory} and capability {}.{}: name a type, --gres=gpu:TYPE:{}",
                capability / 10,
                capability % 10,
                request.gpus
            );
        }
    }
    if let Some(time) = request.time {
        let minutes = time.as_secs().div_ceil(60).max(1);
        let _ = writeln!(text, "#SBATCH --time={minutes}");
    }
    if settings.checkpoint.is_some() {
        let seconds = (settings.grace.unwrap_or(USUAL_GRACE) + TIDYING).as_secs();
        let _ = writeln!(text, "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --signal=B:TERM@{seconds}");
    }
    if settings.priority < 0 {
        let _ = writeln!(text, "#SBATCH --nice={}", settings.priority.unsigned_abs());
    }
    let retry = &settings.retry;
    let again = retry.on.iter().any(|on| matches!(on, RetryOn::Failure | RetryOn::Exit(_)));
    let tries = if again { retry.times + 1 } else { 1 };
    if let Some(container) = &settings.environment.container {
        let image = match is_file(container) {
            true => format!("\"$PWD\"/files/{}", word(image_name(container))),
            false => word(container),
        };
        let _ = writeln!(text, "export IMAGE={image}");
        if request.gpus > 0 {
            let _ = writeln!(text, "export IMAGE_OPTIONS=--nv");
        }
    }
    let job = match scattered {
        true => format!("\"jobs/{}/$((SLURM_ARRAY_TASK_ID + ${{OFFSET:-0}}))\"", set.name),
        false => format!("jobs/{}", set.name),
    };
    let _ = writeln!(text, "exec ./run.sh {job} {tries}");
    text
}

/// The lines that submit one task set: in several arrays where it is large.
fn chain(exported: &Exported<'_>, position: usize, submit: &mut String) {
    let set = &exported.sets[position];
    let variable = identifier(position, &set.name);
    if set.jobs.is_empty() {
        let _ = writeln!(submit, "{variable}=");
        return;
    }
    // Of each set that it waits for: whether every job waits for the one with its own number alone.
    let mut needed: BTreeMap<usize, bool> = BTreeMap::new();
    for (number, job) in set.jobs.iter().enumerate() {
        let mut of_set: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for parent in &job.parents {
            let (other, theirs) = exported.places[parent];
            of_set.entry(other).or_default().push(theirs);
        }
        for (other, theirs) in of_set {
            *needed.entry(other).or_insert(true) &= theirs == [number];
        }
    }
    let arrays = |set: &Set<'_>| !set.task.scatter.is_empty() && set.jobs.len() <= LARGEST_ARRAY;
    let mut dependencies = Vec::new();
    for (other, pairs) in needed {
        let theirs = &exported.sets[other];
        let equal = theirs.jobs.len() == set.jobs.len() && arrays(set) && arrays(theirs);
        let kind = if pairs && equal { "aftercorr" } else { "afterok" };
        dependencies.push(format!("{kind}$").to_owned() + &identifier(other, &theirs.name));
    }
    let dependency = match dependencies.is_empty() {
        true => String::new(),
        false => format!(" --kill-on-invalid-dep=yes --dependency=\"{}\"", dependencies.join(",")),
    };
    let file = format!("{}.sbatch", set.name);
    if set.task.scatter.is_empty() {
        let _ = writeln!(submit, "{variable}=:$(sbatch --parsable{dependency} {file})");
    } else {
        let most = set.task.settings.at_most.map_or(String::new(), |most| format!("%{most}"));
        let _ = writeln!(submit, "{variable}=");
        for first in (0..set.jobs.len()).step_by(LARGEST_ARRAY) {
            let last = (set.jobs.len() - first).min(LARGEST_ARRAY) - 1;
            let offset = if first == 0 { String::new() } else { format!(" --export=ALL,OFFSET={first}") };
            let _ =
                writeln!(submit, "{variable}+=:$(sbatch --parsable --array=0-{last}{most}{offset}{dependency} {file})");
        }
    }
    let _ = writeln!(submit, "echo \"{}${variable}\"", set.name);
}

fn identifier(position: usize, name: &str) -> String {
    format!("set{position}_{}", name.replace('-', "_"))
}
