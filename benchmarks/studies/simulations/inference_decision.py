"""Read the results of ``inference_trial`` by its rule of the decision.

python -m benchmarks.studies.simulations.inference_decision FILE.csv …
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fusion_bench.stats.intervals import clopper_pearson
from fusion_bench.util.special_functions import special

UNCOVERED, FALSE, LOST = 0.06, 0.05, 0.03
#: Below so many units a design in which the largest groups lose is tabled only.
LARGE_LOSE, UNITS_FOR_LOST = 200, 60
LINES: Final = ("1 coverage", "2 false answers", "3 answers lost", "4 best group")


def read_rows(paths: Sequence[Path]) -> list[dict[str, str]]:
    """All rows of result files."""
    rows: list[dict[str, str]] = []
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            rows += csv.DictReader(file)
    return rows


def find_failures(rows: Sequence[dict[str, str]]) -> Iterator[tuple[str, str, str, str, float]]:
    """Rule, draws, line, cell with its truth, and the share or mean that fails."""
    cells = {(row["cell"], row["truth"]) for row in rows}
    level = 0.05 / len(cells)
    errors = float(special.ndtri(1 - level / 2))
    for row in rows:
        rule, draws = row["rule"], row["draws"]
        cell, runs, units = row["cell"], int(row["runs"]), int(row["cell"].split()[-2])
        if "largest lose" in cell and units < LARGE_LOSE:
            continue
        name = f"{cell}, {row['truth']}"
        limits = [(LINES[0], "uncovered", UNCOVERED), (LINES[1], "false", FALSE)]
        if cell.startswith("best group"):
            limits = [(LINES[3], "uncovered", FALSE)]
        for line, key, limit in limits:
            count = int(row[key])
            if clopper_pearson(count, runs, 1 - level)[0] > limit:
                yield rule, draws, line, name, count / runs
        if units >= UNITS_FOR_LOST and rule != "flips":
            lost = float(row["lost"])
            if lost - errors * float(row["lost_error"]) > LOST:
                yield rule, draws, LINES[2], name, lost


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how many cells each rule fails by line, and which."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+")
    rows = read_rows(parser.parse_args(arguments).paths)
    tried: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for row in rows:
        tried[row["rule"], row["draws"]].add((row["cell"], row["truth"]))
    failures = [*find_failures(rows)]
    for (rule, draws), cells in sorted(tried.items()):
        mine = [each for each in failures if each[:2] == (rule, draws)]
        counts = {line: sum(each[2] == line for each in mine) for line in LINES}
        print(f"{rule}, {draws} draws: {len(cells)} cells; fails {counts}")
        for _, _, line, name, share in sorted(mine, key=lambda each: (each[2], -each[4])):
            print(f"   {line}: {name}: {share:.1%}")


if __name__ == "__main__":
    main()
