"""How many queries show a difference between real systems, and whether collections agree.

Systems are the twelve methods of ``choice_rules`` at equal weights, RRF with k = 60 among them, and
the two lists alone.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.how_many_queries --write
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.studies.choice_rules.grid import DEFAULT, RRF, SETTINGS, Setting
from benchmarks.studies.choice_rules.pairs import pair_names
from benchmarks.studies.choice_rules.rules import FAMILIES
from benchmarks.studies.choice_rules.run import Stage
from benchmarks.table import replace_between_marks
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.power import SampleSize, Spread, estimate_spread

PAGE: Final = Path(__file__).parents[2] / "docs" / "studies" / "how-many-queries.md"
DIFFERENCES: Final = (0.01, 0.02, 0.05)
#: The methods at equal weights.
METHODS: Final = (DEFAULT, *(Setting(family, 5) for family in FAMILIES if family != RRF))
#: The second list alone, and the first.
ALONE: Final = (Setting("mm", 0), Setting("mm", 10))
PERMUTATIONS, TOY_PERMUTATIONS, SEED = 10_000, 200, 7


@dataclass(frozen=True, eq=False)
class SystemValues:
    """The systems on a collection.

    Attributes:
        name: Of the collection.
        values: Shape (14, Q): nDCG@10 of each method, then of the lists alone.
        groups: Shape (Q,).
    """

    name: str
    values: FloatArray
    groups: IntArray

    @property
    def spreads(self) -> list[Spread]:
        """Of the differences of each pair of systems that differ, the narrowest first."""
        pairs = (a - b for a, b in combinations(self.values, 2))
        spreads = [estimate_spread(each, self.groups) for each in pairs if each.any()]
        return sorted(spreads, key=lambda each: each.standard_error or 0.0)


def evaluate_systems(name: str) -> SystemValues:
    """The values of the systems on a collection, or on ``toy``."""
    stage = Stage.prepare(name)
    values = stage.grid.evaluate(stage.grid.gains)
    rows = [SETTINGS.index(each) for each in (*METHODS, *ALONE)]
    groups = number_by_appearance(stage.pair.runs.groups)[0]
    return SystemValues(name, values[rows], groups)


def format_sizes(collections: Sequence[SystemValues]) -> str:
    """Queries for 80 % power: of the middle pair with its interval, and of the other pairs."""
    heads = "".join(f" {each:g}: middle pair | all pairs |" for each in DIFFERENCES)
    lines = [f"| collection | queries | pairs |{heads}", f"|:--|--:|--:|{'--:|' * 6}"]
    for each in collections:
        spreads = each.spreads
        cells = [each.name, f"{each.values.shape[1]:,}", f"{len(spreads)}"]
        for difference in DIFFERENCES:
            needed = [spread.needed_queries(difference, None) for spread in spreads]
            sizes = [size for size in needed if size is not None]
            cells.append(_format_size(sizes[len(sizes) // 2]))
            counts = [size.queries for size in sizes]
            cells.append(f"{min(counts):,} to {max(counts):,}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_size(size: SampleSize) -> str:
    if size.low is None or size.high is None:
        return f"at least {size.queries:,}" if size.at_least else f"{size.queries:,}"
    return f"{size.queries:,} [{size.low:,}, {size.high:,}]"


def kendall_taus(means: FloatArray) -> FloatArray:
    """(C·(C−1)/2,): τ_a of each pair of collections, by (C, M) means of methods; ties count 0."""
    first, second = np.triu_indices(means.shape[1], 1)
    signs = np.sign(means[:, first] - means[:, second])
    a, b = np.triu_indices(len(means), 1)
    return np.asarray((signs[a] * signs[b]).mean(axis=1))


def permuted_taus(means: FloatArray, permutations: int, seed: int = SEED) -> FloatArray:
    """(P, pairs): the same where each collection's methods are dealt anew."""
    rng = np.random.default_rng(seed)
    return np.array([kendall_taus(rng.permuted(means, axis=1)) for _ in range(permutations)])


def format_agreement(collections: Sequence[SystemValues], permutations: int) -> str:
    """Of each pair of collections τ and its p, adjusted for the number of pairs."""
    means = np.array([each.values[: len(METHODS)].mean(axis=1) for each in collections])
    taus, null = kendall_taus(means), permuted_taus(means, permutations)
    names = [each.name for each in collections]
    found = dict(zip(combinations(names, 2), taus.tolist(), strict=True))
    greatest = null.max(axis=1)
    adjusted = {pair: _share(greatest, tau) for pair, tau in found.items()}
    mean, p = float(taus.mean()), _share(null.mean(axis=1), float(taus.mean()))
    lines = [f"| | {' | '.join(names[1:])} |", f"|:--|{'--:|' * (len(names) - 1)}"]
    lines += [_format_row(name, names, found, adjusted) for name in names[:-1]]
    limit = float(np.quantile(null.mean(axis=1), 0.975))
    lines += ["", f"Mean τ {mean:+.2f}; 97.5 % of nulls are below {limit:+.2f}; p = {p:.2g}."]
    return "\n".join(lines)


def _share(null: FloatArray, value: float) -> float:
    return float((1 + (null >= value - 1e-12).sum()) / (1 + len(null)))


def _format_row(
    name: str,
    names: Sequence[str],
    found: Mapping[tuple[str, str], float],
    adjusted: Mapping[tuple[str, str], float],
) -> str:
    cells = [name]
    for other in names[1:]:
        tau = found.get((name, other))
        mark = "*" if tau is not None and adjusted[name, other] <= 0.05 else ""
        cells.append("" if tau is None else f"{tau:+.2f}{mark}")
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--toy", action="store_true", help="a small made collection, a few seconds")
    mode.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    options = parser.parse_args(arguments)
    names = ["toy", "toy"] if options.toy else pair_names()
    collections = [evaluate_systems(name) for name in names]
    permutations = TOY_PERMUTATIONS if options.toy else PERMUTATIONS
    tables = {
        "sizes": format_sizes(collections),
        "agreement": format_agreement(collections, permutations),
    }
    print("\n\n".join(tables.values()))
    for mark, table in tables.items() if options.write else ():
        replace_between_marks(PAGE, f"\n{table}\n\n", mark)


if __name__ == "__main__":
    main()
