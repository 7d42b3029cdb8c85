"""Logs that past commits wrote are read, judged and shown, and the API says of them what it said before."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.judge.runs.run import new_judge
from probe.judge.runs.saved import judge_files
from probe.web.api import listing
from probe.web.exports.archive import open_file

from ..support.api import LOCAL
from ..support.http import exchange
from ..support.probe import running
from .saved import FOLDER, LOGS, RECORDED, answers, names, recorded


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_log_of_a_past_program_is_read_to_its_end_and_judged(log: Path) -> None:
    opened = open_file(log)
    assert opened.log.entries
    assert not opened.is_cut_off
    assert opened.is_filtered == ("filtered" in log.name or "client" in log.name)
    assert bool(opened.log.gaps) == ("gap" in log.name)
    assert judge_files(new_judge(), [log]).report.subjects


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
async def test_every_page_of_the_api_shows_a_log_of_a_past_program(log: Path) -> None:
    """Each body is held to the description of the API."""
    async with running(judge=True, opened=open_file(log)) as probe:
        known = await names(probe)
        for route in listing.API:
            async with exchange(probe.app, "GET", route.path.format(**known), LOCAL) as answer:
                body = await answer.body()
            assert (answer.status, bool(body)) == (200, True), (route.path, body)


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.name)
async def test_the_answers_of_the_api_are_the_recorded_ones(file: Path) -> None:
    """What changes on purpose, such as a new rule of the judge, is recorded by `python -m tests.web.saved`."""
    said = await answers(FOLDER / file.name.removesuffix(".txt"))
    kept = recorded(file)
    assert len(said) == len(kept)
    for now, before in zip(said, kept, strict=True):
        path, *lines = now.splitlines()
        for line, recorded_line in zip(lines, before.splitlines()[1:], strict=False):
            assert line == recorded_line, f"{path.decode()}: run `python -m tests.web.saved` if this is meant"
        assert now == before
