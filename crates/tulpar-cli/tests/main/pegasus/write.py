"""Writes workflows with Pegasus' own Python API, one folder each: what Tulpar must run unchanged."""
import os
import shutil
import sys
from pathlib import Path

from Pegasus.api import (
    EventType,
    File,
    Job,
    Namespace,
    OS,
    Properties,
    ReplicaCatalog,
    SubWorkflow,
    Transformation,
    TransformationCatalog,
    Workflow,
)

HERE = Path.cwd()

# Concatenates its inputs into each of its outputs, and says what it did.
TOOL = """#!/bin/sh
name=$2; shift 2
inputs=; outputs=; into=
for word in "$@"; do
  case "$word" in
    -i) into=in ;;
    -o) into=out ;;
    *) if [ $into = in ]; then inputs="$inputs $word"; else outputs="$outputs $word"; fi ;;
  esac
done
for output in $outputs; do { echo "$name"; cat $inputs; } > $output; done
"""

# Counts to three, but is stopped each time; continues from its checkpoint.
COUNT = """#!/bin/sh
n=$(cat count.checkpoint)
n=$((n + 1))
echo $n > count.checkpoint
[ $n -lt 3 ] && exit 1
echo "counted to $n"
"""


def folder(name):
    path = HERE / name
    path.mkdir()
    os.chdir(path)
    return path


def installed(name):
    path = shutil.which(name)
    return Transformation(name, site="condorpool", pfn=path, is_stageable=False, os_type=OS.LINUX)


def staged(name, text):
    path = Path(name + ".sh")
    path.write_text(text)
    return Transformation(name, site="local", pfn=str(path.resolve()), is_stageable=True)


def finish(name, replicas, transformations, jobs):
    files = ReplicaCatalog()
    for lfn, text in replicas.items():
        path = Path("input") / lfn
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        files.add_replica("local", lfn, str(path.resolve()))
    files.write()
    TransformationCatalog().add_transformations(*transformations).write()
    workflow = Workflow(name)
    workflow.add_jobs(*jobs)
    workflow.write()


def diamond():
    folder("diamond")
    tool = staged("tool", TOOL)
    a, b1, b2, c1, c2, d = (File(name) for name in ("f.a", "f.b1", "f.b2", "f.c1", "f.c2", "f.d"))
    jobs = [
        Job(tool).add_args("-a", "preprocess", "-i", a, "-o", b1, b2).add_inputs(a).add_outputs(b1, b2, stage_out=False),
        Job(tool).add_args("-a", "findrange", "-i", b1, "-o", c1).add_inputs(b1).add_outputs(c1, stage_out=False),
        Job(tool).add_args("-a", "findrange", "-i", b2, "-o", c2).add_inputs(b2).add_outputs(c2, stage_out=False),
        Job(tool).add_args("-a", "analyze", "-i", c1, c2, "-o", d).add_inputs(c1, c2).add_outputs(d),
    ]
    finish("diamond", {"f.a": "start\n"}, [tool], jobs)


def split():
    folder("split")
    transformations = [installed("split"), installed("wc")]
    page = File("page.html")
    parts = [File("part." + letter) for letter in "abcd"]
    jobs = [Job("split").add_args("-l", "100", "-a", "1", page, "part.").add_inputs(page).add_outputs(*parts, stage_out=False)]
    for part in parts:
        count = File("count.txt." + part.lfn[-1])
        jobs.append(Job("wc").add_args("-l", part).add_inputs(part).set_stdout(count, stage_out=True, register_replica=True))
    finish("split", {"page.html": "line\n" * 350}, transformations, jobs)


def merge():
    folder("merge")
    transformations = [installed("echo"), installed("cat")]
    parts = [File(f"listing-{number}.txt") for number in range(3)]
    jobs = [
        Job("echo").add_args(f"'part  {number}'").set_stdout(part, stage_out=False) for number, part in enumerate(parts)
    ]
    merged = File("merged.txt")
    jobs.append(Job("cat").add_args(*parts).add_inputs(*parts).set_stdout(merged))
    finish("merge", {}, transformations, jobs)


def pipeline():
    folder("pipeline")
    transformations = [installed("cat"), installed("wc")]
    page, copy, count = File("page"), File("copy.html"), File("count.txt")
    jobs = [
        Job("cat").add_args(page).add_inputs(page).set_stdout(copy, stage_out=False),
        Job("wc").add_args("-l").set_stdin(copy).set_stdout(count),
    ]
    finish("pipeline", {"page": "one\ntwo\n"}, transformations, jobs)


def checkpoint():
    folder("checkpoint")
    count = staged("count", COUNT)
    out = File("out.txt")
    job = Job(count).add_checkpoint(File("count.checkpoint")).set_stdout(out)
    job.add_profiles(Namespace.DAGMAN, key="RETRY", value="2")
    properties = Properties()
    properties["pegasus.data.configuration"] = "condorio"
    properties.write()
    finish("checkpoint", {"count.checkpoint": "0\n"}, [count], [job])


