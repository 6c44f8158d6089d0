"""Selection rules with few tuning queries: many small samples, evaluated on the other queries.

Only queries of the tuning parts take part (of attack's own split, of the first salt's elsewhere).
So no rule is selected on the queries that ``benchmarks.studies.tuning`` evaluates on.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.choices
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.collections import load_collection
from benchmarks.studies.study import parse_options, write_table
from benchmarks.studies.tuning import make_objective, split_queries
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import run_search
from fusion_bench.tune.trial_selection import (
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
TOY_SIZES: Mapping[str, tuple[int, ...]] = {"toy": (10,)}
#: Draws for the expected greatest gain of trials that differ by chance alone.
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
    """The objective on the tuning queries of a collection."""
    collection = load_collection(name)
    keep = split_queries(collection)[0].tune
    runs, lists = (part.subset(keep) for part in (collection.runs, collection.all_lists))
    return make_objective(replace(collection, runs=runs, all_lists=lists))


def draw_groups(groups: IntArray, size: int, seed: int) -> BoolArray:
    """(Q,): whole groups at random until there are so many queries."""
    keep = np.zeros(len(groups), dtype=bool)
    for group in np.random.default_rng(seed).permutation(int(groups.max()) + 1):
        if keep.sum() >= size:
            break
        keep |= groups == group
    return keep


def expected_luck(gaps: FloatArray, errors: FloatArray, groups: IntArray) -> float:
    """Expected greatest gain of trials that differ by chance alone, in standard errors.

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


def measure_gains(problem: TuningObjective, size: int, seed: int, trials: int) -> FloatArray:
    """Gain on the other queries of each rule's choice on a sample, in the order of ``RULES``."""
    groups = number_by_appearance(problem.runs.groups)[0]
    keep = draw_groups(groups, size, seed)
    study = run_search(
        problem, keep, TuneSettings(system="default", trials=trials).search_settings()
    )
    params = [trial.params for trial in study.trials if not trial.is_failed]
    part, part_groups = problem.subset_queries(keep), groups[keep]
    values = evaluate_in_batches(part, params)
    gaps = values - values[0]
    means = gaps.mean(axis=1)
    estimates = [estimate_mean(row, part_groups) for row in gaps]
    errors = np.array([estimate.standard_error for estimate in estimates])
    lows = np.array([estimate.low for estimate in estimates], dtype=np.float64)
    points = part.unit_points(params)
    chosen = [
        int(np.argmax(means)),
        one_standard_error(values, points, part.unit_points([part.default_params])[0], part_groups),
        int(np.argmax(means - errors)),
        int(np.argmax(means - expected_luck(gaps, errors, part_groups) * errors)),
        int(np.argmax(np.nan_to_num(lows, nan=-np.inf))),
        int(np.argmax(shrunken_gains(values, values[0], part_groups))),
    ]
    tried = [params[0], *(params[t] for t in chosen)]
    means = problem.evaluate_params(tried)[:, ~keep].mean(axis=1)
    return np.asarray(means[1:] - means[0])


def format_row(name: str, size: int, samples: int, trials: int) -> str:
    """One size on one collection."""
    problem = tuning_part(name)
    gains = np.array(
        [measure_gains(problem, size, 1000 * size + n, trials) for n in range(samples)]
    )
    cells = " | ".join(f"{mean:+.4f}" for mean in gains.mean(axis=0))
    return f"| {name}, {size} of {len(problem.runs.queries):,} | {samples} | {cells} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    full, toy = {"samples": 10, "trials": 200}, {"samples": 2, "trials": 6}
    options = parse_options(arguments, __doc__, full, toy)
    lines = [
        f"| tuned on | samples | {' | '.join(RULES)} |",
        f"|:--|--:|{'--:|' * len(RULES)}",
    ]
    for name, sizes in (TOY_SIZES if options.toy else SIZES).items():
        for size in sizes if options.only in name else ():
            lines.append(format_row(name, size, options.samples, options.trials))
            print(lines[-1], flush=True)
    if options.write:
        write_table("choices", "\n".join(lines))


if __name__ == "__main__":
    main()
