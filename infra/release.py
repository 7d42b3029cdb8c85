"""Says whether this tree may be released under a tag, and prints what is new in it.

    python infra/release.py v0.1.0 --name ACCOUNT/mcp-probe

The tag, the package, `server.json` and the changelog must have the same version, and what names the account on GitHub
must name the one that releases: `python infra/way_in.py ACCOUNT` writes it before the first release. Prints the section
of the changelog and ends with 0, or prints on standard error what is wrong, a line for each, and ends with 1. Needs
Python 3.11 and nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# PEP 440 and Semantic Versioning agree on these, and on how they are ordered
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


def package_version(root: Path) -> str:
    """The version that the wheel will have."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "src/probe/__init__.py").read_text(), re.MULTILINE)
    return found[1] if found else ""


def notes(root: Path, version: str) -> str:
    """The section of a version in the changelog, without its heading; empty where there is none."""
    text = (root / "CHANGELOG.md").read_text()
    found = re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def mistakes(root: Path, tag: str, name: str) -> Iterator[str]:
    """What keeps `name`, an account and a repository such as `someone/mcp-probe`, from releasing this tag."""
    version = tag.removeprefix("v")
    if tag == version or not VERSION.fullmatch(version):
        yield f"{tag} is no tag of a release, such as v1.2.3 or v1.2.3rc1"
    if package_version(root) != version:
        yield f"src/probe/__init__.py has version {package_version(root)}"
    if not notes(root, version):
        yield f"CHANGELOG.md has nothing under '## {version} - YEAR-MONTH-DAY'"
    yield from _listing_mistakes(json.loads((root / "server.json").read_text()), version, name)
    owner, _, _ = name.partition("/")
    readme = (root / "README.md").read_text()
    if readme.find("git clone ") < readme.find("uvx "):
        yield f"README.md starts the server from a clone: python infra/way_in.py {owner}"
    for wanted in (f"mcp-name: io.github.{owner}/mcp-probe", f"ghcr.io/{name.lower()}"):
        if wanted not in readme:
            yield f"README.md does not have {wanted!r}"


def _listing_mistakes(listing: dict[str, object], version: str, name: str) -> Iterator[str]:
    owner, _, _ = name.partition("/")
    if listing["name"] != f"io.github.{owner}/mcp-probe":
        yield f"server.json has the name {listing['name']}"
    if listing["version"] != version:
        yield f"server.json has version {listing['version']}"
    packages = listing["packages"]
    assert isinstance(packages, list)
    for package in packages:
        image = package["registryType"] == "oci"
        if image and package["identifier"] != f"ghcr.io/{name.lower()}:{version}":
            yield f"server.json has the image {package['identifier']}"
        if not image and package["version"] != version:
            yield f"server.json has version {package['version']} of the package"


def main(arguments: list[str]) -> int:
    """Check this tree; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check a release and print its notes.")
    parser.add_argument("tag", help="the tag of the release, such as v0.1.0")
    parser.add_argument("--name", required=True, help="account and repository on GitHub, such as someone/mcp-probe")
    given = parser.parse_args(arguments)
    found = [*mistakes(ROOT, given.tag, given.name)]
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(notes(ROOT, given.tag.removeprefix("v")))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
