"""docs/leaderboard.md: the leaderboard of all collections at hand.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.leaderboard [OPTIONS]

Options are those of ``fusion-bench leaderboard``. With ``--docs`` the pages go to docs/ as well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.leaderboard.catalog import find_collections
from benchmarks.studies.leaderboard.methods import ROOT
from fusion_bench.leaderboard.page import PAGE, TABLES
from fusion_bench.util.files import write_atomic

FOLDER = ROOT / "reports" / "leaderboard"
DOCS = ROOT / "docs"
#: Three collections of one benchmark, with the same systems and few documents a query.
CLUSTER = "bright-biology,bright-economics,bright-robotics"


def main(arguments: Sequence[str]) -> int:
    """Run the command on every collection, and copy what it wrote; its exit code."""
    options = [each for each in arguments if each != "--docs"]
    paths = [str(path) for _, path in find_collections(FOLDER / "data")]
    command = [sys.executable, "-m", "fusion_bench", "leaderboard", *paths]
    command += ["--cluster", CLUSTER, "--out", str(FOLDER), *options]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own module
    if code == 0 and "--docs" in arguments:
        copy_pages(FOLDER, DOCS)
    return code


def copy_pages(source: Path, docs: Path) -> None:
    """The page with its pictures, and its tables among the studies."""
    page = (source / PAGE).read_text(encoding="utf-8").replace(f"({TABLES}", f"(studies/{TABLES}")
    write_atomic(docs / PAGE, page.encode())
    shutil.copyfile(source / TABLES, docs / "studies" / TABLES)
    for picture in source.glob("leaderboard-*.png"):
        shutil.copyfile(picture, docs / picture.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
