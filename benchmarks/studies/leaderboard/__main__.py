"""docs/studies/leaderboard.md: the leaderboard of all collections at hand.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.leaderboard [OPTIONS]

Options are those of ``python -m benchmarks.leaderboard``. With ``--docs`` the pages go to
docs/studies/ as well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.leaderboard.page import PAGE, TABLES
from benchmarks.leaderboard.records import FILE, Leaderboard, read_leaderboard
from benchmarks.studies.choice_rules.results import read_results
from benchmarks.studies.choice_rules.run import NULL, OURS, UNSEEN
from benchmarks.studies.choice_rules.table import CAPTION, tally
from benchmarks.studies.leaderboard.catalog import find_collections
from benchmarks.studies.leaderboard.methods import ROOT
from fusion_bench.util.files import write_atomic

FOLDER = ROOT / "reports" / "leaderboard"
STUDIES = ROOT / "docs" / "studies"
#: Three collections of one benchmark, with the same systems and few documents a query.
ALIKE = "bright-biology,bright-economics,bright-robotics"
#: Measured once, with one process; the seconds of stored cells are those of a clock.
COST = """\
## What it costs

On one process, all cells of trec-dl-2019 take 18 CPU seconds, of nfcorpus 30, and of codec 12. The
two most expensive cells of jqara (coordinate_ascent and lambdamart) take 39. The other cells were
not measured alone. At the ratio of trec-dl-2019, all eleven collections take about 8 CPU minutes,
and the pages 2 more.

[leaderboard.csv](leaderboard.csv) has every row of every collection: mean nDCG@10, its standard
error by query, and Judged@10.
"""
#: How a reader makes such a page.
RUN = """\
## Run it on your collections

In a clone of this repository, with two lists or more in each dataset:

```sh
python -m benchmarks.leaderboard datasets/mine datasets/other --out reports/leaderboard
```

`--methods core` compares a dozen methods, and `--jobs 2` uses two processes. `--alike mine,other`
counts collections that resemble each other as one effect. To continue a stopped run, type the same
command again."""
#: The means of all rows, among the studies.
DOWNLOAD = "leaderboard.csv"
PRIMARY, JUDGED = "nDCG@10", "Judged@10"


def main(arguments: Sequence[str]) -> int:
    """Run the command on every collection, and copy what it wrote; its exit code."""
    options = [each for each in arguments if each != "--docs"]
    paths = [str(path) for _, path in find_collections(FOLDER / "data")]
    command = [sys.executable, "-m", "benchmarks.leaderboard", *paths]
    command += ["--alike", ALIKE, "--out", str(FOLDER), *options]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own module
    if code == 0 and "--docs" in arguments:
        copy_pages(FOLDER, STUDIES)
    return code


def copy_pages(source: Path, studies: Path) -> None:
    """Copy the page with its pictures, and its tables."""
    page = (source / PAGE).read_text(encoding="utf-8")
    questions, rest = page.split("\n\n## ", maxsplit=1)
    pictures, collections = rest.split("\n\n## Collections")
    blocks = (
        f"{questions}\n{describe_trust()}",
        f"## {pictures}",
        "## Which tuner's choice can you trust?",
        f"![{CAPTION}](choice-rules.png)",
        f"## Collections{collections.rstrip()}",
        RUN,
    )
    write_atomic(studies / PAGE, ("\n\n".join(blocks) + "\n").encode())
    tables = (source / TABLES).read_text(encoding="utf-8")
    write_atomic(studies / TABLES, f"{tables}\n{COST}".encode())
    board = read_leaderboard(source / FILE)
    rows = pd.DataFrame(list_means(board))
    write_atomic(studies / DOWNLOAD, rows.to_csv(index=False, float_format="%.6f").encode())
    for path in (*source.glob("leaderboard-*.png"), *source.glob("leaderboard-*.csv")):
        shutil.copyfile(path, studies / path.name)


def list_means(board: Leaderboard) -> Iterator[dict[str, object]]:
    """The means of every row of every collection, as a table to download has them."""
    for collection in board.collections:
        for cell in collection.cells:
            values = np.array(cell.values.get(PRIMARY, ()))
            if len(values):
                yield {
                    "collection": collection.head.name,
                    "row": cell.row.name,
                    "kind": cell.row.kind,
                    "queries": len(values),
                    PRIMARY: values.mean(),
                    "standard error": values.std(ddof=1) / len(values) ** 0.5,
                    JUDGED: np.mean(cell.values.get(JUDGED, np.nan)),
                }


def describe_trust() -> str:
    """The fifth question, which another study answers."""
    results = read_results()
    nulls, unseen = (
        {rule: tally(results, kind, rule) for rule in ("best mean", "t interval", OURS)}
        for kind in (NULL, UNSEEN)
    )
    shipped = {rule: found.share for rule, found in nulls.items() if found is not None}
    kept = {rule: f"{found.kept:.0%}" for rule, found in unseen.items() if found is not None}
    ships = {
        rule: "{:.1%} [{:.1%}, {:.1%}]".format(share.share, *share.interval)
        for rule, share in shipped.items()
    }
    return (
        "5. **Which tuner's choice can you trust?** If no setting is truly better, the best mean "
        f"of a grid ships a change in {ships['best mean']} of cases. A winner with a t interval in "
        f"sample ships in {ships['t interval']}, and `fusion-bench tune` in {ships[OURS]}. On "
        f"unseen halves they keep {kept['best mean']}, {kept['t interval']} and {kept[OURS]} of "
        "the gain. ([six rules on trial](choice-rules.md))"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
