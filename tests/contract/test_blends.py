"""What every blend promises, whatever its formula."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.ordering import score_keys
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.method_table import list_methods
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import blends
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.contract.cases import (
    DATASETS,
    ORDERS,
    QUERIES,
    SOURCES,
    aligned,
    blend_examples,
    equal,
    own_blends,
    per_query,
    ranked,
    snapshot,
)

EVERY = pytest.mark.parametrize("config", [*blend_examples(), *own_blends()], ids=str)
REGISTERED = pytest.mark.parametrize("config", blend_examples(), ids=str)


@EVERY
def test_round_trips_through_json(config: dict[str, Any]) -> None:
    blend = blends.build(config)
    assert equal(type(blend).model_validate(blend.model_dump(mode="json")), blend)
    assert equal(blends.build(blend.model_dump(mode="json")), blend), (
        "a report writes the blend's fields: building it from them must give the same blend"
    )


@EVERY
def test_refuses_unknown_keys(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="unknown key 'colour'"):
        blends.build({**config, "colour": 1})


@REGISTERED
def test_says_what_it_is(config: dict[str, Any]) -> None:
    blend = blends.build(config)
    assert blend.method == config["method"]
    [entry] = [e for e in list_methods()["blend"] if e["method"] == blend.method]
    assert entry["formula"], "say what it computes: in the docstring, or in the class's 'formula'"
    assert entry["source"], "name where the formula comes from in the class's 'source'"
    assert blend.reranker_name == config.get("reranker"), (
        "reranker_name must be the rerank list that the blend reads; None where it reads none"
    )


@EVERY
def test_order_of_sources_changes_nothing(config: dict[str, Any]) -> None:
    for dataset, order in product(DATASETS, ORDERS[1::2]):
        one, other = (
            per_query(ranked(dataset, {"method": "rrf_v2"}, config, order=o))
            for o in (SOURCES, tuple(order))
        )
        assert one == other, f"order {order} of the sources changes a score or a position"


@EVERY
def test_no_query_depends_on_another(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        together = per_query(ranked(dataset, {"method": "rrf"}, config))
        for query in QUERIES:
            alone = per_query(ranked(dataset, {"method": "rrf"}, config, queries=(query,)))
            assert alone[query] == together[query], "another query changes a score or a position"


@EVERY
def test_inputs_stay_and_what_comes_out_is_read_only(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = aligned(dataset)
        before = snapshot(runs)
        system = System.model_validate({"name": "s", "runs": SOURCES, "blend": config})
        ranking = rank_candidates(system, runs)
        again = rank_candidates(system, runs)
        assert snapshot(runs) == before, "a blend must not write to the arrays it is given"
        np.testing.assert_array_equal(ranking.positions, again.positions)
        assert not ranking.scores.flags.writeable
        placed = ranking.tiers >= 0
        assert np.isfinite(ranking.scores[placed]).all(), "a document in the list has no score"
        assert (ranking.positions[placed] > 0).all(), "a document in the list has no position"
        assert (ranking.positions[~placed] == 0).all(), "a document that is cut has a position"


@EVERY
def test_documents_of_equal_scores_keep_their_fused_order(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        ranking = ranked(dataset, {"method": "rrf"}, config)
        rows = ranking.list_rows()
        places = list(
            zip(
                ranking.runs.query_index[rows].tolist(),
                ranking.tiers[rows].tolist(),
                score_keys(ranking.sort_scores[rows]).tolist(),
                ranking.fused.positions[rows].tolist(),
                strict=True,
            )
        )
        for above, below in pairwise(places):
            assert above[:3] != below[:3] or above[3] < below[3]
