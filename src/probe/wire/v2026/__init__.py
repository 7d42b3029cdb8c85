"""Revision 2026-07-28, without sessions, and the tasks extension that goes with it."""
