"""The gate on trial on every collection: renews docs/studies/gate-self-test.md.

The built-in collection runs with its experiment. The collections of the parity tests run if
FUSION_BENCH_PARITY_DATA names their folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.table import replace_between_marks
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test import (
    compare_two_systems,
    list_members,
    measure_pass_rates,
    sample_checks,
    split_checks,
)
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import clopper_pearson
from fusion_bench.stats.values import Pair

ROOT = Path(__file__).parents[2]
EXPERIMENT = ROOT / "experiments" / "default.yaml"
PAGE = ROOT / "docs" / "studies" / "gate-self-test.md"
MEASURES = ("nDCG@10", "RR@10", "R@100", "AP@100", "P@5")
MAX_DROP, RUNS, SEED = 0.01, 400, 7
HEADER = ("collection", "check", "groups", "pass at max_drop %", "regressed without a drop %")


def build_checks(collection: str, runs: AlignedRuns) -> list[Check]:
    """RRF against a convex combination of the same runs."""
    names = list(runs.sources)
    convex = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
    systems = [
        System.model_validate({"name": "rrf", "runs": names}),
        System.model_validate({"name": "convex", "runs": names, "fusion": convex}),
    ]
    measures = [parse_measure(name) for name in MEASURES]
    before, after = evaluate_systems(systems, runs, measures)
    return [
        Check(
            *(collection, None, MAX_DROP),
            Pair.from_arrays(new, old, runs.groups, measure=measure.name),
        )
        for measure, old, new in zip(measures, before.values, after.values, strict=True)
    ]


def count_alarms(checks: Sequence[Check], runs: int) -> int:
    """Runs without a true difference in which any check is ``regressed``.

    The labels of the two systems are swapped with probability ½ in every drawn group.
    """
    rng = np.random.Generator(np.random.PCG64([SEED, 2]))
    members = {check.pair.keys: list_members(check.pair.keys) for check in checks}
    alarms = 0
    for _ in range(runs):
        samples = []
        signs: dict[str, float] = {}
        for check in sample_checks(checks, members, rng):
            for key in check.pair.keys:
                signs.setdefault(key, float(rng.choice((-1.0, 1.0))))
            flipped = check.pair.difference * np.array([signs[key] for key in check.pair.keys])
            pair = Pair.from_arrays(flipped, keys=check.pair.keys, measure=check.pair.measure)
            samples.append(replace(check, pair=pair))
        alarms += any(each.status == "regressed" for each in run_checks(samples, seed=SEED))
    return alarms


def build_rows(name: str, checks: Sequence[Check], runs: int) -> Iterator[tuple[str, ...]]:
    """A row a check; the first has the rate of alarms of all checks together."""
    tested, _ = split_checks(checks)
    if not tested:
        return
    alarms = count_alarms(tested, runs)
    for place, rate in enumerate(measure_pass_rates(tested, runs=runs, seed=SEED)):
        groups = len(set(tested[place].pair.keys))
        yield (
            *(name, rate.check.partition(" / ")[2], f"{groups:,}", _format(rate.count, runs)),
            "" if place else f"{_format(alarms, runs)} (any check)",
        )


def _format(count: int, runs: int) -> str:
    low, high = clopper_pearson(count, runs)
    return f"{100 * count / runs:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def list_collections(*, toy: bool) -> Iterator[tuple[str, list[Check]]]:
    """The checks of each collection: of the default experiment, then public or made ones."""
    inputs = GateInputs(*read_experiment(EXPERIMENT), [ROOT / "datasets"])
    yield "attack", compare_two_systems(inputs)[0]
    if toy:
        from benchmarks.collections import make_toy_collection

        yield "toy", build_checks("toy", make_toy_collection().runs)
    elif os.environ.get("FUSION_BENCH_PARITY_DATA"):
        from tests.parity.collections import COLLECTIONS, aligned

        for name in COLLECTIONS:
            yield name, build_checks(name, aligned(name))


def main(arguments: Sequence[str] | None = None) -> None:
    """Try every collection, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="few runs; write nothing")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = []
    for name, checks in list_collections(toy=options.toy):
        rows += build_rows(name, checks, 5 if options.toy else options.runs)
        print(*(" | ".join(row) for row in rows if row[0] == name), sep="\n", flush=True)
    lines = [HEADER, (":--", ":--", "--:", "--:", "--:"), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
    if not options.toy:
        replace_between_marks(PAGE, table, mark="gate self-test")


if __name__ == "__main__":
    main()
