"""Self-test of the gate on every collection: renews docs/studies/gate-self-test.md.

The built-in collection runs with its experiment. The collections of the parity tests run if
FUSION_BENCH_PARITY_DATA names their folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from fusion_bench.gate.self_test.error_rates import (
    SelfTestResult,
    compare_two_systems,
    measure_error_rates,
    run_self_test,
)

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.gate.checks import Check
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test.page import build_self_test_page, draw_power_curves
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.markdown import format_table
from fusion_bench.report.plots import render_png
from fusion_bench.util.files import write_atomic

ROOT = Path(__file__).parents[2]
EXPERIMENT = ROOT / "experiments" / "default.yaml"
PAGE = ROOT / "docs" / "studies" / "gate-self-test.md"
PICTURE = PAGE.with_suffix(".png")
MEASURES = ("nDCG@10", "RR@10", "R@100", "AP@100", "P@5")
MAX_DROP, RUNS, SEED = 0.01, 2000, 7
HEAD = """# Self-test of the gate

`fusion-bench gate --self-test` measures the gate's error rates on your data. This page shows the
rates on the built-in collection and on the public collections of the parity tests. `make self-test`
renews it in a few minutes; `FUSION_BENCH_PARITY_DATA` names the public collections.

[gate.md](../reference/gate.md#proof) explains the rates and the intervals.

![Power by true drop on the built-in collection, stated and measured](gate-self-test.png)

"""


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
    groups = np.arange(len(runs.queries))
    return [
        Check(collection, None, measure.name, MAX_DROP, old, new, groups)
        for measure, old, new in zip(measures, before.values, after.values, strict=True)
    ]


def build_section(result: SelfTestResult, title: str) -> list[str]:
    """A collection's part of the page."""
    page = build_self_test_page(result, title)
    reference, candidate = result.systems
    lines = []
    for table in page.sections[0].tables:
        lines += [f"**{table.title}**", "", *format_table(table), ""]
    return [
        f"## {title}",
        "",
        f"**{result.headline}.** Differences of {candidate} and {reference}.",
        "",
        *lines,
        *(f"- {finding.text}" for finding in page.sections[0].findings),
        *("" for finding in page.sections[0].findings[:1]),
    ]


def load_parity_checks() -> Iterator[tuple[str, list[Check]]]:
    """The checks of each collection of the parity tests, if their folder is known."""
    if os.environ.get("FUSION_BENCH_PARITY_DATA"):
        from tests.parity.collections import COLLECTIONS, aligned

        for name in COLLECTIONS:
            yield name, build_checks(name, aligned(name))


def make_toy_checks() -> Iterator[tuple[str, list[Check]]]:
    """The checks of a made collection."""
    from benchmarks.collections import make_toy_collection

    yield "toy", build_checks("toy", make_toy_collection().runs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the self-test on every collection and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="few runs; write nothing")
    options = parser.parse_args(arguments)
    runs = 20 if options.toy else RUNS
    inputs = GateInputs(*read_experiment(EXPERIMENT), [ROOT / "datasets"])
    if options.toy:
        checks, names = compare_two_systems(inputs)
        result = measure_error_rates(checks, systems=names, runs=runs)
    else:
        result = run_self_test(inputs, runs=runs)
    picture = render_png(draw_power_curves(result))
    lines, results = build_section(result, "attack"), [result]
    for name, checks in make_toy_checks() if options.toy else load_parity_checks():
        result = measure_error_rates(checks, systems=("rrf", "convex"), runs=runs, seed=SEED)
        results.append(result)
        lines += build_section(result, name)
        print(name, result.headline)
    total = sum(len(result.error_rates) for result in results)
    wrong = sum(not rate.agrees for result in results for rate in result.error_rates)
    summary = f"**{total} error rates on {len(results)} collections, {wrong} disagree.**\n\n"
    if not options.toy:
        write_atomic(PICTURE, picture)
        write_atomic(PAGE, (HEAD + summary + "\n".join(lines)).rstrip().encode() + b"\n")
    print(summary.strip())


if __name__ == "__main__":
    main()
