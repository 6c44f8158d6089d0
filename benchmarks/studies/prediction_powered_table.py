"""Coverage of the intervals of ``grades estimate``, and of others, where machines are simulated.

    python -m benchmarks.studies.prediction_powered_table [--runs N] [--dry-run]

Each run draws queries with replacement from a collection, each with one of its gradings by a
simulated machine, and lets people judge the first n of them. The true difference of two systems is
that of people's grades over the collection's queries.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.studies.machine_judges.population import SYSTEMS, Population, make_population
from benchmarks.studies.simulations.promise import Promise
from benchmarks.table import format_rows, pivot, read_rows, replace_between_marks, write_csv
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.prediction_powered import estimate_powered_mean

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "judges.md"
MARK = "prediction-powered"
QUERIES, SIZES, GRADINGS, RUNS, SEED = 300, (10, 20, 50), 200, 2_000, 18
COVERAGE = 0.95
OURS = "this package"
#: The columns of coverage.
METHODS = ("machine only", "people only", "λ = 1", "plug-in λ, z", OURS)
#: Estimate and half width.
Interval = tuple[float, float]


class Cell(NamedTuple):
    """One collection, machine and number of people's queries, over all pairs of systems.

    Attributes:
        collection: The collection.
        judge: The machine.
        size: Queries that people judged.
        covered: Method → pair of systems → runs whose interval holds the true difference.
        runs: Of each pair.
        width: Mean width of our interval ÷ that of people's alone.
    """

    collection: str
    judge: str
    size: int
    covered: Mapping[str, tuple[int, ...]]
    runs: int
    width: float


def list_intervals(people: FloatArray, machine: FloatArray) -> dict[str, Interval]:
    """The interval of each method; people judged the first of the machine's queries."""
    count, total = len(people), len(machine)
    ours = estimate_powered_mean(people, machine, np.arange(count))
    variance = float(machine.var(ddof=1))
    slope = float(np.cov(people, machine[:count])[0, 1]) / variance if variance else 0.0
    return {
        "machine only": _t_interval(ours.machine.mean, ours.machine.standard_error, total - 1),
        "people only": _t_interval(ours.people.mean, ours.people.standard_error, count - 1),
        "λ = 1": _t_interval(*_plug_in(people, machine, 1.0), count - 1),
        "plug-in λ, z": _t_interval(*_plug_in(people, machine, min(max(slope, 0.0), 1.0)), 1e9),
        OURS: (ours.mean, ours.half_width),
    }


def _plug_in(people: FloatArray, machine: FloatArray, weight: float) -> tuple[float, float]:
    """The estimate with a given λ, and its standard error as if λ were no estimate."""
    count, total = len(people), len(machine)
    part = weight * (1 - count / total)  # the weight of the queries that people did not judge
    rest = machine[count:]
    residuals = people - part * machine[:count]
    variance = residuals.var(ddof=1) / count + part**2 * machine.var(ddof=1) / len(rest)
    return float(residuals.mean() + part * rest.mean()), math.sqrt(float(variance))


def _t_interval(mean: float, error: float, freedom: float) -> Interval:
    return mean, t_quantile(freedom, (1 + COVERAGE) / 2) * error


def simulate_cell(
    population: Population,
    collection: str,
    judge: str,
    size: int,
    *,
    runs: int,
    seed: Sequence[int],
) -> Cell:
    """Simulate all pairs of systems."""
    rng = np.random.default_rng(seed)
    machines = population.machines[judge]
    covered: dict[str, list[int]] = {method: [] for method in METHODS}
    ours = alone = 0.0
    for a, b in combinations(range(len(population.systems)), 2):
        people, machine = population.people[b] - population.people[a], machines[b] - machines[a]
        counts = dict.fromkeys(METHODS, 0)
        for _ in range(runs):
            queries = rng.integers(len(people), size=QUERIES)
            grading = rng.integers(machine.shape[1], size=QUERIES)
            intervals = list_intervals(people[queries[:size]], machine[queries, grading])
            for method, (mean, half_width) in intervals.items():
                counts[method] += abs(mean - float(people.mean())) <= half_width + 1e-12
            ours += intervals[OURS][1]
            alone += intervals["people only"][1]
        for method, count in counts.items():
            covered[method].append(count)
    return Cell(
        collection, judge, size, {k: tuple(v) for k, v in covered.items()}, runs, ours / alone
    )


def simulate_all(runs: int) -> Iterator[Cell]:
    """Every collection, machine and number of queries."""
    for collection in SYSTEMS:
        population = make_population(collection, gradings=GRADINGS, seed=SEED)
        number = list(SYSTEMS).index(collection)
        for n, judge in enumerate(population.machines):
            for size in SIZES:
                seed = (SEED, number, n, size)
                yield simulate_cell(population, collection, judge, size, runs=runs, seed=seed)


def format_table(cells: list[Cell]) -> str:
    """As Markdown: a sentence, and a row a cell."""
    promises = {method: list(_list_promises(cells, method)) for method in METHODS}
    held = {m: sum(bool(each.holds) for each in found) for m, found in promises.items()}
    count = len(promises[OURS])
    least = {m: min(each.share for each in found) for m, found in promises.items()}
    lines = [
        f"{count} designs: 2 collections, 7 machines, 6 pairs of systems, 3 sizes; "
        f"{cells[0].runs:,} runs each (`python -m benchmarks.studies.prediction_powered_table`). "
        "Designs with a coverage of 95 % or more within simulation error (least coverage of a "
        "design):\n"
        + "".join(f"\n- {m}: {held[m]} ({100 * least[m]:.1f} %)" for m in METHODS)
        + "\n",
        f"| collection | machine | people's queries | {' | '.join(METHODS)} | least | width |",
        f"|:--|:--|--:|{'--:|' * len(METHODS)}--:|--:|",
    ]
    for cell in cells:
        pairs = len(cell.covered[OURS]) * cell.runs
        shares = [f"{100 * sum(cell.covered[m]) / pairs:.1f} %" for m in METHODS]
        worst = f"{100 * min(cell.covered[OURS]) / cell.runs:.1f} %"
        start = f"| {cell.collection} | {cell.judge} | {cell.size} "
        lines.append(f"{start}| {' | '.join(shares)} | {worst} | {cell.width:.2f} |")
    return "\n".join(lines) + "\n"


def _list_promises(cells: list[Cell], method: str) -> Iterator[Promise]:
    for cell in cells:
        for count in cell.covered[method]:
            yield Promise(cell.judge, method, count, cell.runs, COVERAGE, "at least")


def main() -> None:
    """Simulate, print the table, and renew it in docs/studies/judges.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each design")
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    table = format_table(list(simulate_all(options.runs)))
    print(table)
    if not options.dry_run:
        sentence = table[: table.index("|")].strip()
        rows = read_rows(table)
        widths = format_rows(pivot(rows, ["collection", "machine"], "people's queries", "width"), 2)
        link = write_csv(PAGE, MARK, rows)
        replace_between_marks(PAGE, f"{sentence}\n\n{widths}\n\n{link}\n", mark=MARK)


if __name__ == "__main__":
    main()
