"""Compare every fusion method on collections of your own.

    python -m benchmarks.leaderboard DATASET... --out DIR

Evaluates, tunes out of fold and compares every method. Writes leaderboard.md, its tables and
pictures, and leaderboard.json with the values of every query and no text or id. A run that was
stopped continues where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from benchmarks.leaderboard.evaluate import run_collections
from benchmarks.leaderboard.page import render_pages
from benchmarks.leaderboard.records import TuningBudget
from benchmarks.leaderboard.results import collect_cells
from benchmarks.leaderboard.rows import Methods
from fusion_bench.cli.application.commands import find_dataset_file
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.outputs import guard_outputs, refuse_inputs, write_outputs
from fusion_bench.util.files import make_output_folder


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("collections", nargs="+", metavar="DATASET", help="two lists or more each")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--methods", choices=get_args(Methods), default="all")
    parser.add_argument("--trials", type=int, default=50, help="random settings of each tuned row")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--alike",
        action="append",
        default=[],
        metavar="A,B,C",
        help="collections that resemble each other and count as one effect; repeatable",
    )
    parser.add_argument("--force", action="store_true", help="replace files of other programs")
    options = parser.parse_args(arguments)
    if options.trials < 2 or options.jobs < 1:
        parser.error("--trials needs 2 or more, --jobs 1 or more")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Finish every row and write the pages; the exit code."""
    options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    try:
        with guard_outputs({"--out": options.out}, (), is_forced=options.force):
            _run(options)
    except FusionBenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    paths = [find_dataset_file(name) for name in options.collections]
    refuse_inputs(paths)
    cells = make_output_folder(options.out) / "cells"
    counts = run_collections(
        paths,
        cells,
        TuningBudget(trials=options.trials),
        jobs=options.jobs,
        methods=options.methods,
        progress=lambda text, done, total: print(f"{text}, {done} of {total}", file=sys.stderr),
    )
    clusters = {name: cluster for cluster in options.alike for name in cluster.split(",")}
    written = write_outputs(options.out, render_pages(collect_cells(cells, clusters)))
    print(", ".join(f"{count} rows {word}" for word, count in sorted(counts.items())))
    print(f"Written: {', '.join(map(str, written))}")


if __name__ == "__main__":
    sys.exit(main())
