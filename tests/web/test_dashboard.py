"""`/dashboard` over the same application as `/mcp`, with a site of a few files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin

import pytest

from probe.web import dashboard, paths
from probe.web.dashboard import Dashboard

from ..support.http import Answer, exchange
from ..support.probe import Probe, running

LOCAL = {"host": "127.0.0.1:8000"}
SCRIPT = b"export const a = '\xc3\xa4';"
INDEX = b'<!doctype html><div id="root"></div>'
LOADS = b'<script src="./assets/index-abc.js"></script>'
FILES = {
    "index.html": INDEX,
    "assets/index-abc.js": SCRIPT,
    "assets/index-abc.css": b"a{}",
    "assets/icon-abc.svg": b"<svg/>",
    "assets/font-abc.woff2": b"\0",
    "assets/data-abc": b"\0",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, body in FILES.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "site"


async def ask(app: Dashboard, path: str, method: str = "GET", **headers: str) -> tuple[Answer, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with exchange(app, method, path, LOCAL | named) as answer:
        return answer, await answer.body()


VIEWS = [
    "/dashboard",
    "/dashboard/",
    "/dashboard/live",
    "/dashboard/tasks/x",
    "/dashboard/report/a-client",
    "/dashboard/a.b",
]


@pytest.mark.parametrize("path", VIEWS)
async def test_every_view_is_the_same_page_which_is_asked_for_again_each_time(path: str, site: Path) -> None:
    answer, body = await ask(Dashboard(site), path)
    assert (answer.status, body) == (200, INDEX)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-length"] == str(len(INDEX))


@pytest.mark.parametrize("mounted", ["", "/probe", "/a/b"])
@pytest.mark.parametrize("path", [*VIEWS, "/dashboard/a/b/", "/dashboard/calls/a%2Fb", "/dashboard/a?b=/c/d"])
async def test_a_view_finds_its_assets_below_any_path_that_a_gateway_takes_off(
    path: str, mounted: str, site: Path
) -> None:
    (site / "index.html").write_bytes(INDEX + LOADS)
    _, body = await ask(Dashboard(site), path)
    script = body.partition(b'src="')[2].partition(b'"')[0].decode()
    seen = urljoin(f"http://gateway{mounted}{path}", script)
    assert seen == f"http://gateway{mounted}/dashboard/assets/index-abc.js"


async def test_a_path_that_is_too_deep_is_no_view(site: Path) -> None:
    assert (await ask(Dashboard(site), "/dashboard" + "/a" * 16))[0].status == 200
    assert (await ask(Dashboard(site), "/dashboard" + "/a" * 17))[0].status == 404


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index-abc.js", "text/javascript; charset=utf-8"),
        ("index-abc.css", "text/css; charset=utf-8"),
        ("icon-abc.svg", "image/svg+xml"),
        ("font-abc.woff2", "font/woff2"),
        ("data-abc", "application/octet-stream"),
    ],
)
async def test_assets_are_kept_for_ever_and_typed(name: str, kind: str, site: Path) -> None:
    answer, body = await ask(Dashboard(site), f"/dashboard/assets/{name}")
    assert (answer.status, body) == (200, FILES[f"assets/{name}"])
    assert answer.headers["content-type"] == kind
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/assets/",
        "/dashboard/assets/nope.js",
        "/dashboard/assets/../index.html",
        "/dashboard/assets/../../secret",
        "/dashboard/assets//etc/passwd",
        "/dashboard/assets/..\\..\\secret",
        "/dashboard/assets/%2e%2e/%2e%2e/secret",
        "/dashboard/assets/\0",
    ],
)
async def test_only_files_of_the_site_are_assets(path: str, site: Path) -> None:
    answer, body = await ask(Dashboard(site), path)
    assert answer.status == 404
    assert body == b"no such file\n"
    assert answer.headers["cache-control"] == "no-store"


async def test_a_path_outside_is_just_a_view(site: Path) -> None:
    for path in ("/dashboard/../../secret", "/dashboard//etc/passwd", "/dashboard/index.html"):
        assert (await ask(Dashboard(site), path))[1] == INDEX


@pytest.mark.parametrize("path", ["/dashboard/live", "/dashboard/assets/index-abc.js"])
async def test_what_the_browser_has_already_is_not_sent_again(path: str, site: Path) -> None:
    app = Dashboard(site)
    first, _ = await ask(app, path)
    tag = first.headers["etag"]
    for given in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        again, body = await ask(app, path, if_none_match=given)
        assert (again.status, body) == (304, b"")
        assert (again.headers["etag"], again.headers["cache-control"]) == (tag, first.headers["cache-control"])
        assert "content-length" not in again.headers
    other, _ = await ask(app, path, if_none_match='"x"')
    assert other.status == 200


async def test_each_content_has_its_own_etag(site: Path) -> None:
    before, _ = await ask(Dashboard(site), "/dashboard")
    (site / "index.html").write_bytes(INDEX + b"<!-- new -->")
    after, _ = await ask(Dashboard(site), "/dashboard", if_none_match=before.headers["etag"])
    assert after.status == 200
    assert after.headers["etag"] != before.headers["etag"]


@pytest.mark.parametrize("path", ["/", "/dashboard", "/dashboard/assets/index-abc.js", "/dashboard/assets/nope"])
async def test_head_has_the_headers_of_get_and_no_body(path: str, site: Path) -> None:
    app = Dashboard(site)
    answer, body = await ask(app, path, "HEAD")
    whole, _ = await ask(app, path)
    assert (answer.status, answer.headers, body) == (whole.status, whole.headers, b"")


@pytest.mark.parametrize("path", ["/", "/dashboard", "/dashboard/tasks", "/dashboard/assets/index-abc.js"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_the_pages_are_read_only(path: str, method: str, site: Path) -> None:
    answer, _ = await ask(Dashboard(site), path, method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("path", "method"),
    [("/", "GET"), ("/dashboard", "GET"), ("/dashboard", "POST"), ("/dashboard/assets/nope", "GET")],
)
async def test_every_answer_forbids_what_the_pages_do_not_need(path: str, method: str, site: Path) -> None:
    answer, _ = await ask(Dashboard(site), path, method)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "microphone=()" in answer.headers["permissions-policy"]
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


async def test_a_304_has_the_policy_too(site: Path) -> None:
    answer, _ = await ask(Dashboard(site), "/dashboard", if_none_match="*")
    assert answer.status == 304
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/live", "/dashboard/assets/index-abc.js"])
async def test_without_a_build_it_says_how_to_make_one(path: str, tmp_path: Path) -> None:
    answer, body = await ask(Dashboard(tmp_path / "nothing"), path)
    assert (answer.status, answer.headers["cache-control"]) == (503, "no-store")
    assert b"nox -s dashboard" in body


async def test_the_files_are_read_with_the_first_request_and_only_once(site: Path) -> None:
    app = Dashboard(site)
    (site / "index.html").write_bytes(b"changed after the start")
    assert (await ask(app, "/dashboard"))[1] == b"changed after the start"
    (site / "index.html").write_bytes(INDEX)
    assert (await ask(app, "/dashboard"))[1] == b"changed after the start"


async def test_the_server_has_it_at_its_root(probe: Probe) -> None:
    async with exchange(probe.app, "GET", "/", LOCAL) as answer:
        assert (answer.status, answer.headers["location"]) == (302, "dashboard")


@pytest.mark.parametrize("path", ["/", "/dashboard", "/dashboard/assets/index-abc.js"])
@pytest.mark.parametrize("bad", [{"host": "evil.example"}, {**LOCAL, "origin": "http://evil.example"}, {}])
async def test_a_foreign_host_or_origin_gets_no_page(path: str, bad: dict[str, str], probe: Probe) -> None:
    async with exchange(probe.app, "GET", path, bad) as answer:
        assert answer.status == 403


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/", "/dashboard/live"])
async def test_pages_cost_no_quart(path: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quart is half a second; the first look at the dashboard must not wait for it."""
    monkeypatch.setattr(paths, "Dashboard", lambda: Dashboard(site))
    async with running() as probe:
        async with exchange(probe.app, "GET", path, LOCAL) as answer:
            assert answer.status == 200
        assert probe.app.pages.made is None


async def test_a_path_that_only_begins_like_it_is_not_the_dashboard(probe: Probe) -> None:
    async with exchange(probe.app, "GET", "/dashboards", LOCAL) as answer:
        assert answer.status == 404


def test_the_build_goes_where_the_server_looks() -> None:
    config = Path(__file__).parents[2] / "dashboard" / "vite.config.ts"
    assert f'outDir: "../src/probe/web/{dashboard.SITE.name}"' in config.read_text()
