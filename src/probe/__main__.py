"""`python -m probe` is `mcp-probe`."""

from __future__ import annotations

import sys

from .cli.program import main

sys.exit(main())
