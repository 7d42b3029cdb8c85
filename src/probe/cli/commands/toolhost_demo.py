"""`mcp-probe toolhost-demo`."""

from __future__ import annotations

from collections.abc import Callable

import click

from ...settings import Settings, described


def _secret(function: Callable[..., int]) -> Callable[..., int]:
    """The server's setting, so that both share one variable. Here it has no default."""
    spec = next(spec for spec in described(Settings) if spec.name == "toolhost_secret")
    option = click.option(
        spec.flag, "secret", required=True, envvar=spec.variable, show_envvar=True, help="As the server has it."
    )
    return option(function)


@click.command("toolhost-demo")
@click.option(
    "--url",
    default="ws://127.0.0.1:8000/toolhost",
    show_default=True,
    help="The tool host endpoint of the server, ws:// or wss://.",
)
@click.option("--name", default="demo", show_default=True, help="The name of the host, with which its tools begin.")
@_secret
def command(url: str, name: str, secret: str) -> int:
    """Offer demo tools through a running server."""
    from ...toolhost import HostRefusedError, demo

    try:
        demo.main(url, name, secret)
    except (HostRefusedError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    return 0
