"""How a rule of choice fares with few tuning queries: many small samples, judged on all the rest.

Only queries of the tuning parts take part (of attack's own split, of the first salt's elsewhere),
so that a rule can be decided on here without a look at what ``benchmarks.tuning`` judges by.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.choices
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchmarks.collections import COLLECTIONS
from benchmarks.page import put
from benchmarks.tuning import asked, splits
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.search.search import run_search
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.splits import BoolArray
from fusion_bench.tune.validation.trial_selection import (
    evaluate_in_batches,
    one_standard_error,
    shrunken_gains,
)

#: Collection → how many tuning queries are drawn.
SIZES: Mapping[str, tuple[int, ...]] = {
    "jqara": (20, 80, 300),
    "nfcorpus": (20, 80),
    "attack": (20, 40, 300),
}
#: Draws that tell what the luckiest of some trials gains by luck.
DRAWS = 500
RULES = (
    "best",
    "one standard error",
    "mean − 1 error",
    "mean − luck of the luckiest",
    "lower end",
    "shrinkage",
)


def tuning_part(name: str) -> TuningObjective:
    """The queries that may be looked at."""
    collection = COLLECTIONS[name]()
    kept = splits(collection)[0].tune
    runs, lists = (part.subset(kept) for part in (collection.runs, collection.all_lists))
    return asked(replace(collection, runs=runs, all_lists=lists))


def drawn(groups: IntArray, size: int, seed: int) -> BoolArray:
    """(Q,): whole groups at random until there are so many queries."""
    keep = np.zeros(len(groups), dtype=bool)
    for group in np.random.default_rng(seed).permutation(int(groups.max()) + 1):
        if keep.sum() >= size:
            break
        keep |= groups == group
    return keep


def luck(gaps: FloatArray, errors: FloatArray, groups: IntArray) -> float:
    """What the luckiest trial is expected to gain by luck alone, in standard errors.

    Args:
        gaps: Shape (T, Q): trial − default.
        errors: Shape (T,): standard errors of their means.
        groups: Shape (Q,).
    """
    _, codes = np.unique(groups, return_inverse=True)
    sums = np.zeros((int(codes.max()) + 1, len(gaps)))
    np.add.at(sums, codes, (gaps - gaps.mean(axis=1, keepdims=True)).T)
    spread = errors > 0
    count = len(sums)
    scaled = np.sqrt(count / (count - 1)) * sums[:, spread] / (errors[spread] * gaps.shape[1])
    signs = np.random.default_rng(0).standard_normal((DRAWS, count))
    return float((signs @ scaled).max(axis=1).mean())


def gains(problem: TuningObjective, size: int, seed: int, trials: int) -> FloatArray:
    """What each rule's choice on a sample gains on the other queries, in the order of ``RULES``."""
    groups = number_by_appearance(problem.runs.groups)[0]
    keep = drawn(groups, size, seed)
    study = run_search(
        problem, keep, TuneSettings(system="default", trials=trials).search_settings()
    )
    params = [trial.params for trial in study.trials if not trial.is_failed]
    part, own = problem.subset_queries(keep), groups[keep]
    values = evaluate_in_batches(part, params)
    gaps = values - values[0]
    means = gaps.mean(axis=1)
    errors = np.array([estimate_mean(row, own).standard_error for row in gaps])
    points = part.unit_points(params)
    taken = [
        int(np.argmax(means)),
        one_standard_error(values, points, part.unit_points([part.default_params])[0], own),
        int(np.argmax(means - errors)),
        int(np.argmax(means - luck(gaps, errors, own) * errors)),
        int(np.argmax(np.nan_to_num([estimate_mean(row, own).low for row in gaps], nan=-np.inf))),
        int(np.argmax(shrunken_gains(values, values[0], own))),
    ]
    found = problem.evaluate_params([params[0], *(params[t] for t in taken)])[:, ~keep].mean(axis=1)
    return np.asarray(found[1:] - found[0])


def row(name: str, size: int, samples: int, trials: int) -> str:
    """One size on one collection."""
    problem = tuning_part(name)
    found = np.array([gains(problem, size, 1000 * size + n, trials) for n in range(samples)])
    cells = " | ".join(f"{mean:+.4f}" for mean in found.mean(axis=0))
    return f"| {name}, {size} of {len(problem.runs.queries):,} | {samples} | {cells} |"


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--only", default="", help="only this collection")
    parser.add_argument("--write", action="store_true", help="renew docs/tuning.md")
    given = parser.parse_args()
    lines = [
        f"| tuned on | samples | {' | '.join(RULES)} |",
        f"|:--|--:|{'--:|' * len(RULES)}",
    ]
    for name, sizes in SIZES.items():
        for size in sizes if given.only in name else ():
            lines.append(row(name, size, given.samples, given.trials))
            print(lines[-1], flush=True)
    if given.write:
        put("choices", "\n".join(lines))


if __name__ == "__main__":
    main()
