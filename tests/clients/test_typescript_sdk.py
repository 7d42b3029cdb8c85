"""The official TypeScript SDKs: 1.32.2, which is legacy, and 2.4.0 in the modern era.

The stories are in tests/node/client; each is one test here. Needs `npm ci` in tests/node.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from .node_stories import names, run_stories

# what the stories of a file take one after the other, several times over
BOUND_S = 180.0
LEGACY, MODERN, SKILLS = "stories.test.mjs", "modern.test.mjs", "skills.test.mjs"


@pytest.fixture(scope="session")
def legacy(server: str) -> Mapping[str, str]:
    return run_stories(LEGACY, server, bound_s=BOUND_S)


@pytest.fixture(scope="session")
def modern(server: str) -> Mapping[str, str]:
    return run_stories(MODERN, server, bound_s=BOUND_S)


@pytest.fixture(scope="session")
def skills(server: str) -> Mapping[str, str]:
    return run_stories(SKILLS, server, bound_s=BOUND_S)


@pytest.mark.parametrize("name", names(LEGACY))
def test_typescript_sdk(legacy: Mapping[str, str], name: str) -> None:
    assert legacy[name] == ""


@pytest.mark.parametrize("name", names(MODERN))
def test_typescript_sdk_in_the_modern_era(modern: Mapping[str, str], name: str) -> None:
    assert modern[name] == ""


@pytest.mark.parametrize("name", names(SKILLS))
def test_typescript_sdk_with_its_skills_extension(skills: Mapping[str, str], name: str) -> None:
    assert skills[name] == ""
