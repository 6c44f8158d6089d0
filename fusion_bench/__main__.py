"""``python -m fusion_bench`` and the command ``fusion-bench``."""

from __future__ import annotations

import sys

from fusion_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
