"""`python -m tests.requirements` writes `docs/requirements.md`."""

from __future__ import annotations

from . import DOCUMENT, document

DOCUMENT.write_text(document(), encoding="utf-8")
