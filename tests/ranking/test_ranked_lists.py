"""Whole lists of the batch engine: positions and groups of ties as the plain path finds them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.ranking.batch_engine import Unsupported
from fusion_bench.ranking.system_ranking import rank_candidates, rank_system, system_spec
from tests.examples import examples
from tests.ranking.test_blended_systems import reranked, systems


def assert_same_lists(system: System, runs: AlignedRuns) -> bool:
    """Whether the engine could rank the system, whose lists then equal the plain ones."""
    try:
        expected = rank_candidates(system, runs)
    except (AlignmentError, ConfigError):
        expected = None
    lists = rank_system(system_spec(system), system.active_runs(runs))
    if isinstance(lists, Unsupported):
        return False
    assert expected is not None
    np.testing.assert_array_equal(lists.positions, expected.ranks_before_cut)
    np.testing.assert_array_equal(lists.tie_starts, expected.tie_starts)
    return True


def test_any_system_on_any_lists() -> None:
    supported = []

    @settings(max_examples=examples(120))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        runs = data.draw(reranked())
        supported.append(assert_same_lists(data.draw(systems(runs)), runs))

    same()
    assert np.mean(supported) > 0.2


@pytest.mark.parametrize("ties", ["trec", "first_seen"])
@pytest.mark.parametrize(
    "blend",
    [
        {},
        {"method": "linear", "reranker": "r", "beta": 0.5, "depth": 30, "missing": "below"},
        {"method": "replace", "reranker": "r", "depth": 30, "missing": "below", "tail": "drop"},
        {"method": "replace", "reranker": "r", "depth": 30, "missing": "below", "min_score": 0.5},
        {"method": "replace", "reranker": "r", "depth": 30, "missing": "zero"},
    ],
    ids=str,
)
def test_long_lists_full_of_ties(ties: Ties, blend: dict[str, Any]) -> None:
    """600 documents, every second of them in both lists; few distinct scores."""
    random = np.random.default_rng(3)
    sources = [
        Run.from_dict(
            name,
            {
                q: {f"d{d:03}": random.integers(0, 9) / 8 for d in range(first, 600, 2)}
                for q in "pq"
            },
        )
        for name, first in (("a", 0), ("b", 1), ("c", 0))
    ]
    scores = {f"d{d:03}": random.integers(0, 5) / 4 for d in range(0, 600, 3)}
    reranker = Run.from_dict("r", dict.fromkeys("pq", scores))
    qrels = Qrels.from_dict({q: {f"d{d:03}": 1 for d in range(0, 600, 7)} for q in "pq"})
    runs = align(qrels, sources, rerankers=[reranker], spaces={"r": "unit"}, ties=ties)
    for fusion in ("rrf", {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}):
        system = System.model_validate(
            {"name": "s", "runs": ["a", "b", "c"], "fusion": fusion}
            | ({"blend": blend} if blend else {})
        )
        assert assert_same_lists(system, runs)
