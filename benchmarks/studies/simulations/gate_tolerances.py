"""What ``max_drop: auto`` lets pass and finds on real data: docs/studies/gate-tolerances.md.

python -m benchmarks.studies.simulations.gate_tolerances [--draws N]

Two lists of a collection are fused by RRF (k = 60). Its queries (of attack: its groups) are drawn
with replacement; the gate computes the tolerance from the drawn ones, with or without three other
fusions in the experiment. A change is another real setting; signs of its differences are flipped
with probability ½, by group, so that nothing is lost in truth. A planted drop lowers each query by
between 0 and four tolerances besides, uniformly. ``run_checks`` decides each change alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies.choice_rules.pairs import load_pair
from benchmarks.table import format_rows, replace_between_marks, write_csv
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.tolerances import find_spread, standard_error
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import clopper_pearson, t_quantile
from fusion_bench.stats.values import Pair

PAGE = Path(__file__).parents[3] / "docs" / "studies" / "gate-tolerances.md"
COLLECTIONS, SIZES, MEASURE = ("jqara", "nfcorpus", "attack"), (100, 200, 500), "nDCG@10"
CONVEX = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
#: Changes that are tried: k 10 to 100, one list weighted 1.2 to 2, convex in place of RRF.
CHANGES: dict[str, dict[str, Any]] = {
    **{f"k={k}": {"k": k} for k in (10, 20, 40, 100)},
    **{f"{side} ×{w}": {"weights": {side: w}} for side in "ab" for w in (1.2, 1.5, 2.0)},
    "convex": CONVEX,
}
#: What the experiment holds besides, or what stands in for it.
OTHERS = {
    "none": ("k=10", "a ×2.0", "b ×2.0", "convex"),
    "three": ("k=20", "convex", "convex z"),
}


@dataclass(frozen=True)
class Cell:
    """One collection, size and experiment.

    Attributes:
        design: Its name.
        passed: By change, how often it passed or was unchanged.
        found: By change, how often the planted drop was ``regressed``.
        draws: Samples.
        drops: The tolerances.
    """

    design: str
    passed: dict[str, int]
    found: dict[str, int]
    draws: int
    drops: FloatArray

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        parts = []
        for counts in (self.passed, self.found):
            worst = min(counts, key=counts.__getitem__)
            parts += [
                format_share(sum(counts.values()), self.draws * len(counts)),
                f"{100 * counts[worst] / self.draws:.0f} ({worst})",
            ]
        least, middle, most = np.quantile(self.drops, (0.05, 0.5, 0.95))
        return (self.design, f"{middle:.3f} [{least:.3f}, {most:.3f}]", *parts)


def format_share(hits: float, total: float) -> str:
    """A share in percent with its 95 % Clopper–Pearson interval."""
    if not total:
        return "–"
    low, high = clopper_pearson(int(hits), int(total))
    return f"{100 * hits / total:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def read_values(collection: str) -> tuple[dict[str, FloatArray], list[np.ndarray]]:
    """By setting the values of its queries, shape (Q,), and the queries of each group."""
    runs = load_pair(collection).runs
    names = dict(zip("ab", runs.sources, strict=True))

    def build(name: str, fusion: dict[str, Any]) -> System:
        weights = {names[side]: weight for side, weight in fusion.get("weights", {}).items()}
        method = {"method": "rrf", **fusion, **({"weights": weights} if weights else {})}
        return System.model_validate({"name": name, "runs": list(runs.sources), "fusion": method})

    settings = {"guarded": {}, **CHANGES, "convex z": {**CONVEX, "normalize": "z_score"}}
    systems = [build(name, fusion) for name, fusion in settings.items()]
    scores = evaluate_systems(systems, runs, [parse_measure(MEASURE)])
    codes = number_by_appearance(runs.groups)[0]
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
    return {each.system: each.values[0] for each in scores}, members


def simulate(collection: str, size: int, draws: int) -> Iterator[Cell]:
    """The cells of a collection at a size."""
    values, members = read_values(collection)
    guarded = values["guarded"]
    units = max(20, round(size * len(members) / len(guarded)))
    random = np.random.default_rng(43)
    passed = {kind: dict.fromkeys(CHANGES, 0) for kind in OTHERS}
    found = {kind: dict.fromkeys(CHANGES, 0) for kind in OTHERS}
    drops: dict[str, list[float]] = {kind: [] for kind in OTHERS}
    for _ in range(draws):
        rows = [members[group] for group in random.integers(0, len(members), units)]
        order = np.concatenate(rows)
        keys = tuple(f"g{place}" for place, row in enumerate(rows) for _ in row)

        def check(candidate: FloatArray, baseline: FloatArray | None = None, m: float = 0) -> Check:
            pair = Pair.from_arrays(candidate, baseline, keys, measure=MEASURE)  # noqa: B023
            return Check(collection, None, m, pair)

        own = check(np.zeros(len(order)))
        for kind, names in OTHERS.items():
            others = {
                name: check(guarded[order], values[name][order])
                for name in {*names, *OTHERS["none"]}
            }
            known = {name: others[name] for name in names}
            spread = find_spread(own, known) if kind != "none" else None
            spread = spread or find_spread(own, others if kind != "none" else known, is_enough=True)
            m = 0.005 if spread is None else spread.drop
            drops[kind].append(m)
            checks = []
            for name in CHANGES:
                signs = np.repeat(random.choice([-1.0, 1.0], units), [len(row) for row in rows])
                change = signs * (values[name] - guarded)[order]
                checks.append(check(change, m=m))
                loss = random.uniform(0, 4 * m, len(change))
                planted = check(np.maximum(change - loss, -1.0), m=m)
                [result] = run_checks([planted])
                found[kind][name] += result.status == "regressed"
            # Whether a check passes does not depend on the others.
            for name, result in zip(CHANGES, run_checks(checks), strict=True):
                passed[kind][name] += result.status in {"pass", "unchanged"}
    for kind in OTHERS:
        design = f"{collection}, {size} queries, {kind} other fusions"
        yield Cell(design, passed[kind], found[kind], draws, np.array(drops[kind]))


def find_lowest(collection: str, size: int, draws: int) -> Iterator[str]:
    """The lowest share of passes of a change, with RRF alone standing in, and with convex too.

    The lower end is Student's, which takes no draws of the gate.
    """
    values, members = read_values(collection)
    guarded, random = values["guarded"], np.random.default_rng(1)
    units = max(20, round(size * len(members) / len(guarded)))
    quantile = t_quantile(units - 1, 0.95)
    kinds = {"RRF": OTHERS["none"][:-1], "RRF and convex": OTHERS["none"]}
    passed = {kind: dict.fromkeys(CHANGES, 0) for kind in kinds}
    for _ in range(draws):
        rows = [members[group] for group in random.integers(0, len(members), units)]
        order, sizes = np.concatenate(rows), [len(row) for row in rows]
        keys = tuple(f"g{place}" for place, row in enumerate(rows) for _ in row)
        changes = {"own": np.zeros(len(order))}
        changes |= {name: (values[name] - guarded)[order] for name in CHANGES}
        pairs = {
            name: Check(collection, None, 0.0, Pair.from_arrays(each, keys=keys, measure=MEASURE))
            for name, each in changes.items()
        }
        own = pairs.pop("own")
        for kind, names in kinds.items():
            spread = find_spread(own, {name: pairs[name] for name in names}, is_enough=True)
            m = 0.005 if spread is None else spread.drop
            for name, check in pairs.items():
                signs = np.repeat(random.choice([-1.0, 1.0], units), sizes)
                pair = Pair.from_arrays(signs * changes[name], keys=keys, measure=MEASURE)
                change = replace(check, pair=pair)
                lower = pair.difference.mean() - quantile * standard_error(change)
                passed[kind][name] += lower > -m
    for kind, counts in passed.items():
        worst = min(counts, key=counts.__getitem__)
        share = 100 * counts[worst] / draws
        yield f"{collection}, {size} queries, {kind}: {share:.1f} % ({worst})"


HEADER = (
    *("collection", "max_drop: auto", "no loss: pass %", "least"),
    *("2 × max_drop lost: regressed %", "least"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all cells, and renew the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100, help="samples of each cell")
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    parser.add_argument("--lowest", action="store_true", help="print what find_lowest finds")
    options = parser.parse_args(arguments)
    if options.lowest:
        for collection, size in product(COLLECTIONS, SIZES):
            print(*find_lowest(collection, size, options.draws), sep="\n", flush=True)
        return
    cells: list[Cell] = []
    for collection, size in product(COLLECTIONS, SIZES):
        cells += simulate(collection, size, options.draws)
        print(*(" | ".join(cell.cells) for cell in cells[-len(OTHERS) :]), sep="\n", flush=True)
    if not options.dry_run:
        rows = [HEADER, *(cell.cells for cell in cells)]
        shown = [[*row[:3], row[4]] for row in rows]  # the CSV has the least shares
        text = f"{format_rows(shown)}\n\n{write_csv(PAGE, 'table', rows)}\n"
        replace_between_marks(PAGE, text, mark="gate tolerances")


if __name__ == "__main__":
    main()
