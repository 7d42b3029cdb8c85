"""Asks a server from outside whether it does what clients need, and what stands between does to a stream.

It uses the standard library alone and nothing else of this program: `infra/smoke.py` runs the checks where nothing is
installed.
"""
