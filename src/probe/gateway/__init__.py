"""The other end: what a gateway does to the protocol, seen from before it and from behind it at once.

    client/        the wire client: it never repeats a request, and stamps what arrives
    side.py        one way to the probe, direct or through the gateway, and what it offers
    naming.py      what tools are called on the way through
    script/        what is asked: each step gives a trial, its exchanges with the moments of the client
    behind.py      the event log of the probe: read, and joined to a trial by the mark in its arguments
    trials.py      a trial with its entries; a run, written to a file and read back
    checks/        what the trials of both ways say: one pure function for each fault
    catalogue.toml the faults: number, name, severity, and what its maker should do
    report/        findings for people and for programs
    breaker.py     a proxy that breaks connections at chosen moments
    refusal.py     why a way does not lead to the probe, in one line
    cleaning.py    a gateway's text on one line
    silence.py     does the gateway still answer
    run.py         the order of all this
    observe.py     what the log of a probe says alone
    doctor/        what clients need of a public address, asked with the standard library alone

`script` never judges, `checks` never sends: so a run that was saved is judged again with what is known later.
"""
