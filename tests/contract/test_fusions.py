"""What every fusion method promises, whatever its formula."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.ordering import positions
from fusion_bench.errors import ConfigError
from fusion_bench.fuse import fusions
from tests.contract.cases import (
    DATASETS,
    ORDERS,
    QUERIES,
    aligned,
    equal,
    fusion_examples,
    per_query,
    ranked,
    snapshot,
    with_weights,
)

EVERY = pytest.mark.parametrize("config", fusion_examples(), ids=str)


@EVERY
def test_round_trips_through_json(config: dict[str, Any]) -> None:
    fusion = fusions.build(config)
    assert equal(type(fusion).model_validate(fusion.model_dump(mode="json")), fusion)
    assert equal(type(fusion).model_validate_json(fusion.model_dump_json()), fusion)
    assert equal(fusions.build(fusion.model_dump(mode="json")), fusion)


@EVERY
def test_refuses_unknown_keys(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'colour' \(known: .*method"):
        fusions.build({**config, "colour": 1})


@EVERY
def test_says_what_it_is(config: dict[str, Any]) -> None:
    fusion = fusions.build(config)
    assert fusion.method == config["method"]
    assert fusion.formula
    assert fusion.source
    assert fusion.method in (type(fusion).__doc__ or "")


@EVERY
def test_order_of_sources_changes_nothing(config: dict[str, Any]) -> None:
    for dataset, order in product(DATASETS, ORDERS[1::2]):
        assert per_query(ranked(dataset, config)) == per_query(
            ranked(dataset, config, order=tuple(order))
        )


@EVERY
def test_no_query_depends_on_another(config: dict[str, Any]) -> None:
    for dataset, query in product(DATASETS, QUERIES):
        together, alone = (
            per_query(ranked(dataset, config, queries=queries))[query]
            for queries in (QUERIES, (query,))
        )
        assert alone == together


@EVERY
def test_inputs_stay_and_what_comes_out_is_read_only(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = aligned(dataset)
        before = snapshot(runs)
        scores = fusions.build(config).fuse(runs)
        assert snapshot(runs) == before
        assert scores.shape == runs.documents.shape
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()
        ranking = ranked(dataset, config)
        for array in (ranking.scores, ranking.tiers, ranking.deciding, ranking.placed):
            assert not array.flags.writeable
        assert all(
            not v.flags.writeable for v in vars(ranking.runs).values() if isinstance(v, np.ndarray)
        )


@EVERY
def test_no_score_exceeds_the_greatest_possible(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = aligned(dataset)
        fusion = fusions.build(config)
        shown = fusion.reported(fusion.fuse(runs))
        top = fusion.max_possible(runs)
        assert top.shape == (len(runs.queries),)
        assert (shown <= top[runs.query_index] * (1 + 1e-12)).all()


@EVERY
def test_a_single_list_keeps_its_order_where_declared(config: dict[str, Any]) -> None:
    if not fusions.build(config).keeps_single_list:
        pytest.skip("declares that it does not")
    weights = {k: v for k, v in config.get("weights", {}).items() if k == "dense"}
    alone = {**config, "weights": weights} if "weights" in config else config

    for dataset in DATASETS:
        view = ranked(dataset, alone, order=("dense",))
        np.testing.assert_array_equal(view.positions, view.runs.ranks[0])


@EVERY
def test_scaling_all_weights_changes_no_rank_where_declared(config: dict[str, Any]) -> None:
    plain = with_weights(config, 1.0)
    if plain is None or not fusions.build(plain).scale_free:
        pytest.skip("has no weights, or declares that they do not scale")

    for dataset, factor in product(DATASETS, (0.25, 3.0, 1000.0)):
        scaled = with_weights(config, factor)
        assert scaled is not None
        runs = aligned(dataset)
        found = [
            positions(fusions.build(c).fuse(runs), runs.offsets).tolist() for c in (plain, scaled)
        ]
        assert found[0] == found[1]
        systems = [ranked(dataset, c).positions.tolist() for c in (plain, scaled)]
        assert systems[0] == systems[1]


@EVERY
def test_scaling_all_weights_does_to_scores_what_is_declared(config: dict[str, Any]) -> None:
    plain, factor = with_weights(config, 1.0), 3.0
    scaled = with_weights(config, factor)
    if plain is None or scaled is None or fusions.build(plain).scales == "otherwise":
        pytest.skip("has no weights, or declares nothing")
    one, other = fusions.build(plain), fusions.build(scaled)
    times = {"not": 1.0, "alike": factor}[one.scales]

    assert one.scale_free
    for dataset in DATASETS:
        runs = aligned(dataset)
        shown, more = (f.reported(f.fuse(runs)) for f in (one, other))
        np.testing.assert_allclose(more, times * shown, rtol=1e-12)
        tops = one.max_possible(runs)
        np.testing.assert_allclose(other.max_possible(runs), times * tops, rtol=1e-12)


def test_what_is_declared_not_to_hold_does_not() -> None:
    alone = ({"dense": {"q1": {"d1": 2.0, "d2": 1.0}}}, {"q1": {"d1": 1.0}})
    inverted = {"method": "weighted_score", "normalize": "min_max_inverted"}
    assert not fusions.build(inverted).keeps_single_list
    assert per_query(ranked(alone, inverted, order=("dense",)))["q1"]["d2"][0] == 1
    growing = {"method": "rrf_v2", "bonus": {1: 0.0, 2: 0.5}}
    assert not fusions.build(growing).keeps_single_list
    assert per_query(ranked(alone, growing, order=("dense",)))["q1"]["d2"][0] == 1
    assert not fusions.build("rrf_v2").scale_free
    assert fusions.build({"method": "rrf_v2", "bonus": {1: 0.0}}).scale_free
