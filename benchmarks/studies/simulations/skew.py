"""Skewed differences: false answers without and with the bound, and answers that it costs."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from benchmarks.studies.simulations.max_t import decide
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Answer, check_skew

TITLE = "Skew against the answer"
DESCRIPTION = """
Systems against a baseline; each gains a little on most queries and loses much on few. Differences
have correlation .5 before they are bent. Long tail: .1 · (1.65 − exp z), cut at −1. Rare: a loss of
.8 on 6 % of the queries, the rest gains .051. Both means are 0. Without: max-T alone. With:
`better` where the skewness is below −1 also needs the betting bound, as `worse` does above +1.
Gain: the long tail plus .1. No share is promised: where no large loss is in the sample, neither
skewness nor max-T can see one.
"""
FAMILIES = {"long tail": 30, "rare": 30, "gain": 5}
SIZES = (25, 50, 90)
#: What the cut at −1 adds to the mean: .1 · E[(exp z − m)+], m = exp(.5) + 10.
MOST = math.exp(0.5) + 10
CUT = 0.1 * (
    math.exp(0.5) * NormalDist().cdf(1 - math.log(MOST)) - MOST * NormalDist().cdf(-math.log(MOST))
)


def run(*, draws: int) -> list[Promise]:
    """Every kind of differences at every number of queries."""
    return [
        promise
        for kind in FAMILIES
        for queries in SIZES
        for promise in _run_design(kind, queries, draws)
    ]


def _run_design(kind: str, queries: int, draws: int) -> list[Promise]:
    rng = np.random.default_rng([queries, len(kind)])
    keys, counts = tuple(f"q{i}" for i in range(queries)), np.zeros(2, dtype=np.int64)
    for draw in range(draws):
        values = draw_differences(rng, kind, queries)
        shown = decide(values, keys, seed=draw)[0][0] > 0
        kept = [is_kept(row) for row in values[shown]]
        counts += (shown[0], shown[0] and kept[0]) if kind == "gain" else (any(shown), any(kept))
    event = "the first system's gain shown" if kind == "gain" else "any false answer"
    design = f"{kind}, {FAMILIES[kind]} systems, {queries} queries"
    return [
        Promise(design, f"{event}, {rule}", count, draws)
        for rule, count in zip(("without", "with"), counts.tolist(), strict=True)
    ]


def draw_differences(rng: np.random.Generator, kind: str, queries: int) -> FloatArray:
    """(systems, queries)."""
    shared, alone = rng.standard_normal(queries), rng.standard_normal((FAMILIES[kind], queries))
    z = np.sqrt(0.5) * (shared + alone)
    if kind == "rare":
        noise = 0.01 * rng.standard_normal(z.shape)
        return np.asarray(np.where(z > 1.5548, -0.8, 0.8 * 0.06 / 0.94) + noise)
    tail = np.maximum(0.1 * (np.exp(0.5) - np.exp(z)), -1.0) - CUT
    return np.asarray(tail + 0.1 * (kind == "gain"))


def is_kept(differences: FloatArray) -> bool:
    """Whether an answer that max-T shows stays."""
    answer: Answer = "better" if differences.mean() > 0 else "worse"
    return check_skew(answer, differences, np.arange(len(differences)))[0] == answer
