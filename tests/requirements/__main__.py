"""`python -m tests.requirements` writes `docs/internals/requirements.md`."""

from __future__ import annotations

from . import DOCUMENT, document

DOCUMENT.write_text(document(), encoding="utf-8")
