from __future__ import annotations

import io
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from threading import Thread, Timer
from typing import Any

import pytest

from probe import __version__
from probe.cli import app, commands
from probe.cli.program import COMMANDS, main
from probe.cli.starting import StartError
from probe.settings import Described, Limits, Settings, described

from ..support.rows import each

OWN, LIMITS = list(described(Settings)), list(described(Limits))
EVERY = [spec for spec in OWN + LIMITS if not spec.fixed]
FIXED = [spec for spec in OWN + LIMITS if spec.fixed]
BOUNDED = [spec for spec in EVERY if spec.low is not None]
# a start takes about a second; on a busy machine a few
PATIENCE_S = 60


def name(spec: Described) -> str:
    return spec.name


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's shell sets must not reach these tests."""
    for variable in [variable for variable in os.environ if variable.startswith("MCP_PROBE_")]:
        monkeypatch.delenv(variable)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of each server that would have been started."""
    calls: list[Settings] = []

    def record(settings: Settings, *_: object, **__: object) -> int:
        calls.append(settings)
        return 0

    monkeypatch.setattr(app, "main", record)
    monkeypatch.setattr(app, "stdio", record)
    return calls


def test_a_server_judges_unless_it_is_told_not_to(
    command: str, started: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in ([], ["--no-judge"], ["--judge", "false"], ["--judge", "true", "--no-judge"]):
        assert main([command, *arguments]) == 0
    monkeypatch.setenv("MCP_PROBE_JUDGE", "false")
    assert main([command]) == 0
    assert [settings.judge for settings in started] == [True, False, False, False, False]


def test_help_is_a_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help"], ["help", "judge"]):
        assert main(words) == 0
        said = capsys.readouterr().out
        assert main([*words[1:], "--help"]) == 0
        assert said == capsys.readouterr().out


def test_a_reader_that_goes_ends_the_output_without_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "probe", "settings"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.fixture(params=["serve", "stdio"])
def command(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def other_value(spec: Described) -> Any:
    """A legal value that is not the default."""
    if spec.type is str:
        given = {"public_url": "https://other", "allowed_origins": "https://other", "log_format": "json"}
        secrets = {"toolhost_secret": "another-secret-16", "forward_secret": "a-third-secret-16"}
        return (given | secrets | {"log_level": "debug", "rooms": "on"}).get(spec.name, "other")
    return spec.type(spec.low if spec.high is not None and spec.default + 1 > spec.high else spec.default + 1)


def values(settings: Settings) -> dict[str, Any]:
    own = {spec.name: getattr(settings, spec.name) for spec in OWN}
    return own | {spec.name: getattr(settings.limits, spec.name) for spec in LIMITS}


DEFAULTS = {spec.name: spec.default for spec in OWN + LIMITS}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that was refused."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1, err
    assert err.endswith("\n")
    return err.removeprefix("error: ").strip()


def test_without_flags_everything_is_default(command: str, started: list[Settings]) -> None:
    assert main([command]) == 0
    assert [values(settings) for settings in started] == [DEFAULTS]


@each("spec", EVERY)
def test_a_flag_sets_its_setting_and_no_other(spec: Described, command: str, started: list[Settings]) -> None:
    rooms = "on" if spec.group.endswith("ooms") and spec.name != "rooms" else "off"
    assert main([command, "--rooms", rooms, spec.flag, str(other_value(spec))]) == 0
    assert values(started.pop()) == DEFAULTS | {"rooms": rooms, spec.name: other_value(spec)}


@each("spec", EVERY)
def test_a_variable_sets_its_setting_and_no_other(
    spec: Described, command: str, started: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as environment:
        environment.setenv(spec.variable, str(other_value(spec)))
        assert main([command]) == 0
    assert values(started.pop()) == DEFAULTS | {spec.name: other_value(spec)}


@each("spec", FIXED)
def test_a_fixed_setting_has_no_flag(spec: Described, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such option" in refusal(capsys, command, spec.flag, str(other_value(spec)))


@each("spec", FIXED)
def test_a_fixed_setting_has_no_variable(
    spec: Described, command: str, started: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as environment:
        environment.setenv(spec.variable, str(other_value(spec)))
        assert main([command]) == 0
    assert values(started.pop()) == DEFAULTS


def test_a_flag_wins_over_its_variable(started: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_PROBE_PORT", "1111")
    assert main(["serve", "--port", "2222"]) == 0
    assert started[0].port == 2222


def test_the_exit_code_is_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "main", lambda settings, **_: 7)
    monkeypatch.setattr(app, "stdio", lambda settings, options: 8)
    assert (main(["serve"]), main(["stdio"])) == (7, 8)


@pytest.mark.parametrize(
    ("arguments", "port"),
    [([], None), (["--dashboard", "0"], 0), (["--dashboard=65535"], 65535), (["--port", "1", "--dashboard", "2"], 2)],
)
def test_stdio_has_pages_where_it_is_told_to(
    arguments: list[str], port: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int | None] = []

    def record(settings: Settings, options: app.StdioOptions) -> int:
        told.append(options.dashboard)
        return 0

    monkeypatch.setattr(app, "stdio", record)
    assert main(["stdio", *arguments]) == 0
    assert told == [port]


@pytest.mark.parametrize(
    ("arguments", "variable", "name"),
    [([], None, None), ([], "my.client", "my.client"), (["--client", "a"], None, "a"), (["--client=a"], "b", "a")],
)
def test_the_client_on_standard_streams_can_have_a_name(
    arguments: list[str], variable: str | None, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str | None] = []

    def record(settings: Settings, options: app.StdioOptions) -> int:
        named.append(options.label)
        return 0

    monkeypatch.setattr(app, "stdio", record)
    if variable is not None:
        monkeypatch.setenv("MCP_PROBE_CLIENT", variable)
    assert main(["stdio", *arguments]) == 0
    assert named == [name]


@pytest.mark.parametrize("name", ["two words", "x" * 65, "a/b"])
def test_what_is_no_name_of_a_client_keeps_the_server_from_starting(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_PROBE_CLIENT", name)
    characters = "1 to 64 characters: letters, digits, '.', '-' and '_'"
    rule = f"client (MCP_PROBE_CLIENT) must be {characters}, and neither '.', '..' nor 'rules'"
    assert refusal(capsys, "stdio") == rule
    monkeypatch.delenv("MCP_PROBE_CLIENT")
    assert refusal(capsys, "stdio", "--client=") == rule, "an empty variable is none, an empty name is no name"


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_for_pages_that_is_none(port: str, capsys: pytest.CaptureFixture[str], started: list[Settings]) -> None:
    line = refusal(capsys, "stdio", f"--dashboard={port}")
    assert "--dashboard" in line
    assert "not in the range 0<=x<=65535" in line
    assert started == []


@each("spec", BOUNDED)
def test_a_flag_below_its_bound(
    spec: Described, command: str, capsys: pytest.CaptureFixture[str], started: list[Settings]
) -> None:
    assert spec.low is not None
    line = refusal(capsys, command, f"{spec.flag}={spec.type(spec.low - 1)}")
    assert spec.flag in line
    assert "not in the range" in line
    assert started == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--allowed-origins=https://app.example/"],
        ["--allowed-hosts=pub.example:8080"],
        ["--stream-min-s=10", "--stream-max-s=1"],
        ["--public-url=http://["],
        ["--log-level=loud"],
        ["--log-format=xml"],
    ],
)
def test_a_setting_that_cannot_work(
    arguments: list[str], command: str, capsys: pytest.CaptureFixture[str], started: list[Settings]
) -> None:
    first = arguments[0].partition("=")[0]
    assert refusal(capsys, command, *arguments).startswith(f"{first} must ")
    assert started == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nonsense"], "No such command 'nonsense'; see mcp-probe --help"),
        (["serv"], "No such command 'serv'. Did you mean 'serve'? See mcp-probe --help"),
        (["serve", "extra"], "Got unexpected extra argument (extra); see mcp-probe serve --help"),
        (["stdio", "extra"], "Got unexpected extra argument (extra); see mcp-probe stdio --help"),
        (["serve", "--port"], "Option '--port' requires an argument."),
        (["stdio", "--dashboard"], "Option '--dashboard' requires an argument."),
    ],
)
def test_wrong_usage(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, *arguments) == expected


def test_an_unknown_flag_is_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--no-such-flag" in refusal(capsys, command, "--no-such-flag=1")


@pytest.mark.parametrize(("flag", "kind"), [("--port", "integer"), ("--grace-s", "number"), ("--dashboard", "integer")])
def test_a_flag_that_is_no_number(flag: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"'many' is not a valid {kind};" in refusal(capsys, "stdio", flag, "many")


def test_serve_has_its_pages_without_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--dashboard" in refusal(capsys, "serve", "--dashboard=0")


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MCP_PROBE_MAX_SESSIONS", "plenty")
    line = refusal(capsys, "serve")
    assert "MCP_PROBE_MAX_SESSIONS" in line
    assert "plenty" in line


def test_a_value_with_a_newline_still_makes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'a\\nb'" in refusal(capsys, "serve", "--port", "a\nb")


def test_a_server_that_cannot_start_says_why_on_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise StartError("no luck\nat all")

    monkeypatch.setattr(app, "main", fail)
    monkeypatch.setattr(app, "stdio", fail)
    assert refusal(capsys, command) == "no luck at all"


def test_ctrl_c_before_the_server_listens_makes_no_traceback(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "main", interrupted)
    monkeypatch.setattr(app, "stdio", interrupted)
    assert main([command]) == 130
    assert capsys.readouterr().err.strip() == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mcp-probe {__version__}\n"


def test_help_has_a_line_for_each_command_and_each_of_them_can_be_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)} - {"options"}
    assert main(["--help"]) == 0
    listed = [line.split() for line in capsys.readouterr().out.partition("\nCommands:\n")[2].splitlines()]
    assert [name for name, *_ in listed] == [*COMMANDS]
    assert {COMMANDS[name].callback.__module__.rpartition(".")[2] for name in COMMANDS} == modules
    for name, *sentence in listed:
        command = COMMANDS[name]
        assert (command.name, sentence[:3]) == (name, command.get_short_help_str().split()[:3])
        assert sentence


def test_a_command_loads_no_other_one() -> None:
    run_help = "from probe.cli.program import main; main(['serve', '--help'])"
    done = run([sys.executable, "-c", f"import sys; {run_help}; print(*sys.modules, file=sys.stderr)"])
    own = {name for name in done.stderr.split() if name.startswith("probe.cli.commands.")}
    assert own == {"probe.cli.commands.serve", "probe.cli.commands.options"}


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[0], err) == ("Usage: mcp-probe [OPTIONS] [COMMAND] [ARGS]...", "")
    assert "\n  serve " in out


@each("arguments", [[], ["serve", "--help"], ["stdio", "--help"], ["settings", "--help"]])
def test_help_fits_a_screen(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80


def test_help_has_the_settings_with_a_line_for_it_and_says_where_the_others_are(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {spec.name for spec in EVERY if spec.help}
    if command == "stdio":
        shown = {"tools", "audit_db", "log_level"}
    assert main([command, "--help"]) == 0
    options, _, end = capsys.readouterr().out.partition("These are the usual settings.")
    flags = {spec.name: spec.flag if spec.default is not True else f"--no-{spec.flag[2:]}" for spec in EVERY}
    assert {name for name, flag in flags.items() if f"  {flag} " in options} == shown
    assert "`mcp-probe settings` lists all" in " ".join(end.split())


def test_pages_are_opened_and_lines_shown_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bool, bool]] = []

    def record(settings: Settings, *, open_pages: bool, screen: object) -> int:
        asked.append((open_pages, screen is not None))
        return 0

    monkeypatch.setattr(app, "main", record)
    assert [main(["serve", *given]) for given in ([], ["--open"], ["--watch"])] == [0, 0, 0]
    assert asked == [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize(
    ("rooms", "options"),
    [
        ("off", ["--room-idle-s", "5"]),
        ("off", ["--max-rooms", "5"]),
        ("off", ["--rooms-per-hour", "5"]),
        ("off", ["--room-share", "0.5"]),
        ("only", ["--watch"]),
        ("only", ["--audit-db", "calls.db"]),
        ("only", ["--toolhost-secret", "0123456789abcdef"]),
        ("only", ["--forward-secret", "0123456789abcdef"]),
    ],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_an_option_without_effect_is_refused(
    rooms: str,
    options: list[str],
    started: list[Settings],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert main(["serve", "--rooms", "on", *options]) == 0
    assert main(["serve", "--rooms", rooms, *options]) == 2
    assert capsys.readouterr().err.startswith(f"error: {options[0]} is about ")
    if options[1:]:
        # A variable may be meant for another command.
        monkeypatch.setenv(f"MCP_PROBE_{options[0][2:].upper().replace('-', '_')}", options[1])
        assert main(["serve", "--rooms", rooms]) == 0
        assert len(started) == 2


@pytest.mark.parametrize(("terminal", "told"), [(True, True), (False, False)])
def test_a_person_who_starts_stdio_is_told_that_clients_do(
    terminal: bool,
    told: bool,
    started: list[Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal)
    assert main(["stdio"]) == 0
    out, err = capsys.readouterr()
    assert (out, "mcp-probe serve" in err) == ("", told)


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        (
            "MCP_PROBE_MAX_SESIONS",
            "warning: MCP_PROBE_MAX_SESIONS is no setting; did you mean MCP_PROBE_MAX_SESSIONS?\n",
        ),
        ("MCP_PROBE_CLEINT", "warning: MCP_PROBE_CLEINT is no setting; did you mean MCP_PROBE_CLIENT?\n"),
        ("MCP_PROBE_SERVICE_HOST", ""),
        ("MCP_PROBE_PORT_8000_TCP_ADDR", ""),
    ],
)
def test_a_variable_that_looks_like_another_is_named(
    variable: str,
    told: str,
    started: list[Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, "1")
    assert main(["serve"]) == 0
    assert capsys.readouterr().err == told
    assert len(started) == 1


def test_where_lines_are_json_so_is_the_one_about_a_variable(
    started: list[Settings], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_PROBE_MAX_SESIONS", "1")
    assert main(["stdio", "--log-format", "json"]) == 0
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["event"], "did you mean" in line["message"]) == ("warning", "settings", True)


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["settings", *words]) == 0
    return capsys.readouterr().out


def test_settings_prints_each_fact_of_each_setting_under_its_heading(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    said = " ".join(listed(capsys).split())
    at = -1
    group = ""
    for spec in EVERY:
        heading = f"{spec.group} --" if spec.group != group else "--"
        group = spec.group
        following = said.index(f"{heading}{spec.flag.removeprefix('--')} ", at + 1)
        assert following > at, "in the order of the settings"
        at = following
        assert f"{spec.reason} [{spec.variable}]" in said[at:]
        assert f"({spec.unit}" in said[at:]
    assert "--port 8000 (TCP port, 0 to 65535)" in said
    assert "--event-log-bytes 67108864 (bytes, at least 1048576)" in said
    assert "--write-timeout-s 20 (seconds, at least 0.1)" in said
    assert "--host 127.0.0.1 (address)" in said


@pytest.mark.parametrize("columns", ["40", "72", "100"])
def test_settings_is_as_wide_as_the_terminal(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert int(columns) - 5 <= max(map(len, listed(capsys).splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["MCP_PROBE_PORT"], ["--port"]),
        (["Host", "names"], ["--allowed-hosts"]),
        (["prometheus"], ["--metrics"]),
        (["deadlines of tool"], ["--idle-deadline-s", "--ceiling-deadline-s"]),
    ],
)
def test_settings_finds_what_is_about_words(
    words: list[str], flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = listed(capsys, *words)
    assert [line.split()[0] for line in said.splitlines() if line.startswith("  --")] == flags


@pytest.mark.parametrize(
    ("word", "told"),
    [("max-sesions", "did you mean max-sessions or "), ("xyzzy", "")],
)
def test_settings_says_when_there_is_none(word: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "settings", word).startswith(f"no setting is about {word!r}{told and '; '}{told}")


def test_answers_about_itself_do_not_load_the_server() -> None:
    words = [
        [],
        ["--version"],
        ["settings"],
        *([name, "--help"] for name in ("serve", "stdio", "tail", "toolhost-demo")),
    ]
    every = f"import sys; from probe.cli.program import main; [main(each) for each in {words!r}]"
    done = run([sys.executable, "-c", f"{every}; print('trio' in sys.modules, file=sys.stderr)"])
    assert (done.returncode, done.stderr.strip()) == (0, "False")


def run(command: list[str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = os.environ | (variables or {})
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert str(port) in refusal(capsys, "serve", "--port", str(port))


def test_unknown_tools_have_a_hint_and_the_list_of_toolsets(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    sets = "all, probe, streaming, features, dispatch, conformance, skills, hosts"
    expected = f"unknown tools: progres (did you mean progress?), xyzzy; toolsets are {sets}"
    assert refusal(capsys, command, "--port=0", "--tools=progres,xyzzy") == expected


STARTS = [["serve", "--port=0"], ["stdio", "--dashboard=0"]]


@each("arguments", STARTS)
def test_certificate_that_does_not_exist(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "no-such-file.pem" in refusal(capsys, *arguments, "--certfile=no-such-file.pem")


@each("arguments", STARTS)
def test_address_that_is_not_this_machine(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    # TEST-NET-1 (RFC 5737): never assigned, so binding it fails without any name lookup
    assert "192.0.2.1" in refusal(capsys, *arguments, "--host=192.0.2.1")


def test_a_process_that_cannot_start_says_why_on_one_line() -> None:
    done = run([sys.executable, "-m", "probe", "serve", "--port=0", "--tools=xyzzy"])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: unknown tools: xyzzy; ")


def test_ctrl_c_ends_a_real_server_with_exit_code_0() -> None:
    command = [sys.executable, "-m", "probe", "serve", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        deadline = Timer(PATIENCE_S, server.kill)
        try:
            assert server.stderr is not None
            deadline.start()
            line = server.stderr.readline()
            assert "http://127.0.0.1:" in line
            url = line.partition(" on ")[2].partition("/mcp")[0]
            assert server.stderr.readline() == f"Dashboard: {url}/dashboard\n"
            server.send_signal(signal.SIGINT)
            _, rest = server.communicate(timeout=PATIENCE_S)
            assert server.returncode == 0, rest
            assert "Traceback" not in rest
            assert "press Ctrl-C again" in rest
        finally:
            deadline.cancel()
            server.kill()


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """The URL, name and secret of each demo host that would have been started."""
    calls: list[tuple[str, str, str]] = []
    monkeypatch.setattr("probe.toolhost.demo.main", lambda *arguments: calls.append(arguments))
    return calls


def test_the_demo_host_has_defaults_for_all_but_the_secret(hosted: list[tuple[str, str, str]]) -> None:
    assert main(["toolhost-demo", "--toolhost-secret", "0123456789abcdef"]) == 0
    assert hosted == [("ws://127.0.0.1:8000/toolhost", "demo", "0123456789abcdef")]


def test_the_demo_host_takes_the_secret_of_the_server(
    hosted: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PROBE_TOOLHOST_SECRET", "0123456789abcdef")
    assert main(["toolhost-demo", "--url", "ws://a/b", "--name", "mine"]) == 0
    assert hosted == [("ws://a/b", "mine", "0123456789abcdef")]


def test_the_demo_host_needs_a_secret(hosted: list[tuple[str, str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    line = refusal(capsys, "toolhost-demo")
    assert "--toolhost-secret" in line
    assert "MCP_PROBE_TOOLHOST_SECRET" in line
    assert hosted == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--name", "no spaces"], "name of the tool host"), (["--url", "http://127.0.0.1:1/"], "is no URL such as ws://")],
)
def test_a_demo_host_that_cannot_be(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in refusal(capsys, "toolhost-demo", "--toolhost-secret=0123456789abcdef", *arguments)


def test_a_server_without_tool_hosts_refuses_the_demo_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        answering = Thread(target=answer_once, args=(server, answer))
        answering.start()
        url = f"ws://127.0.0.1:{server.getsockname()[1]}/toolhost"
        line = refusal(capsys, "toolhost-demo", "--toolhost-secret=0123456789abcdef", "--url", url)
        answering.join(PATIENCE_S)
    assert line == f"{url}: the server answered with status 404"


def answer_once(server: socket.socket, answer: bytes) -> None:
    server.settimeout(PATIENCE_S)
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)
