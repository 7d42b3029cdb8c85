"""`mcp-probe doctor URL`."""

from __future__ import annotations

import click

from ...core.escaping import shown


@click.command("doctor")
@click.argument("url")
@click.option("--cafile", metavar="FILE", help="A certificate authority beside those of this machine.")
@click.option(
    "--hold",
    type=click.FloatRange(min=1),
    default=32,
    show_default=True,
    metavar="S",
    help="Seconds to hold an idle stream.",
)
def command(url: str, cafile: str | None, hold: float) -> int:
    """Say what a public address does to a probe's streams.

    URL is the address of a probe, such as https://mcp.example.org, as its clients reach it. It is asked about a dozen
    times within a minute. The exit code is 1 where something breaks what clients rely on.
    """
    from ...gateway.doctor import needs, path
    from ...gateway.doctor.needs import CertificatesError, ProbeAddress, WrongError

    try:
        target = ProbeAddress(url, cafile)
        if cafile is not None and target.tls is None:
            raise click.UsageError("--cafile is about TLS, and an address with http:// has none")
        needs.check_health(target)
    except CertificatesError as error:
        raise click.ClickException(f"--cafile: {error}") from None
    except (WrongError, OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise click.ClickException(f"no probe answers at {url}: {why}") from None
    broken = False
    for name, wrong, _ in needs.outcomes(target, needs.BRIEF):
        broken = broken or wrong is not None
        _say("bad" if wrong else "ok", name, wrong or needs.PASSED[name])
    click.echo(f"mcp-probe: an idle stream is held for {hold:g} s, so this takes a little longer", err=True)
    for finding in path.findings(path.Visit(target, hold)):
        broken = broken or finding.mark == "bad"
        _say(finding.mark, finding.about, finding.text)
    return 1 if broken else 0


def _say(mark: str, about: str, text: str) -> None:
    colour = {"ok": "green", "note": "yellow", "bad": "red"}[mark]
    click.echo(f"{click.style(mark.ljust(5), fg=colour)}{about.ljust(11)}{shown(text)}")
