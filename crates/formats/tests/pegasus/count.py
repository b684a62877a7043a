"""Counts what is in Pegasus files, knowing nothing of Tulpar: the judge of its reader.

Reads paths from stdin, one a line, and prints one JSON object with the counts of each.
"""
import json
import sys

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def own(mapping):
    return {key: value for key, value in (mapping or {}).items() if not str(key).startswith("x-")}


def profiles(owner):
    return sum(len(own(keys)) for keys in own((owner or {}).get("profiles")).values())


def workflow(document):
    jobs = document.get("jobs") or []
    made, edges, files, uses = {}, set(), set(), 0
    for job in jobs:
        for use in job.get("uses") or []:
            uses += 1
            files.add(use["lfn"])
            if use["type"] in ("output", "inout"):
                made.setdefault(use["lfn"], set()).add(job["id"])
    for job in jobs:
        for name in (job.get(key) for key in ("stdin", "stdout", "stderr", "file")):
            if name:
                files.add(name)
        for use in job.get("uses") or []:
            if use["type"] in ("input", "inout"):
                edges |= {(parent, job["id"]) for parent in made.get(use["lfn"], ()) if parent != job["id"]}
    for entry in document.get("jobDependencies") or []:
        edges |= {(entry["id"], child) for child in entry.get("children") or []}
    counts = {
        "jobs": len(jobs),
        "edges": len(edges),
        "files": len(files),
        "uses": uses,
        "profiles": profiles(document) + sum(profiles(job) for job in jobs),
        "arguments": sum(len(" ".join(map(str, job.get("arguments") or [])).strip()) for job in jobs),
        "hooks": sum(len((owner.get("hooks") or {}).get("shell") or []) for owner in [document, *jobs]),
    }
    for name in ("replicaCatalog", "transformationCatalog", "siteCatalog"):
        add(counts, catalogue(document.get(name) or {}))
    return counts


def catalogue(document):
    replicas = document.get("replicas") or []
    transformations = document.get("transformations") or []
    containers = document.get("containers") or []
    sites = document.get("sites") or []
    entries = [site for transformation in transformations for site in transformation.get("sites") or []]
    return {
        "replicas": len({(entry["lfn"], bool(entry.get("regex"))) for entry in replicas}),
        "transformations": len(transformations),
        "programs": len(entries),
        "containers": len(containers),
        "sites": len(sites),
        "directories": sum(len(site.get("directories") or []) for site in sites),
        "grids": sum(len(site.get("grids") or []) for site in sites),
        "profiles": sum(profiles(owner) for owner in [*transformations, *entries, *containers, *sites]),
        "hooks": sum(len((owner.get("hooks") or {}).get("shell") or []) for owner in transformations),
    }


def add(counts, more):
    for key, value in more.items():
        counts[key] = counts.get(key, 0) + value


def main():
    found = {}
    for path in sys.stdin.read().splitlines():
        with open(path, encoding="utf-8") as text:
            document = yaml.load(text, Loader=LOADER) or {}
        counts = workflow({}) if not isinstance(document, dict) else None
        if counts is None:
            counts = workflow(document)
            add(counts, catalogue(document))
        found[path] = counts
    json.dump(found, sys.stdout)


main()
