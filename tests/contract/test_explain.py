"""The trace of every document adds up to its score, whatever the method and the blend."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from fusion_bench.evaluation.details.top_documents import Contributions, list_contributions
from fusion_bench.evaluation.explanation import (
    ScoreTrace,
    explain_order,
    explain_ranking,
    format_apart,
)
from fusion_bench.experiment.system import System
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.contract.cases import (
    DATASETS,
    QUERIES,
    SOURCES,
    aligned,
    blend_examples,
    fusion_examples,
    ready_fusion,
)


def reason(above: ScoreTrace, below: ScoreTrace) -> str:
    """What the line must say, from the scores alone."""
    if above.tier != below.tier:
        return f"{below.document} is {below.tier}"
    if f"{above.score:.11e}" == f"{below.score:.11e}":
        return "equal scores"
    return f"{' > '.join(format_apart(above.score, below.score))}: mostly "


def summands(parts: Contributions, row: int) -> dict[str, float]:
    values = zip(parts.labels, parts.values[:, row].tolist(), strict=True)
    return {label: value for label, value in values if not np.isnan(value)}


def hold(config: dict[str, Any]) -> int:
    """Compare every trace with the ranking; how many documents that were."""
    fusion = ready_fusion(config["fusion"])
    system = System.model_validate({"name": "s", "runs": SOURCES, **config, "fusion": fusion})
    seen = 0
    for dataset, query in product(DATASETS, QUERIES):
        runs = aligned(dataset)
        ranking = rank_candidates(system, runs)
        every_row = np.arange(len(ranking.runs.documents))
        parts = list_contributions(system, ranking.runs, every_row)
        found = explain_ranking(system, runs, query)
        view = ranking.runs
        q = view.queries.index(query)
        rows = range(int(view.offsets[q]), int(view.offsets[q + 1]))
        assert len(found.traces) == len(rows)
        places = [trace.rank for trace in found.traces if trace.rank]
        assert places == list(range(1, len(places) + 1))
        for row in rows:
            trace = found.find_trace(view.vocabulary[view.documents[row]])
            assert trace is not None
            assert trace.score == ranking.scores[row]
            assert (trace.rank or 0) == ranking.positions[row]
            assert summands(parts, row) == trace.contributions
            assert parts.scores[row] == trace.score
            assert trace.recomputed_score == trace.score, (
                "the terms that score_terms gives do not add up to the score that fuse gives"
            )
            if trace.ceiling is None:
                together = sum(trace.contributions.values())
                np.testing.assert_allclose(together, trace.score, rtol=1e-12, atol=1e-12)
            seen += 1
        for above, below in zip(found.traces, found.traces[1:], strict=False):
            if below.rank:
                assert reason(above, below) in explain_order(above, below, found.ties)
    return seen


@pytest.mark.parametrize("config", fusion_examples(), ids=str)
def test_every_fusion(config: dict[str, Any]) -> None:
    assert hold({"fusion": config}) > 0


@pytest.mark.parametrize("blend", blend_examples(), ids=str)
@pytest.mark.parametrize(
    "fusion",
    [
        {"method": "rrf", "normalize": "three_lists", "weights": {"dense": 4.0}},
        {"method": "rrf_v2"},
        {"method": "weighted_score", "normalize": "min_max", "missing": "zero"},
    ],
    ids=str,
)
def test_every_blend(fusion: dict[str, Any], blend: dict[str, Any]) -> None:
    assert hold({"fusion": fusion, "blend": blend, "top_k": 4}) > 0
