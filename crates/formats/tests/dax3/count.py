"""Counts what is in DAX files, knowing nothing of Tulpar: the judge of its reader.

Reads paths from stdin, one a line, and prints one JSON object with the counts of each.
"""
import json
import sys
import xml.etree.ElementTree as tree


def name(element):
    return element.tag.rsplit("}")[-1]


def named(element):
    return element.get("name") or element.get("file")


def children(element, *names):
    return [child for child in element if name(child) in names]


def count(path):
    root = tree.parse(path).getroot()
    jobs = children(root, "job", "dax", "dag")
    files, made, edges, uses = set(), {}, set(), 0
    bundled = {}
    for found in children(root, "transformation"):
        data = [named(use) for use in children(found, "uses") if use.get("executable") == "false"]
        bundled[(found.get("namespace"), found.get("name"), found.get("version"))] = data
        files.update(data)
    read = {}
    for job in jobs:
        if name(job) != "job":
            files.add(named(job))
        for stream in children(job, "stdin", "stdout", "stderr"):
            files.add(named(stream))
        own = children(job, "uses")
        key = (job.get("namespace"), job.get("name"), job.get("version"))
        extra = [data for data in bundled.get(key, []) if data not in map(named, own)]
        uses += len(own) + len(extra)
        read[job.get("id")] = set()
        for use in own:
            files.add(named(use))
            if use.get("link") == "output":
                made.setdefault(named(use), set()).add(job.get("id"))
            elif use.get("link") == "input":
                read[job.get("id")].add(named(use))
    for job, inputs in read.items():
        for data in inputs:
            edges |= {(maker, job) for maker in made.get(data, ()) if maker != job}
    for child in children(root, "child"):
        edges |= {(parent.get("ref"), child.get("ref")) for parent in children(child, "parent")}
    known = {"env", "condor", "dagman", "pegasus", "globus", "hints", "selector"}
    profiles = [p for job in jobs for p in children(job, "profile") if p.get("namespace") in known]
    programs = children(root, "executable")
    return {
        "jobs": len(jobs),
        "files": len(files),
        "uses": uses,
        "edges": len(edges),
        "dependencies": sum(len(children(child, "parent")) for child in children(root, "child")),
        "profiles": len(profiles) + sum(job.get("runtime") is not None for job in jobs),
        "hooks": len(children(root, "invoke")) + sum(len(children(job, "invoke")) for job in jobs),
        "programs": sum(len(children(program, "pfn")) for program in programs),
        "sizes": sum(
            int(float(use.get("size") or next((m.text for m in children(use, "metadata") if m.get("key") == "size"), 0)))
            for job in jobs
            for use in children(job, "uses")
        ),
    }


print(json.dumps({path: count(path) for path in sys.stdin.read().split("\n") if path}))
