"""``python datasets/referee/rebuild``: rebuild what is computed from the written texts.

``--pools FILE`` writes the pairs that are to be judged, with their texts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2]))  # for entity_walk

try:
    from pipeline import rebuild, write_pools
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"{missing}; building the collection needs: pip install 'rank-fusion-bench[collections]'"
    ) from missing

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python datasets/referee/rebuild", description=__doc__)
    parser.add_argument("--pools", type=Path, metavar="FILE")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    options = parser.parse_args()
    if options.pools is None:
        rebuild(options.root)
    else:
        write_pools(options.root, options.pools)
