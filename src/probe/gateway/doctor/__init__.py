"""Checks a public address from outside: the server, and the proxies before it.

It imports the standard library alone: `infra/smoke.py` runs the checks without an installation.
"""
