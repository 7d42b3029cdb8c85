"""How fast this server is, beside others, in one run: `python -m bench`, or `nox -s bench`.

    __main__.py   which measurement of which server when, and the options
    servers.py    how each server is started: ours, two official SDKs, and hypercorn with nothing behind it
    reference/    the other servers, each with the same tools
    tools.py      calls as fast as they are answered, by wrk and h2load
    load.py       open streams, cancellations and subscriptions, from the client's side
    pipes.py      calls over a WebSocket and over standard streams
    feed.py, hosts.py, start.py, growth.py
                  calls beside dashboards, through a tool host, the first one of all, and while the server holds more
    cluster.py, replicas.py
                  replicas with rooms behind a balancer, and how calls a second grow with them
    client.py     the part of an MCP client that the load needs, legacy and modern
    http1.py      the part of HTTP/1.1 that the client needs
    results.py    what was measured, as figures that another run can be compared with
    aims.py       which aim is met
    report.py     the tables

Servers run on one core and the load on another, where the system can be told so. `docs/internals/benchmarks.md`
explains the method and shows a run.
"""
