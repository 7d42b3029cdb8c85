"""The gateway check: what a gateway does to the protocol, seen from both of its ends at once.

    client/        the wire client: one connection for each request, no repeats, a time for each arrival
    side.py        one way to the probe, direct or through the gateway, and what it offers
    naming.py      the names of the probe's tools at the gateway
    marks.py       the numbers in the arguments of calls, by which the log has them
    phases/        the steps (each sends requests, and records exchanges with the times of the client), and beside
                   each its checks: one pure function for each fault, trials of both ways in, comparison out
    behind.py      the event log of the probe: read, and joined to a trial by the mark in its arguments
    trials.py      a trial (a step on one way, with its entries), and a run, written to a file and read back
    checks.py      the findings of a run: the verdict of each check
    catalogue.toml the faults: number, name, severity, and hints for products
    report.py      the findings as a table, JSON, JUnit XML, Markdown or HTML
    breaker.py     a proxy that breaks connections at chosen moments
    refusal.py     why a way does not lead to the probe, on one line
    run.py         the order of all this
    observe.py     guesses from the log of a probe alone
    doctor/        what clients need of a public address, checked with the standard library alone

A step does not judge, and a check does not send. So a saved run can be judged again by later checks.
"""
