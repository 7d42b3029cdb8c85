"""Where the files are, and programs that check them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 120


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment that runs the tests."""
    program = Path(sys.executable).with_name(name)
    assert program.exists(), f"{name} is not beside {sys.executable}: requirements/infra.txt has it"
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run([program, *arguments], check=False, cwd=ROOT, text=True, timeout=_PATIENCE_S, **output)


def accepted(name: str, *arguments: str) -> None:
    """Run a program that must find nothing."""
    done = tool(name, *arguments)
    assert done.returncode == 0, done.stdout


def script(name: str) -> ModuleType:
    """One of the scripts in infra/, which are no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "infra" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
