"""Takes what is random or a time out of CycloneDX files: the same packages give the same bytes.

    python settle_sbom.py FILE...

npm has no switch for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def settle(file: Path) -> None:
    """Rewrite one file."""
    bom = json.loads(file.read_text())
    bom.pop("serialNumber", None)
    bom.get("metadata", {}).pop("timestamp", None)
    file.write_text(json.dumps(bom, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        settle(Path(name))
