"""Fixtures: they are those of the socket tests."""

from __future__ import annotations

from ..sockets.conftest import certificate, dial

__all__ = ["certificate", "dial"]
