"""The leaderboard: every method on every collection, tuned and untuned.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.leaderboard

Each finished row is stored, so a run that was stopped continues where it was. The page and the
picture are made from what is stored, with ``--page`` alone without computing anything.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.leaderboard.catalog import find_collections
from benchmarks.studies.leaderboard.cells import Budget, Cell
from benchmarks.studies.leaderboard.methods import ROOT
from benchmarks.studies.leaderboard.page import write_page
from benchmarks.studies.leaderboard.results import read_results
from benchmarks.studies.leaderboard.run import run_collections

FOLDER = ROOT / "reports" / "leaderboard"


def report_cell(collection: str, cell: Cell, is_new: bool) -> None:
    """Print a line for what was computed or skipped."""
    if cell.skipped:
        print(f"{collection}: {cell.row.name}: skipped: {cell.skipped}", flush=True)
    elif is_new:
        print(f"{collection}: {cell.row.name}: {cell.seconds:.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Finish the rows that are missing, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.leaderboard", description=__doc__
    )
    parser.add_argument("--only", action="append", help="a collection; repeatable; default: all")
    parser.add_argument("--trials", type=int, default=Budget().trials)
    parser.add_argument("--folds", type=int, default=Budget().folds)
    parser.add_argument("--jobs", type=int, default=2, help="processes; 2 by default")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where results are stored")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--out", type=Path, help="folder of the page; default: the results'")
    options = parser.parse_args(arguments)
    cells, out = options.folder / "cells", options.out or options.folder
    if not options.page:
        finish_rows(options, cells)
    if results := read_results(cells):
        print(write_page(results, out))


def finish_rows(options: argparse.Namespace, cells: Path) -> None:
    """Finish the rows that are missing, and print how many there were."""
    budget = Budget(trials=options.trials, folds=options.folds)
    collections = [
        (name, path)
        for name, path in find_collections(options.folder / "data")
        if not options.only or name in options.only
    ]
    started = time.perf_counter()
    counts = run_collections(collections, cells, budget, jobs=options.jobs, report=report_cell)
    listed = ", ".join(f"{count} rows {word}" for word, count in sorted(counts.items()))
    print(f"{len(collections)} collections, {listed}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
