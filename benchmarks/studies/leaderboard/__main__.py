"""docs/studies/leaderboard.md: the leaderboard of all collections at hand.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.leaderboard [OPTIONS]

Options are those of ``python -m benchmarks.leaderboard``. With ``--docs`` the pages go to
docs/studies/ as well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.leaderboard.answers import find_reranked_pair
from benchmarks.leaderboard.page import PAGE, TABLES
from benchmarks.leaderboard.records import FILE, read_leaderboard
from benchmarks.leaderboard.results import ZERO, CollectionResults, list_results
from benchmarks.leaderboard.rows import BASELINE, CHOSEN_CONSTANT, TUNED_PAIR, against_source
from benchmarks.studies.choice_rules.results import read_results
from benchmarks.studies.choice_rules.run import NULL, OURS, UNSEEN
from benchmarks.studies.choice_rules.table import CAPTION, tally
from benchmarks.studies.leaderboard.catalog import find_collections
from benchmarks.studies.leaderboard.methods import ROOT
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.inference import mean_error
from fusion_bench.stats.intervals import paired_difference
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
error by query and by group, and Judged@10. The rows of kind `headline 1` to `4` have the
differences behind the answers; the intervals use their errors by group.
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
    results = list_results(read_leaderboard(source / FILE))
    write_atomic(studies / DOWNLOAD, format_csv(map(describe_row, list_means(results))))
    for path in (*source.glob("leaderboard-*.png"), *source.glob("leaderboard-*.csv")):
        shutil.copyfile(path, studies / path.name)


class Row(NamedTuple):
    """A row of the table to download, with its (Q,) values."""

    results: CollectionResults
    name: str
    kind: str
    values: FloatArray


def list_means(results: Iterable[CollectionResults]) -> Iterator[Row]:
    """Every row of every collection, then the differences behind its headlines."""
    for each in results:
        for cell in each.cells.values():
            if (values := each.values(cell.row.name)) is not None:
                yield Row(each, cell.row.name, cell.row.kind, values)
        for headline, candidate, baseline in list_headlines(each):
            after, before = each.values(candidate), each.values(baseline)
            if after is not None and before is not None:
                name, kind = f"{candidate} − {baseline}", f"headline {headline}"
                yield Row(each, name, kind, paired_difference(after, before))


def list_headlines(each: CollectionResults) -> Iterator[tuple[str, str, str]]:
    """The number of each headline, and the two rows whose difference it is about."""
    reranked = find_reranked_pair(each)
    pairs = {
        "1, untuned": (BASELINE, each.best(row.name for row in each.rows_of("source"))),
        "1": (against_source(BASELINE), ZERO),
        **({"2": (TUNED_PAIR, ZERO)} if each.is_scored else {}),
        "3": (CHOSEN_CONSTANT, BASELINE),
        **({} if reranked is None else {"4": reranked}),
    }
    yield from ((name, *pair) for name, pair in pairs.items())


def describe_row(row: Row) -> dict[str, object]:
    """The cells of a row: its mean, with the error by query and by group."""
    values, cell = row.values, row.results.cells.get(row.name)
    residuals = values - values.mean()
    codes = number_by_appearance(row.results.head.groups)[0]
    return {
        "collection": row.results.head.name,
        "row": row.name,
        "kind": row.kind,
        "queries": len(values),
        PRIMARY: values.mean(),
        "error by query": mean_error(residuals, len(values)),
        "error by group": mean_error(np.bincount(codes, residuals).astype(float), len(values)),
        JUDGED: np.nan if cell is None else np.mean(cell.values.get(JUDGED, np.nan)),
    }


def format_csv(rows: Iterable[Mapping[str, object]]) -> bytes:
    """The table to download."""
    return pd.DataFrame([*rows]).to_csv(index=False, float_format="%.6f").encode()


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
