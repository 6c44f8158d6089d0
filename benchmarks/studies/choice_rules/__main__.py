"""Six rules of choice on trial, on nulls, on planted gains, and on queries that no rule has seen.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.choice_rules

Each world is stored, so a run that was stopped continues where it was. Table and picture are made
from what is stored, with ``--page`` alone without computing anything.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.choice_rules.pairs import pair_names
from benchmarks.studies.choice_rules.results import RESULTS, read_results
from benchmarks.studies.choice_rules.run import TOY_WORLDS, WORLDS, run_rounds
from benchmarks.studies.choice_rules.table import format_tables, write_page


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the worlds that are missing, and the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.choice_rules", description=__doc__
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--toy", action="store_true", help="a small made collection, a few seconds")
    mode.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args(arguments)
    if options.toy:
        with tempfile.TemporaryDirectory() as folder:
            for line in run_rounds(["toy"], TOY_WORLDS, Path(folder), 1):
                print(line, flush=True)
            print(format_tables(read_results(Path(folder))))
        return
    if not options.page:
        for worlds in WORLDS:
            for line in run_rounds(pair_names(), worlds, RESULTS):
                print(line, flush=True)
    write_page(read_results())


if __name__ == "__main__":
    main()
