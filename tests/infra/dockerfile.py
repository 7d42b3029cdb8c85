"""Does what a Dockerfile says, in folders instead of images: one folder per stage, and paths of the image are below it.

COPY takes from what `.dockerignore` leaves of the tree or from the folder of an earlier stage; RUN runs the same
program with the same arguments. So a file that is not copied is not there, a script that needs more than it is given
fails, and what the last stage holds is what the image would hold beside its base. What stays untested is the base
image, and that a container engine reads the file in the same way.
"""

from __future__ import annotations

import fnmatch
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE_S = 600


@dataclass
class Stage:
    """One stage: its folder, and what is set in it."""

    root: Path
    workdir: Path = Path("/")
    environment: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    user: str = "root"
    signal: str = ""

    def place(self, path: str) -> Path:
        """Where a path of the image is."""
        return self.root / (self.workdir / path).relative_to("/")

    def placed(self, words: list[str]) -> list[str]:
        """A command, with the paths of the image in it where they are."""
        return [str(self.place(word)) if word.startswith("/") else word for word in words]


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, rest) for each line that is one, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [(word.upper(), rest.strip()) for word, _, rest in pairs]


def context(tree: Path, ignore: Path, home: Path) -> Path:
    """The build context: a copy of the tree without what `.dockerignore` leaves out, where the last match wins."""
    rules = [line for line in ignore.read_text().splitlines() if line and not line.startswith("#")]
    listed = subprocess.run(["git", "ls-files", "-co", "-z"], cwd=tree, check=True, stdout=subprocess.PIPE)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if _kept(name, rules) and (tree / name).exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, home / name)
    return home


def _kept(name: str, rules: list[str]) -> bool:
    kept = True
    for rule in rules:
        pattern = rule.removeprefix("!")
        if _covers(pattern, name):
            kept = rule.startswith("!")
    return kept


def _covers(pattern: str, name: str) -> bool:
    # a rule for a folder covers what is in it; * does not cross a slash, except that ** does
    parts = name.split("/")
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatch(part, pattern[3:]) for part in parts)
    wanted = pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatch, parts, wanted))


class Build:
    """Builds every stage below `home`."""

    def __init__(self, home: Path, source: Path) -> None:
        self.home = home
        self.source = source
        self.stages: dict[str, Stage] = {}
        self.last = Stage(home)

    def run(self, dockerfile: str) -> Stage:
        """Do all of it; gives the last stage. Raises `AssertionError` for what fails and for what it does not know."""
        for word, rest in instructions(dockerfile):
            step = getattr(self, f"_{word.lower()}", None)
            assert step is not None, f"{word} is unknown here"
            step(rest)
        return self.last

    def _from(self, rest: str) -> None:
        base, _, name = rest.partition(" AS ")
        assert base == "${PYTHON}", "every stage stands on the one base image"
        name = name or "image"
        root = self.home / name
        root.mkdir(parents=True)
        self.last = self.stages[name] = Stage(root)
        # the base image's Python: a stage may change it, so each has its own
        shutil.copytree(self._python(), root / "base", symlinks=True)

    def _python(self) -> Path:
        python = self.home / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", python], check=True, timeout=_PATIENCE_S)
        return python

    def _workdir(self, rest: str) -> None:
        self.last.workdir = Path(rest)
        self.last.place(".").mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        words = shlex.split(rest)
        stage = self.stages[words.pop(0).removeprefix("--from=")] if words[0].startswith("--from=") else None
        *sources, to = words
        target = self.last.place(to)
        for source in sources:
            found = stage.place(source) if stage else self.source / source
            assert found.exists(), f"COPY {source}: there is none"
            _copied(found, target, into=to.endswith("/"))

    def _run(self, rest: str) -> None:
        words = json.loads(rest)
        if words[0] == "install" and os.geteuid() != 0:
            # only root gives files away
            words = [word for word in words if word not in ("-o", "-g", "10001")]
        base = {"PATH": f"{self.last.root / 'base' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        variables = {**os.environ, **base, **self.last.environment}
        variables.pop("PYTHONPATH", None)
        command = self.last.placed(words)
        done = subprocess.run(
            command,
            check=False,
            cwd=self.last.place("."),
            env=variables,
            timeout=_PATIENCE_S,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"

    def _env(self, rest: str) -> None:
        self.last.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))

    def _user(self, rest: str) -> None:
        self.last.user = rest

    def _healthcheck(self, rest: str) -> None:
        self.last.health = json.loads(rest.partition("CMD ")[2])

    def _entrypoint(self, rest: str) -> None:
        self.last.entrypoint = json.loads(rest)

    def _cmd(self, rest: str) -> None:
        self.last.command = json.loads(rest)

    def _stopsignal(self, rest: str) -> None:
        self.last.signal = rest

    def _arg(self, rest: str) -> None:
        """A name for what the caller may set."""

    def _expose(self, rest: str) -> None:
        """For people."""

    def _label(self, rest: str) -> None:
        """For people."""


def _copied(source: Path, target: Path, *, into: bool) -> None:
    """As COPY does: the contents of a folder, or a file into a folder that ends with a slash."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
        return
    if into:
        target.mkdir(parents=True, exist_ok=True)
        target /= source.name
    shutil.copy2(source, target)
