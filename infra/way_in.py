"""The lines by which the documents start the server: from a clone, or from what is published. One switch turns them.

    python infra/way_in.py            writes the lines again, after a change in this file
    python infra/way_in.py ACCOUNT    before the first release: writes the account everywhere, and the published lines

The switch is the name in `server.json`: `io.github.OWNER/…` before the first release.
Needs Python 3.11 and nothing else.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NOBODY = "OWNER"
# what a reader copies or a registry reads; the page on releasing speaks of OWNER itself
NAMES_THE_ACCOUNT = (
    "README.md",
    "server.json",
    "docs/index.md",
    "docs/tutorial.md",
    "docs/judge.md",
    "docs/how-to/ci.md",
)


class Lines(NamedTuple):
    """One place of the documents, in both forms."""

    file: str
    from_clone: str
    published: str


_CLONE = """\
```sh
git clone https://github.com/OWNER/mcp-probe && cd mcp-probe
python3 -m venv .nox/boot && .nox/boot/bin/pip install -q nox && .nox/boot/bin/nox -s serve -- --open
```
"""
_PUBLISHED = """\
```sh
uvx mcp-probe-server serve --open
pipx run mcp-probe-server serve --open
docker run --rm --publish 127.0.0.1:8000:8000 ghcr.io/OWNER/mcp-probe
```
"""
_PRINTED = """\
```
MCP Probe listens on http://127.0.0.1:8000/mcp (toolsets: probe,streaming,features,dispatch,hosts)
Dashboard: http://127.0.0.1:8000/dashboard
```
"""
_NAMES = """\
With Docker, open the address that it prints. The package is called `mcp-probe-server`: the package `mcp-probe` on PyPI
is another program.
"""
_WORKFLOW = """\
```yaml
jobs:
  client:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - uses: actions/setup-python@v7
        with: {{ python-version: "3.13" }}
      - run: pip install {package} mcp pytest
      - run: mcp-probe judge --junit report.xml -- python my_client.py
      - run: pytest test_my_client.py
```
"""
PLACES = {
    "start": Lines(
        "README.md",
        f"""\
You need Python 3.11 or newer, and nothing else. These two commands clone the project, set it up in an environment of
its own, start the server and open the dashboard. The first start takes a minute or two:

{_CLONE}
{_PRINTED}
OWNER is the account that this repository belongs to. To have the command `mcp-probe` at hand, run `uv tool install .`
or `pipx install .` in the clone; both build the dashboard as well.

Once the package and the image are published, one of these lines does the same, and no clone is needed:

{_PUBLISHED}
{_NAMES}""",
        f"""\
You need uv, pipx or Docker. Each of these lines starts the server; the first two open the dashboard as well:

{_PUBLISHED}
{_PRINTED}
{_NAMES}To have the command `mcp-probe` at hand, run `uv tool install mcp-probe-server` or
`pipx install mcp-probe-server`.

From a clone, with Python 3.11 or newer and nothing else, two commands do the same. The first start takes a minute or
two:

{_CLONE}""",
    ),
    "home": Lines(
        "docs/index.md",
        """\
You need Python 3.11 or newer. One command starts it and opens the dashboard:

```sh
git clone https://github.com/OWNER/mcp-probe && cd mcp-probe &&
    python3 -m venv .nox/boot &&
    .nox/boot/bin/pip install -q nox &&
    .nox/boot/bin/nox -s serve -- --open
```
""",
        """\
One command starts it and opens the dashboard:

```sh
uvx mcp-probe-server serve --open
```
""",
    ),
    "tutorial": Lines(
        "docs/tutorial.md",
        f"""\
You need Python 3.11 or newer:

{_CLONE}
OWNER is the account that the repository belongs to. `uv tool install .` or `pipx install .` in the clone installs the
command `mcp-probe`, which the next steps use. The server prints two lines, and opens the second address in a browser:
""",
        """\
```sh
uv tool install mcp-probe-server
mcp-probe serve --open
```

`pipx install mcp-probe-server` installs it likewise. The server prints two lines, and opens the second address in a
browser:
""",
    ),
    "workflow": Lines(
        "docs/how-to/ci.md",
        _WORKFLOW.format(package="git+https://github.com/OWNER/mcp-probe")
        + "\nOWNER is the account that the repository belongs to. Once the package is published, its name\n"
        "`mcp-probe-server` takes the place of the address.\n",
        _WORKFLOW.format(package="mcp-probe-server"),
    ),
}


def account(root: Path) -> str:
    """The account that releases; `OWNER` until there is one."""
    name: str = json.loads((root / "server.json").read_text())["name"]
    return name.removeprefix("io.github.").partition("/")[0]


def is_published(root: Path) -> bool:
    """True if the switch is turned."""
    return account(root) != NOBODY


def write(root: Path) -> None:
    """Write every place in the form that the switch asks for. Raises `ValueError` where a place has no marks."""
    owner = account(root)
    for name, lines in PLACES.items():
        page = root / lines.file
        begin, end = f"<!-- begin {name}: python infra/way_in.py -->\n", f"<!-- end {name} -->\n"
        before, found, rest = page.read_text().partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{lines.file} has no {begin.strip()} … {end.strip()}")
        text = lines.published if is_published(root) else lines.from_clone
        page.write_text(f"{before}{begin}\n{text.replace(NOBODY, owner)}\n{end}{after}")


def turn(root: Path, owner: str) -> None:
    """Write an account in the place of OWNER, and the published form everywhere."""
    for name in NAMES_THE_ACCOUNT:
        file = root / name
        file.write_text(re.sub(rf"\b{NOBODY}\b", owner, file.read_text()))
    write(root)


if __name__ == "__main__":
    if sys.argv[1:]:
        turn(ROOT, sys.argv[1])
    else:
        write(ROOT)
