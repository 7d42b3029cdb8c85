"""`python -m tests.fuzz --minutes 10 [--seed 1]`: one seed after the other until the time is over or one fails."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

_HERE = Path(__file__).parent
_HANGS_S = 1800.0
"""Far beyond what one seed takes; a run that takes so long has found a hang."""


def run(seed: int) -> int:
    """All fuzz tests with one seed; the exit code of pytest."""
    options = ("-q", "-x", "-n", "auto", "-p", "no:cacheprovider", "--timeout", f"{_HANGS_S:.0f}")
    command = [sys.executable, "-m", "pytest", *options, str(_HERE)]
    environment = {**os.environ, "FUZZ_SEED": str(seed)}
    return subprocess.run(command, env=environment, cwd=_HERE.parents[1], check=False, timeout=2 * _HANGS_S).returncode


def main() -> int:
    """The exit code: that of the first run that fails."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="begin no other seed after so long")
    parser.add_argument("--seed", type=int, default=None, help="the first one; by default it depends on the time")
    asked = parser.parse_args()
    seed = int(time.time()) if asked.seed is None else asked.seed
    end = time.monotonic() + asked.minutes * 60
    while True:
        print(f"seed {seed}", flush=True)
        code = run(seed)
        if code:
            print(f"seed {seed} fails; again with: FUZZ_SEED={seed} pytest tests/fuzz", flush=True)
            return code
        if time.monotonic() >= end:
            return 0
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
