"""Tells Tulpar how a trial of a search goes. One file, standard library only; keep it beside your program.

    import tulpar_client as trial

    settings = trial.parameters({"lr": 0.01})   # what is tried; the defaults count when nobody searches
    for epoch in range(epochs):
        ...
        trial.report(loss, epoch)               # a number on the way; the last one counts
        if trial.should_prune():                # others are better, or the node is wanted back
            save_checkpoint()
            break

Without Tulpar around it, `report` prints its line, `should_prune` is false, and `parameters` gives the defaults.
"""

import json
import os
import signal
import threading

__all__ = ["parameters", "report", "should_prune"]

_told_to_stop = threading.Event()
_listening = False


def parameters(defaults=None):
    """The parameters of this trial by name, over the defaults. An inactive parameter keeps its default."""
    found = dict(defaults or {})
    found.update(json.loads(os.environ.get("TULPAR_PARAMETERS") or "{}"))
    return found


def report(value=None, step=None, **more):
    """Says the number of the first objective, at a step or at the end; others by name: report(loss, size=3)."""
    line = {} if step is None else {"step": int(step)}
    if value is not None:
        names = json.loads(os.environ.get("TULPAR_OBJECTIVES") or "[]")
        line[names[0] if names else "value"] = float(value)
    line.update((name, float(number)) for name, number in more.items())
    # Numbers that JSON does not have say that the trial has diverged, and Tulpar reads them so.
    text = json.dumps(line) + "\n"
    path = os.environ.get("TULPAR_REPORT")
    if path is None:
        print(text, end="", flush=True)
        return
    # One write a line: a reader never sees half of one.
    with open(path, "ab", buffering=0) as file:
        file.write(text.encode())


def should_prune():
    """Whether Tulpar has asked this program to end (SIGTERM). From the first call on it is for the program to end."""
    global _listening
    if not _listening:
        _listening = True
        try:
            signal.signal(signal.SIGTERM, lambda *_: _told_to_stop.set())
        except ValueError:
            # Only the main thread may listen; elsewhere the signal ends the program, as it always does.
            pass
    return _told_to_stop.is_set()
