"""Which icons of a tool are taken, and what a host is told of others. tests/host_tools/test_lists.py: who sees them."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from ..support.hosts import ECHO, PLAIN, connected
from ..support.probe import Probe

HTTPS = "https://example.org/"
DATA = "data:image/png;base64,"
LONGEST = 16_384

TAKEN: dict[str, list[Any]] = {
    "the smallest": [{"src": "https://a"}],
    "everything": [{"src": HTTPS, "mimeType": "image/svg+xml", "sizes": ["any", "1x99999"], "theme": "light"}],
    "a port, a query and a fragment": [{"src": "https://[2001:db8::1]:8443/a/b.png?size=%20&x=1#top"}],
    "data with parameters": [{"src": "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+"}],
    "data with padding": [{"src": DATA + "QQ=="}, {"src": DATA + "QUI="}],
    "as many as may be": [{"src": HTTPS, "sizes": ["any"] * 16}] * 8,
    "as long as may be": [{"src": HTTPS + "x" * (LONGEST - len(HTTPS))}],
}
REFUSED: dict[str, tuple[list[Any] | Any, str, str]] = {
    # the icons, where it is said to be wrong, and what is said
    "no list": ({"src": HTTPS}, "", "list"),
    "one too many": ([{"src": HTTPS}] * 9, "", "at most 8 items"),
    "no icon": (["https://example.org/"], ".0", "dictionary"),
    "no source": ([{"theme": "dark"}], ".0.src", "required"),
    "one too long": ([{"src": HTTPS + "x" * (LONGEST - len(HTTPS) + 1)}], ".0.src", "at most 16384 characters"),
    "the second one": ([{"src": HTTPS}, {"src": "nowhere"}], ".1.src", "https:"),
    "another theme": ([{"src": HTTPS, "theme": "blue"}], ".0.theme", "'light' or 'dark'"),
    "no image": ([{"src": HTTPS, "mimeType": "text/html"}], ".0.mimeType", "^image/"),
    "one size that is none": ([{"src": HTTPS, "sizes": ["48x48", "48"]}], ".0.sizes.1", "any"),
    "a size of nothing": ([{"src": HTTPS, "sizes": ["0x48"]}], ".0.sizes.0", "any"),
    "sizes that are one text": ([{"src": HTTPS, "sizes": "48x48"}], ".0.sizes", "list"),
    "too many sizes": ([{"src": HTTPS, "sizes": ["any"] * 17}], ".0.sizes", "at most 16 items"),
}
UNSAFE = (
    "http://example.org/a.png",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "ftp://example.org/a.png",
    "ws://example.org/a.png",
    "app://example.org/a.png",
    "//example.org/a.png",
    "HTTPS://example.org/a.png",
    "https://",
    "https:///a.png",
    "https://user:password@example.org/a.png",
    "https://example.org/a b.png",
    "https://example.org/\n",
    "https://example.org/%zz",
    "https://example.org/ä.png",
    "data:text/html;base64,QUJD",
    "data:image/png,abc",
    "data:image/png;base64,",
    "data:image/png;base64,QUJ",
    "data:image/png;base64,Q===",
    "data:image/png;base64,QU JD",
    "data:image/png;base64,QUJD\n",
)


@pytest.mark.parametrize("name", TAKEN)
async def test_icons_within_the_bounds_are_shown_as_they_are(
    probe: Probe, name: str, autojump_clock: MockClock
) -> None:
    async with connected(probe.app) as host:
        await host.register(tools=[{**ECHO, "icons": TAKEN[name]}])
        (shown,) = (await probe.modern(tools="hosts").call("tools/list"))["tools"]
        assert shown["icons"] == TAKEN[name]


@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_icon_is_refused_with_the_name_of_its_tool(
    probe: Probe, name: str, autojump_clock: MockClock
) -> None:
    icons, where, said = REFUSED[name]
    async with connected(probe.app) as host:
        code, message = await host.refused("host.register", host.registration(tools=[PLAIN, {**ECHO, "icons": icons}]))
        assert code == -32602
        assert message.startswith(f"Invalid params: params.tools.1.icons{where} of the tool echo: ")
        assert said in message
        assert (await probe.modern(tools="hosts").call("tools/list"))["tools"] == []
        await host.register()
        assert (await host.refused("host.update", {"tools": [{**ECHO, "icons": icons}]}))[0] == -32602


@pytest.mark.parametrize("source", UNSAFE)
async def test_a_source_is_https_or_an_image_in_base64(probe: Probe, source: str, autojump_clock: MockClock) -> None:
    async with connected(probe.app) as host:
        tools = [{**ECHO, "icons": [{"src": source}]}]
        code, message = await host.refused("host.register", host.registration(tools=tools))
        assert code == -32602
        assert message == (
            "Invalid params: params.tools.0.icons.0.src of the tool echo: "
            "Should be an https: URI without a user, or a data: URI with an image in Base64"
        )
