"""Servers to compare with. Each prints its URL once it listens.

The SDKs' have the tools `echo`, `progress`, `wait` and `ended`.
"""
