"""Revision 2026-07-28, without sessions, and its tasks extension."""
