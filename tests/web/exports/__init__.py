"""Logs as files for others: session files, HAR, pages."""