# Writes a workflow of one job, as a job of another workflow would.
GENERATE = """#!/bin/sh
cat > made.yml <<END
pegasus: "5.0"
name: made
jobs:
- type: job
  name: tool
  id: J1
  arguments: [-a, generated, -i, seed.txt, -o, grown.txt]
  uses:
  - {lfn: seed.txt, type: input}
  - {lfn: grown.txt, type: output, stageOut: true}
END
"""


def chain(tool, name, source, target, **options):
    """One job that writes `target` from `source`."""
    job = Job(tool).add_args("-a", name, "-i", source, "-o", target)
    return job.add_inputs(source).add_outputs(target, **options)


def hierarchical():
    """A workflow as an object inside another, and one more inside that; a file of each goes on to the next."""
    folder("hierarchical")
    tool = staged("tool", TOOL)
    start, a, b, c, d = (File(name) for name in ("start", "a", "deep/b", "c", "d"))
    innermost = Workflow("innermost")
    innermost.add_jobs(chain(tool, "innermost", b, c))
    inner = Workflow("inner")
    innermost_job = SubWorkflow(innermost, _id="innermost").add_inputs(b).add_outputs(c, stage_out=False)
    inner.add_jobs(chain(tool, "inner", a, b, stage_out=False), innermost_job)
    inner_job = SubWorkflow(inner, _id="inner").add_inputs(a).add_outputs(c)
    inner_job.add_planner_args(output_sites=["local"], verbose=3, basename="inner")
    jobs = [chain(tool, "outer", start, a, stage_out=False), inner_job, chain(tool, "last", c, d)]
    finish("hierarchical", {"start": "start\n"}, [tool], jobs)


def from_file():
    """A workflow in a file of its own, with its own properties and catalogues, given as inputs for planning."""
    folder("from-file")
    tool, other = staged("tool", TOOL), staged("other", TOOL)
    start, a, b = File("start"), File("a"), File("b")
    names = ("inner.yml", "inner.properties", "tc.yml")
    files = {name: File(name, for_planning=True) for name in names}
    Workflow("inner").add_jobs(chain(other, "inner", a, b)).write("inner.yml")
    TransformationCatalog().add_transformations(other).write("tc.yml")
    Path("inner.properties").write_text("pegasus.catalog.transformation.file = tc.yml\n")
    inner = SubWorkflow(files["inner.yml"], _id="inner").add_inputs(a).add_outputs(b)
    inner.add_inputs(files["inner.properties"], files["tc.yml"]).add_planner_args(conf="inner.properties")
    texts = {name: Path(name).read_text() for name in files}
    finish("from-file", {"start": "start\n", **texts}, [tool], [chain(tool, "outer", start, a), inner])


def dynamic():
    """A job writes the workflow that another job is."""
    folder("dynamic")
    tool, generate = staged("tool", TOOL), staged("generate", GENERATE)
    made, seed = File("made.yml"), File("seed.txt")
    jobs = [Job(generate).add_outputs(made, stage_out=False), SubWorkflow(made, _id="grow").add_inputs(seed)]
    finish("dynamic", {"seed.txt": "seed\n"}, [tool, generate], jobs)


def clustered():
    """Jobs that Pegasus would put together by size and by label."""
    folder("clustered")
    tool, join = staged("tool", TOOL), staged("join", TOOL)
    tool.add_pegasus_profile(clusters_size=2)
    start, end = File("start"), File("end")
    parts = [File(f"part-{number}") for number in range(5)]
    jobs = [chain(tool, f"part{number}", start, part, stage_out=False) for number, part in enumerate(parts)]
    for number, job in enumerate(jobs):
        job.add_pegasus_profile(label=f"cluster-{number % 2}", runtime=10)
    last = Job(join).add_args("-a", "join", "-i", *parts, "-o", end).add_inputs(*parts).add_outputs(end)
    finish("clustered", {"start": "start\n"}, [tool, join], jobs + [last])


def hooks():
    """Commands for when the workflow, all jobs of a kind and one job begin and end."""
    folder("hooks")
    tool = staged("tool", TOOL)
    tool.add_shell_hook(EventType.SUCCESS, 'echo "$PEGASUS_JOBID $PEGASUS_EVENT $PEGASUS_STATUS" >> seen')
    start, end = File("start"), File("end")
    job = chain(tool, "only", start, end)
    job.add_shell_hook(EventType.ALL, 'echo "one: $PEGASUS_EVENT" >> seen')
    job.add_shell_hook(EventType.ERROR, "echo never >> seen")
    ReplicaCatalog().add_replica("local", "start", str(Path("start").resolve())).write()
    Path("start").write_text("start\n")
    TransformationCatalog().add_transformations(tool).write()
    workflow = Workflow("hooks")
    workflow.add_shell_hook(EventType.END, 'echo "workflow: $PEGASUS_EVENT $PEGASUS_STATUS" >> seen; ls "$PEGASUS_SUBMIT_DIR" > there')
    workflow.add_shell_hook(EventType.NEVER, "echo never >> seen")
    workflow.add_jobs(job)
    workflow.write()


for write in (diamond, split, merge, pipeline, checkpoint, hierarchical, from_file, dynamic, clustered, hooks):
    write()
sys.exit(0)
