"""The judge: HTCondor's own bindings read a log that grows piece by piece, and say what they find after each piece.

Arguments: the log, and the sizes at which it is to be looked at. Prints one line of JSON a look: a list of events.
"""
import json, os, sys, tempfile

import classad2, htcondor2


def plain(value):
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, classad2.ClassAd):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return "{%s}" % ",".join(str(inner) for inner in value)
    return "".join(str(value).split())


def main():
    with open(sys.argv[1], "rb") as log:
        whole = log.read()
    with tempfile.NamedTemporaryFile(suffix=".log") as growing:
        events = htcondor2.JobEventLog(growing.name)
        written = 0
        for size in map(int, sys.argv[2:]):
            growing.write(whole[written:size])
            growing.flush()
            written = size
            seen = []
            for event in events.events(0):
                about = {name: plain(value) for name, value in dict(event).items()}
                about.update(Kind=int(event.type), Cluster=event.cluster, Proc=event.proc)
                seen.append(about)
            print(json.dumps(seen))


main()
