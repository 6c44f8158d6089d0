"""Whether fusing pays: made data for each verdict, and the family."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison_family import FusionVerdict, decide_fusion
from fusion_bench.stats.max_t import FamilyRow, max_t
from tests.stats.samples import normal

KEYS = tuple(f"q{i}" for i in range(60))


def near(mean: float, seed: int) -> FloatArray:
    """One system: values around a mean; systems are correlated."""
    return np.asarray(mean + 0.1 * normal(60, seed=100) + 0.03 * normal(60, seed=seed))


SOURCES = {"bm25": near(0.4, 1), "dense": near(0.5, 2)}


@pytest.mark.parametrize(
    ("fusions", "verdict", "pair"),
    [
        ({"rrf": near(0.6, 3), "sum": near(0.3, 4)}, "pays", ("rrf", "dense")),
        ({"rrf": near(0.45, 3), "sum": near(0.3, 4)}, "loses", ("rrf", "dense")),
        ({"rrf": near(0.5, 3), "sum": near(0.3, 4)}, "not shown", ("rrf", "dense")),
        ({"rrf": SOURCES["dense"]}, "not shown", ("rrf", "dense")),
    ],
)
def test_verdicts(
    fusions: dict[str, FloatArray], verdict: FusionVerdict, pair: tuple[str, str]
) -> None:
    answer = decide_fusion(fusions, SOURCES, KEYS, seed=1)
    assert (answer.verdict, answer.fusion, answer.source) == (verdict, *pair)


def test_the_family_is_fusions_times_sources() -> None:
    fusions = {"rrf": near(0.52, 3), "sum": near(0.49, 4)}
    rows = [FamilyRow(f - s, KEYS) for f in fusions.values() for s in SOURCES.values()]
    expected = max_t(rows, seed=5).rows[1]  # rrf − dense
    answer = decide_fusion(fusions, SOURCES, KEYS, seed=5)
    assert (answer.difference, answer.low, answer.high, answer.p_adjusted) == (
        expected.estimate.mean,
        expected.low,
        expected.high,
        expected.p,
    )
