"""Renews docs/gate-self-test.md: the gate on trial on every collection there is.

The built-in collection is tried as its experiment says. The collections of the parity tests are
tried where FUSION_BENCH_PARITY_DATA names them; without it they are left out.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.gate.check_statistics import Check
from fusion_bench.gate.self_test.error_rates import SelfTestResult, measure_error_rates
from fusion_bench.gate.self_test.page import HEADINGS, headline, page, picture, rows
from fusion_bench.gate.self_test.run import run_self_test
from fusion_bench.measures import parse_measure
from fusion_bench.util.atomic_files import write_atomic

ROOT = Path(__file__).parent.parent
EXPERIMENT = ROOT / "experiments" / "default.yaml"
PAGE = ROOT / "docs" / "gate-self-test.md"
PICTURE = ROOT / "docs" / "gate-self-test.png"
MEASURES = ("nDCG@10", "RR@10", "R@100", "AP@100", "P@5")
MAX_DROP, RUNS, SEED = 0.01, 2000, 7
HEAD = """# The gate on trial

`fusion-bench gate --self-test` measures on your own data how often the gate is wrong when the
truth is known. This page holds what it found on the built-in collection and on the public ones of
the parity tests. `make self-test` renews it (a few minutes; `FUSION_BENCH_PARITY_DATA` names the
public collections).

What is tried, what an interval covers and what is promised stands in [gate.md](gate.md#proof).

![Power by true drop on the built-in collection, printed and measured](gate-self-test.png)

"""


def pairs(collection: str) -> list[Check]:
    """RRF against a convex combination of the same two runs."""
    from tests.parity.collections import PAIRS, aligned

    runs, names = aligned(collection), list(PAIRS[collection])
    convex = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
    systems = [
        System.model_validate({"name": "rrf", "runs": names}),
        System.model_validate({"name": "convex", "runs": names, "fusion": convex}),
    ]
    measures = [parse_measure(name) for name in MEASURES]
    before, after = evaluate_systems(systems, runs, measures)
    groups = np.arange(len(runs.queries))
    return [
        Check(collection, None, measure.name, MAX_DROP, old, new, groups)
        for measure, old, new in zip(measures, before.values, after.values, strict=True)
    ]


def section(found: SelfTestResult, title: str, systems: tuple[str, str]) -> str:
    """A collection's part of the page."""
    text = page(found, title, systems)
    table = text[text.index(f"| {HEADINGS[0]}") :]
    differences = f"Differences of {systems[1]} to {systems[0]}."
    return f"## {title}\n\n**{headline(found)}.** {differences}\n\n{table}\n"


def main() -> None:
    """Try everything and write the page."""
    experiment, source = read_experiment(EXPERIMENT)
    found, systems, checks = run_self_test(
        experiment, source, folders=[ROOT / "datasets"], runs=RUNS
    )
    drops = {f"{check.collection} / {check.measure}": check.max_drop for check in checks}
    write_atomic(PICTURE, picture(found, drops))
    parts = [section(found, "attack", systems)]
    tried = [found]
    if os.environ.get("FUSION_BENCH_PARITY_DATA"):
        from tests.parity.collections import COLLECTIONS

        for name in COLLECTIONS:
            tried.append(measure_error_rates(pairs(name), runs=RUNS, seed=SEED))
            parts.append(section(tried[-1], name, ("rrf", "convex")))
            print(name, headline(tried[-1]))
    total = sum(len(rows(one)) for one in tried)
    broken = sum(not finding.agrees for one in tried for finding in one.error_rates)
    summary = f"**{total} promises on {len(tried)} collections, {broken} of them broken.**\n\n"
    write_atomic(PAGE, (HEAD + summary + "\n".join(parts)).rstrip().encode() + b"\n")
    print(summary.strip())


if __name__ == "__main__":
    main()
