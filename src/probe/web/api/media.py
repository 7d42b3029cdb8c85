"""The media types of pages."""

from __future__ import annotations

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
CSV = "text/csv"
HTML = "text/html"
XML = "application/xml"
ZIP = "application/zip"
