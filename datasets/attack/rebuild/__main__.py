"""``python datasets/attack/rebuild [FOLDER]``: rebuild ``datasets/attack`` from pinned packages."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # for entity_walk

try:
    from pipeline import main
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"{missing}; building the collection needs: pip install 'rank-fusion-bench[collections]'"
    ) from missing

if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
