"""A session file is read back as it was written, and a bad one is refused with one line, whoever made it."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from probe.log import ndjson
from probe.log.context import Context
from probe.log.event_log import Entry, Gap
from probe.log.ndjson import End, Header, OpenedFile
from probe.web.exports import archive as session_file
from probe.web.exports.archive import AUDIT, LOG, MANIFEST, REPORT, Archive, OpeningError, open_file
from probe.web.exports.extract import Extract
from probe.wire.jsonrpc import encode

from ...support.facts import received

HEADER = Header("r1", "1.2.3", 1000.25, {"tools": "probe"})
ITEMS = [Gap(1, 2), *(Entry(seq, 1.5, 2.5, Context(exchange=seq), received({"n": seq})) for seq in (3, 5))]


ALL = Extract()
REPORTED = {"format": "mcp-probe-judge", "version": 1, "subjects": []}


def written(extract: Extract = ALL, report: bytes | None = b"") -> bytes:
    with closing(Archive(extract, HEADER, 2000.5)) as archive:
        parts = [archive.take()]
        for item in ITEMS:
            archive.add(item)
            parts.append(archive.take())
        end = End(9, "complete" if extract.is_all else "filtered")
        archive.end_log(end)
        for id in ("r1.c1", "r1.c2"):
            archive.add_call(encode({"id": id}))
        archive.finish(encode(REPORTED) if report == b"" else report)
        return b"".join([*parts, archive.take()])


def members(body: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(parts: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", how) as file:
        for name, part in parts.items():
            file.writestr(name, part)
    return body.getvalue()


def opened(folder: Path, body: bytes) -> OpenedFile:
    path = folder / "s.mcpprobe"
    path.write_bytes(body)
    return open_file(path)


def refused(folder: Path, body: bytes) -> str:
    with pytest.raises(OpeningError) as error:
        opened(folder, body)
    text = str(error.value)
    assert text.startswith(str(folder / "s.mcpprobe"))
    assert "\n" not in text
    assert len(text) < 400
    return text


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    found = opened(tmp_path, written())
    assert (found.name, found.saved_at, found.report) == ("s.mcpprobe", 2000.5, REPORTED)
    assert found.log.header == HEADER
    assert list(found.log.items) == ITEMS
    assert found.log.end == End(9, "complete")


def test_the_manifest_says_what_is_in_the_file(tmp_path: Path) -> None:
    body = written(Extract(client="m1"), report=None)
    manifest = json.loads(members(body)[MANIFEST])
    assert manifest["contains"] == {
        "entries": 2,
        "first": 3,
        "last": 5,
        "first_at": 1.5,
        "last_at": 1.5,
        "kinds": {"message.received": 2},
        "clients": [],
        "calls": 0,
        "hidden": {},
        "gaps": [{"first": 1, "last": 2}],
    }
    assert (manifest["client"], manifest["call"], manifest["report"], manifest["run"]) == ("m1", None, False, "r1")
    assert REPORT not in members(body)
    assert json.loads(members(body)[AUDIT]) == {"calls": [{"id": "r1.c1"}, {"id": "r1.c2"}]}
    end = opened(tmp_path, body).log.end
    assert end is not None
    assert end.why == "filtered"


def test_lines_of_a_log_are_read_too_and_one_that_is_cut_off_is_known(tmp_path: Path) -> None:
    log = members(written())[LOG]
    assert opened(tmp_path, log).log.end == End(9, "complete")
    cut = opened(tmp_path, log[:-20])
    assert (cut.log.end, cut.manifest, len(cut.log.entries)) == (None, None, 2)


def test_a_file_cut_anywhere_is_refused_in_one_line(tmp_path: Path) -> None:
    body = written()
    for at in range(5, len(body), 37):
        assert "cut off" in refused(tmp_path, body[:at])


def test_a_file_with_damaged_bytes_is_refused_or_read_as_it_was(tmp_path: Path) -> None:
    body = written()
    whole = opened(tmp_path, body)
    for at in range(0, len(body), 7):
        spoilt = bytearray(body)
        spoilt[at] ^= 0xFF
        try:
            found = opened(tmp_path, bytes(spoilt))
        except OpeningError as error:
            assert "\n" not in str(error)
        else:
            assert (list(found.log.items), found.report) == (list(whole.log.items), whole.report), at


def changed(**values: Any) -> bytes:
    parts = members(written())
    return packed({**parts, MANIFEST: encode({**json.loads(parts[MANIFEST]), **values})})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "a log begins with"),
        (b"hello", "no JSON"),
        (changed(version=2), "version 2 of the format; this program reads version 1"),
        (changed(format="other"), "not that of a session file"),
        (packed({**members(written()), "../../etc/passwd": b"x"}), "'../../etc/passwd' is none of its members"),
        (packed({"a.txt": b"x"}), "'a.txt' is none of its members"),
        (packed({LOG: members(written())[LOG]}), "manifest.json is missing"),
        (packed({**members(written()), MANIFEST: b"{"}), "manifest.json is no JSON"),
        (packed({**members(written()), REPORT: b"[]"}), "report.json is no JSON object"),
        (packed({**members(written()), REPORT: encode({**REPORTED, "version": 2})}), "is no report that this"),
        (packed({**members(written()), REPORT: encode({**REPORTED, "subjects": [{"label": 1}]})}), "is no report"),
        (
            packed({**members(written()), LOG: ndjson.header(HEADER) + b'{"seq":1,"kind":"future.kind"}\n'}),
            "line 2",
        ),
        (packed({str(number): b"" for number in range(90)}), "no session file"),
        (packed(members(written()), zipfile.ZIP_LZMA), "log.ndjson is packed in a way that no session file is"),
        (packed(members(written()), zipfile.ZIP_BZIP2), "log.ndjson is packed in a way that no session file is"),
    ],
    ids=range(15),
)
def test_a_bad_file_is_refused_with_its_reason(body: bytes, why: str, tmp_path: Path) -> None:
    assert why in refused(tmp_path, body)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as file:
        file.writestr(LOG, b"x")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr(LOG, b"x")
    assert "two members" in refused(tmp_path, body.getvalue())


def test_a_list_of_members_that_claims_to_be_elsewhere_is_not_read(tmp_path: Path) -> None:
    body = written()
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    assert "no session file" in refused(tmp_path, body[:-22] + locator + body[-22:])


def test_what_unpacks_to_more_than_may_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = members(written())[LOG]
    bomb = {**members(written()), LOG: log[: log.index(b"\n") + 1] + b" \n" * 300_000}
    assert "its log has more than 1,000 blank lines" in refused(tmp_path, packed(bomb))
    monkeypatch.setattr(session_file, "_AT_MOST", session_file._AT_MOST._replace(blank_lines=1 << 30))
    monkeypatch.setattr(session_file, "_AT_MOST", session_file._AT_MOST._replace(log=1 << 19))
    assert len(packed(bomb)) < 20_000
    assert "its log has more than 0 MiB" in refused(tmp_path, packed(bomb))
    monkeypatch.setattr(session_file, "_AT_MOST", session_file._AT_MOST._replace(entries=2))
    assert "more than 2 entries" in refused(tmp_path, written())
    monkeypatch.setattr(session_file, "_AT_MOST", session_file._AT_MOST._replace(line=20))
    assert "a line of more" in refused(tmp_path, written())
    monkeypatch.setattr(session_file, "_AT_MOST", session_file._AT_MOST._replace(report=5))
    assert "report.json has more" in refused(tmp_path, written())


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path, Path(os.devnull)):
        with pytest.raises(OpeningError, match=str(path)):
            open_file(path)
