"""How the program tunes the garbage collector, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_RUN = """
import gc
import sys
from probe.cli.starting import tune_garbage_collection

tune_garbage_collection()
looked = []
kept = []

def count(phase, info):
    if phase == "start":
        # From 3.14 on what is not young is old.
        young = 1 if sys.version_info >= (3, 14) else info["generation"] + 1
        looked.append(sum(len(gc.get_objects(generation=each)) for each in range(young)))

gc.callbacks.append(count)
for _ in range(300_000):
    kept.append([kept])
gc.callbacks.clear()
print(len(looked), max(looked))
"""


def test_no_pass_over_new_objects_looks_at_more_than_35_000() -> None:
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=True, timeout=100)
    passes, most = map(int, done.stdout.split())
    assert passes > 20
    # It stops all tasks: 60,000 took 60 ms beside many rooms.
    assert most < 35_000
