"""The gateway check: what a gateway does to the protocol, seen from both of its ends at once.

`run.py` has the order of all this. A step does not judge, and a check does not send: so a saved run can be judged again
by later checks. docs/internals/gateway.md shows how a check is made.
"""
