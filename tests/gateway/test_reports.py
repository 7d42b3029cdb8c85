"""Findings in each format, accepted deviations, exit codes; a saved run has the findings of the run itself."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

from probe.gateway.behind import Behind
from probe.gateway.checks import CheckResult, GatewayVerdict, Hint, catalogue, judge
from probe.gateway.client.records import ClientExchange
from probe.gateway.report import FORMATS, Allowed, AllowedError, document, exit_code, read_allowed, summary, table
from probe.gateway.side import Way
from probe.gateway.trials import GatewayRun, RunError, Trial, dump, load

from .faults import Http10, ResultChanged
from .runs import tried

SCHEMA = Path(__file__).parents[2] / "docs" / "gateway.schema.json"
HOSTILE = "\x1b[2J</td><script>alert(1)</script> | `x` & \x00"
RUN = GatewayRun(
    "1.0", 0.0, "http://127.0.0.1:1/mcp", f"http://gateway/{HOSTILE}", "quick", (), {"direct": (), "through": ()}
)


def finding(number: int, verdict: GatewayVerdict, said: str = "") -> CheckResult:
    return CheckResult(
        catalogue()[number],
        verdict,
        "1",
        said,
        said,
        (Hint(None, ("mend it",)), Hint("nginx", ("first;", "second;"))),
        {"direct": ("c1",), "through": ("c2",)},
    )


FINDINGS = [
    finding(1, GatewayVerdict.SAME),
    finding(2, GatewayVerdict.DEGRADED, HOSTILE),
    finding(8, GatewayVerdict.BROKEN, HOSTILE),
    finding(13, GatewayVerdict.NOT_APPLICABLE),
    finding(26, GatewayVerdict.UNCLEAR, HOSTILE),
]


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_gateway_says_is_text(form: str) -> None:
    text = (FORMATS | {"table": partial(table, verbose=True)})[form](RUN, FINDINGS, Allowed())
    assert "\x1b" not in text
    assert "\x00" not in text
    if form in ("html", "junit", "markdown"):
        assert "<script>" not in text
    assert all(each.name in text for each in FINDINGS)


def test_a_table_has_the_worst_first_and_folds_what_is_the_same() -> None:
    found = [finding(3, GatewayVerdict.SAME), finding(4, GatewayVerdict.BROKEN), *FINDINGS]
    whole, folded = (table(RUN, found, Allowed(), verbose=verbose).splitlines() for verbose in (True, False))
    named = [line.split()[0] for line in whole if line and not line.startswith(" ")]
    same = [catalogue()[number].name for number in (3, 1)]
    worst = [catalogue()[number].name for number in (8, 4, 2, 26, 13)]
    assert named[:-1] == ["check", *worst, *same]
    assert not [line for line in folded if line.startswith(tuple(same))]
    assert folded[-3:] == ["2 checks are the same on both ways (--verbose lists them)", "", whole[-1]]
    only = [finding(1, GatewayVerdict.SAME)]
    assert table(RUN, only, Allowed()) == "1 check is the same on both ways (--verbose lists them)\n\n1 same\n"


def test_lines_of_a_table_are_cut_to_a_width_but_for_what_a_person_copies() -> None:
    wide = {"direct": "1" * 50, "through": "2" * 50}
    found = [replace(finding(8, GatewayVerdict.BROKEN, "x" * 200), **wide), finding(1, GatewayVerdict.SAME)]
    whole, cut = (table(RUN, found, Allowed(), width=width).splitlines() for width in (None, 40))
    assert max(map(len, whole)) > 200
    hints = ["    -> mend it", "    -> nginx: first;", "              second;"]
    assert cut[:6] == [whole[0][:39] + "…", whole[1][:39] + "…", whole[2][:39] + "…", *hints]
    assert max(map(len, cut)) == 40
    assert [line.split()[:2] for line in cut[:2]] == [["check", "verdict"], [found[0].name, "BROKEN"]]
    long = replace(found[0], hints=(Hint(None, ("y" * 60,)),))
    assert f"    -> {'y' * 60}" in table(RUN, [long], Allowed(), width=40).splitlines()


def test_each_hint_has_a_line_of_its_own() -> None:
    text = FORMATS["table"](RUN, [finding(8, GatewayVerdict.BROKEN)], Allowed())
    assert "    -> mend it\n    -> nginx: first;\n              second;\n" in text
    assert "<br>- mend it<br>- nginx: first; second; |" in FORMATS["markdown"](
        RUN, [finding(8, GatewayVerdict.BROKEN)], Allowed()
    )
    value = json.loads(FORMATS["json"](RUN, [finding(8, GatewayVerdict.BROKEN)], Allowed()))
    assert value["findings"][0]["hints"] == [
        {"product": None, "lines": ["mend it"]},
        {"product": "nginx", "lines": ["first;", "second;"]},
    ]


def test_junit_has_each_finding_in_its_place() -> None:
    suite = ET.fromstring(FORMATS["junit"](RUN, FINDINGS, Allowed()).encode())[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "1"]
    assert [[child.tag for child in case] for case in suite] == [
        [],
        ["system-out"],
        ["failure"],
        ["skipped"],
        ["error"],
    ]


def test_json_says_which_calls_a_finding_rests_on() -> None:
    value = json.loads(FORMATS["json"](RUN, FINDINGS, Allowed({"close.lost": "broken"})))
    lost = next(each for each in value["findings"] if each["name"] == "close.lost")
    assert (lost["calls"], lost["allowed"]) == ({"direct": ["c1"], "through": ["c2"]}, True)


@pytest.mark.parametrize(
    ("verdicts", "strict", "code"),
    [
        ([GatewayVerdict.SAME, GatewayVerdict.CHANGED, GatewayVerdict.NOT_APPLICABLE], False, 0),
        ([GatewayVerdict.SAME, GatewayVerdict.DEGRADED], False, 0),
        ([GatewayVerdict.SAME, GatewayVerdict.DEGRADED], True, 1),
        ([GatewayVerdict.UNCLEAR, GatewayVerdict.BROKEN], False, 1),
        ([GatewayVerdict.UNCLEAR, GatewayVerdict.SAME], False, 3),
        ([], False, 3),
    ],
)
def test_the_exit_code(verdicts: list[GatewayVerdict], strict: bool, code: int) -> None:
    assert exit_code([finding(8, verdict) for verdict in verdicts], Allowed(), strict=strict) == code


def test_an_accepted_deviation_counts_for_nothing_as_long_as_it_is_that_one() -> None:
    allowed = read_allowed('"close.lost" = "degraded"', ["close.lost"])
    assert exit_code([finding(8, GatewayVerdict.BROKEN)], allowed) == 1
    allowed = read_allowed('"close.lost" = "broken"', ["close.lost"])
    assert exit_code([finding(8, GatewayVerdict.BROKEN)], allowed) == 0
    assert "BROKEN (allowed)" in FORMATS["table"](RUN, [finding(8, GatewayVerdict.BROKEN)], allowed)
    for wrong in ('"close.lost" = "bad"', '"no.such" = "broken"', "close", 'close.lost = "broken"'):
        with pytest.raises(AllowedError):
            read_allowed(wrong, ["close.lost"])


def test_a_partial_run_says_so_and_is_no_success() -> None:
    assert exit_code([finding(8, GatewayVerdict.SAME)], Allowed(), partial=True) == 3
    assert exit_code([finding(8, GatewayVerdict.BROKEN)], Allowed(), partial=True) == 1
    partial = replace(RUN, partial="stopped by a signal: 3 of 40 steps were done")
    for form in FORMATS:
        assert "stopped by a signal: 3 of 40 steps" in FORMATS[form](partial, FINDINGS, Allowed()), form
    suite = ET.fromstring(FORMATS["junit"](partial, FINDINGS, Allowed()).encode())[0]
    assert (len(suite), suite.get("tests"), suite.get("errors")) == (6, "6", "2")


def test_the_summary_counts() -> None:
    assert summary(FINDINGS) == "1 same · 1 degraded · 1 BROKEN · 1 n/a · 1 unclear"


class _Both(Http10, ResultChanged):
    """Two faults."""


async def test_a_saved_run_is_judged_as_the_living_one() -> None:
    made = await tried(_Both(), ["ids", "results", "fast"])
    lines = b"".join(dump(made)).splitlines(keepends=True)
    again = load(lines)
    assert again.offers == made.offers
    assert judge(again) == judge(made)
    assert {each.fault.number for each in judge(again) if each.verdict != GatewayVerdict.SAME} == {23, 26}
    for wrong in (lines[:-1], [*lines[:-1], b"{"], lines[1:], [b'{"kind":"log"}\n', *lines[1:]], []):
        with pytest.raises(RunError):
            load(wrong)


def test_of_many_calls_a_report_has_the_latest_of_both_ways_and_when_each_was_at_the_probe() -> None:
    def called(way: Way, names: list[int]) -> Trial:
        rows = [
            {"seq": number, "at": 0.0, "kind": kind, "connection": None, "exchange": number, "session": "m1"}
            | {"call": f"c{number // 4}", "tool": "progress", "arguments": {"mark": 1000}, "method": None}
            for number, kind in enumerate(["call.started", "message.emitted", "dispatch.sent", "call.settled"] * 100)
        ]
        made = tuple(ClientExchange(f"call {name}", "HTTP/1.1", "POST", 0.0) for name in names)
        return Trial("load", way, 1, 1000, made, behind=Behind(tuple(rows)))

    trials = (called("direct", [*range(100)]), called("through", [*reversed(range(100))]))
    report = document(replace(RUN, trials=trials), judge(RUN), Allowed())
    for trial in report.trials:
        assert {item.name for item in trial.exchanges} == {f"call {name}" for name in (*range(6), *range(94, 100))}
        for kind in ("call.started", "call.settled"):
            assert sum(entry.kind == kind for entry in trial.entries) == 100
        assert len(trial.entries) < trial.entries_seen
    assert report.trials[1].exchanges[0].name == "call 99"


async def test_the_json_of_a_run_fits_its_schema_and_leads_to_both_ends_of_each_finding() -> None:
    made = await tried(_Both(), ["results", "load.quick"])
    text = FORMATS["json"](made, judge(made), Allowed())
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(json.loads(text))
    report = document(made, judge(made), Allowed())
    assert report.log.run is not None
    changed = next(each for each in report.findings if each.fault == 26)
    assert (changed.verdict, changed.steps, changed.phase) == ("broken", ["results"], "fidelity")
    direct, through = (report.trials[number] for number in changed.trials)
    assert (direct.way, through.way) == ("direct", "through")
    for way in (direct, through):
        assert way.calls == changed.calls[way.way]
        began = {entry.call: entry for entry in way.entries if entry.kind == "call.started"}
        assert set(way.calls) <= set(began)
        assert all(entry.exchange and entry.connection for entry in began.values())
        assert [arrival.what for arrival in way.exchanges[-1].arrived] == ["result"]
    loaded = next(each for each in report.trials if each.step == "load.quick")
    assert len(loaded.entries) < loaded.entries_seen
