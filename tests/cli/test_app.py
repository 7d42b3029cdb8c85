"""What a person who starts a server is told and shown."""

from __future__ import annotations

import webbrowser

import pytest

from probe.cli import app

from ..support.process import serving


async def test_open_starts_a_browser_at_the_dashboard() -> None:
    browser = 'sh -c "echo opened $0" %s'
    async with serving(
        "--open", "--host", "0.0.0.0", "--public-url", "https://probe.example", BROWSER=browser
    ) as server:
        told = await server.program.said("Dashboard")
        assert told.endswith("Dashboard: https://probe.example/dashboard"), "for whoever reads it, who may be elsewhere"
        opened = await server.program.said("opened")
    assert opened.endswith(f"opened http://127.0.0.1:{server.port}/dashboard"), "from this machine"


async def test_where_no_browser_starts_the_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    told: list[str] = []
    await app._open_browser("http://127.0.0.1:1/dashboard", told.append)
    assert told == ["no browser could be started here; open http://127.0.0.1:1/dashboard"]
