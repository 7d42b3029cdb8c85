"""How fast this server is, beside others, in one run: `python -m bench`, or `nox -s bench`.

    __main__.py   which measurement of which server when, and the options
    servers.py    how each server is started: ours, two official SDKs, and hypercorn with nothing behind it
    reference/    the other servers, each with the same tools
    load.py       what is measured, from the client's side
    client.py     the part of an MCP client that the load needs, legacy and modern
    http1.py      the part of HTTP/1.1 that the client needs
    report.py     the tables, and which aim is met

Servers run on one core and this process on another, where the system can be told so. `docs/benchmarks.md` explains the
method and shows a run.
"""
