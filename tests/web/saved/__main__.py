"""`python -m tests.web.saved` records the answers anew: a change of one is a diff with a line for each entry or row."""

from __future__ import annotations

import trio

from . import FOLDER, RECORDED, answers

for file in RECORDED:
    file.write_bytes(b"".join(trio.run(answers, FOLDER / file.name.removesuffix(".txt"))))
