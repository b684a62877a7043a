"""Writes workflows with Pegasus' own Python API, one folder each: what Tulpar must run unchanged."""
import os
import shutil
import sys
from pathlib import Path

from Pegasus.api import (
    File,
    Job,
    Namespace,
    OS,
    Properties,
    ReplicaCatalog,
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


for write in (diamond, split, merge, pipeline, checkpoint):
    write()
sys.exit(0)
