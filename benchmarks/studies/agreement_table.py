"""Coverage of intervals of Cohen's kappa, where the pairs of a query depend on each other.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.agreement_table [--runs N] [--dry-run]

Each run draws queries with replacement from the 22 of TREC RAG 2025 that three models judged, and
for each so many of its pairs. The true kappa is that of all queries with equal weight.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.table import read_rows, replace_between_marks, write_csv
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.io.load_records import load_qrels
from fusion_bench.stats.agreement import kappa_of_counts, make_weights, measure_kappa, pair_grades
from fusion_bench.stats.intervals import clopper_pearson

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "judges.md"
MARK = "agreement"
JUDGES = ("codex", "qwen", "ministral")
QUERIES, PAIRS, RUNS, RESAMPLES, SEED = (5, 10, 20, 50), (10, 50), 2_000, 400, 18
NORMAL = 1.959963984540054
METHODS = ("large-sample formula", "bootstrap over queries", "this package")


class Design(NamedTuple):
    """Two judges, and how much both of them graded.

    Attributes:
        judges: Their names.
        queries: Queries drawn.
        pairs: Pairs drawn of each.
        covered: Method → runs whose interval holds the true kappa.
        runs: All runs.
        truth: The true kappa.
    """

    judges: str
    queries: int
    pairs: int
    covered: dict[str, int]
    runs: int
    truth: float


def large_sample_error(counts: IntArray) -> float:
    """Standard error of kappa over independent pairs (Fleiss, Cohen & Everitt 1969).

    Args:
        counts: Shape (K, K).
    """
    total = counts.sum()
    p = counts / total
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    observed, expected = np.trace(p), rows @ columns
    diagonal = np.diag(p) * ((1 - expected) - (rows + columns) * (1 - observed)) ** 2
    others = p * (columns[:, None] + rows[None, :]) ** 2
    rest = (1 - observed) ** 2 * (others.sum() - np.trace(others))
    mixed = (observed * expected - 2 * expected + observed) ** 2
    variance = (diagonal.sum() + rest - mixed) / (total * (1 - expected) ** 4)
    return math.sqrt(max(0.0, float(variance)))


def list_intervals(
    counts: IntArray, weights: FloatArray, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """The interval of each method.

    Args:
        counts: Shape (Q, K, K): pairs by query and by the two grades.
        weights: Shape (K, K): disagreements.
        rng: Of the bootstrap.
    """
    kappa = measure_kappa(counts, weights)
    half_width = NORMAL * large_sample_error(counts.sum(axis=0))
    queries = len(counts)
    drawn = rng.multinomial(queries, np.full(queries, 1 / queries), size=RESAMPLES)
    resampled = kappa_of_counts(np.tensordot(drawn, counts, axes=1), weights)
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return {
        METHODS[0]: (kappa.value - half_width, kappa.value + half_width),
        METHODS[1]: (float(low), float(high)),
        METHODS[2]: (kappa.low, kappa.high),
    }


def simulate_design(
    shares: FloatArray, judges: str, queries: int, pairs: int, *, runs: int, seed: Sequence[int]
) -> Design:
    """Draw queries and pairs, and count the intervals that hold the true kappa.

    Args:
        shares: Shape (Q, K, K): of each query the shares of the grades of its pairs.
        judges: Names of the two.
        queries: Queries drawn in each run.
        pairs: Pairs drawn of each.
        runs: How often.
        seed: Of all draws.
    """
    rng = np.random.default_rng(seed)
    size = shares.shape[-1]
    weights = make_weights(tuple(range(size)), "none")
    truth = float(kappa_of_counts(shares.sum(axis=0), weights))
    covered = dict.fromkeys(METHODS, 0)
    for _ in range(runs):
        chosen = rng.integers(len(shares), size=queries)
        flat = rng.multinomial(pairs, shares[chosen].reshape(queries, -1))
        intervals = list_intervals(flat.reshape(queries, size, size), weights, rng)
        for method, (low, high) in intervals.items():
            covered[method] += low <= truth <= high
    return Design(judges, queries, pairs, covered, runs, truth)


def simulate_all(folder: Path, runs: int) -> Iterator[Design]:
    """Each two judges, with every number of queries and pairs."""
    grades = {name: load_qrels(folder / f"{name}.qrels.gz") for name in JUDGES}
    for n, names in enumerate(combinations(JUDGES, 2)):
        counts = pair_grades(*(grades[name] for name in names)).counts
        shares = counts / counts.sum(axis=(1, 2), keepdims=True)
        for queries in QUERIES:
            for pairs in PAIRS:
                title = " and ".join(names)
                seed = (SEED, n, queries, pairs)
                yield simulate_design(shares, title, queries, pairs, runs=runs, seed=seed)


def format_table(designs: Sequence[Design]) -> str:
    """As Markdown: a sentence, and a row a design."""
    runs = designs[0].runs
    low, high = clopper_pearson(round(0.95 * runs), runs)
    least = {m: min(each.covered[m] for each in designs) / runs for m in METHODS}
    lines = [
        f"{len(designs)} designs of {runs:,} runs (`python -m benchmarks.studies.agreement_table`);"
        f" a true coverage of 95 % shows as {100 * low:.1f} % to {100 * high:.1f} %. "
        "Least coverage: " + "; ".join(f"{m} {100 * least[m]:.1f} %" for m in METHODS) + ".\n",
        f"| judges | κ | queries | pairs of each | {' | '.join(METHODS)} |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for each in designs:
        cells = (f"{100 * each.covered[m] / runs:.1f} %" for m in METHODS)
        start = f"| {each.judges} | {each.truth:.3f} | {each.queries} | {each.pairs} "
        lines.append(f"{start}| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Simulate, print the table, and renew it in docs/studies/judges.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each design")
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / "rag25-dev-judges"
    table = format_table(list(simulate_all(folder, options.runs)))
    print(table)
    if not options.dry_run:
        sentence, _, _ = table.partition("\n\n")
        link = write_csv(PAGE, MARK, read_rows(table))
        replace_between_marks(PAGE, f"{sentence}\n\n{link}\n", mark=MARK)


if __name__ == "__main__":
    main()
