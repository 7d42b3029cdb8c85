"""Runs the Azure CLI, which has to be installed and logged in."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from itertools import takewhile


class AzureError(Exception):
    """A command of the Azure CLI has failed; the message says which. The CLI itself has said why."""


def az(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run one command and return what it printed. `env` is the whole environment. Raises `AzureError`."""
    done = subprocess.run(["az", *arguments], check=False, stdout=subprocess.PIPE, text=True, env=env)
    if done.returncode != 0:
        words = takewhile(lambda word: not word.startswith("--"), arguments)
        raise AzureError(f"az {' '.join(words)} ended with {done.returncode}")
    return done.stdout
