"""What every normalizer promises, whatever its formula."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.methods.normalize import Normalizer, normalizers
from tests.contract.cases import (
    DATASETS,
    ORDERS,
    QUERIES,
    SINGLE_LISTS,
    Dataset,
    aligned,
    equal,
    normalizer_examples,
    own_normalizers,
    snapshot,
)

EVERY = pytest.mark.parametrize("config", [*normalizer_examples(), *own_normalizers()], ids=str)


def scaled(
    dataset: Dataset,
    config: dict[str, Any],
    queries: tuple[str, ...] = QUERIES,
    order: tuple[str, ...] | None = None,
) -> dict[tuple[str, str, str], float]:
    """Source, query, document → normalized score, to the last bit."""
    runs = aligned(dataset, queries=queries, order=order)
    values = normalizers.build(config).normalize_scores(runs)
    return {
        (name, runs.queries[q], runs.vocabulary[d]): float(value)
        for name, row in zip(runs.sources, values, strict=True)
        for q, d, value in zip(runs.query_index, runs.documents, row, strict=True)
        if not np.isnan(value)
    }


@EVERY
def test_round_trips_through_json(config: dict[str, Any]) -> None:
    scale = normalizers.build(config)
    assert equal(type(scale).model_validate(scale.model_dump(mode="json")), scale)
    assert equal(normalizers.build(scale.model_dump(mode="json")), scale), (
        "a report writes the normalizer's fields: building it from them must give the same one"
    )


@EVERY
def test_refuses_unknown_keys(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="unknown key 'colour'"):
        normalizers.build({**config, "colour": 1})


@EVERY
@pytest.mark.parametrize("constant", [0.25, -1, float("nan")])
def test_knows_three_constants(config: dict[str, Any], constant: float) -> None:
    with pytest.raises(ConfigError, match=r"constant: (must be 0, 0\.5|input)"):
        normalizers.build({**config, "constant": constant})


@EVERY
def test_inputs_stay_and_the_result_is_read_only(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = aligned(dataset)
        before = snapshot(runs)
        values = normalizers.build(config).normalize_scores(runs)
        assert snapshot(runs) == before, "scale_lists must not write to the arrays it is given"
        assert not values.flags.writeable
        np.testing.assert_array_equal(np.isnan(values), runs.ranks == 0)
        assert np.isfinite(values[runs.ranks > 0]).all(), (
            "scale_lists must return a finite number for every row, lists of equal scores included"
        )
        assert normalizers.build(config).normalize_scores(runs) is values  # derived once


@EVERY
def test_neither_order_of_sources_nor_other_queries_matter(config: dict[str, Any]) -> None:
    for dataset, order, query in product(DATASETS, ORDERS[1::4], QUERIES):
        together = scaled(dataset, config)
        assert scaled(dataset, config, order=tuple(order)) == together, (
            "the order of the sources changes a value: scale each list by itself, and sum with "
            "lists.list_sum"
        )
        alone = scaled(dataset, config, queries=(query,))
        kept = {key: x for key, x in together.items() if key[1] in (query, "shared by all")}
        assert alone == kept, (
            "another query changes a value: take minimum, maximum and sums per list, with "
            "lists.list_minimum and its like, not over lists.scores"
        )


@EVERY
def test_keeps_the_order_where_declared(config: dict[str, Any]) -> None:
    scale = normalizers.build(config)
    if not scale.keeps_order:
        assert flattens(scale), (
            f"{scale.method}: keeps_order = False says that some greater score does not stay "
            "greater, but 1.1e13 stayed above 1e13 in a crowd of zeros: leave keeps_order at True"
        )
        return
    for dataset in SINGLE_LISTS:
        runs = aligned(dataset)
        values, raw = scale.normalize_scores(runs)[0], runs.scores[0]
        for start, stop in pairwise(runs.offsets):
            greater = raw[start:stop, None] > raw[start:stop]
            assert (values[start:stop, None] > values[start:stop])[greater].all(), (
                f"{scale.method}: a greater score did not stay greater in a single list: set "
                "keeps_order = False, or correct the scale"
            )


def flattens(scale: Normalizer) -> bool:
    """Whether two great scores in a crowd of zeros, small or large, lose their order."""
    return flattens_crowd(scale, 40) or flattens_crowd(scale, 4_000)


def flattens_crowd(scale: Normalizer, size: int) -> bool:
    crowd = {f"n{i:02}": 0.0 for i in range(size)} | {"y": 1e13, "z": 1.1e13}
    runs = aligned(({"bm25": {"q1": crowd}}, {"q1": crowd}))
    values = dict(
        zip(runs.documents.tolist(), scale.normalize_scores(runs)[0].tolist(), strict=True)
    )
    y, z = (float(f"{values[runs.vocabulary.index(name)]:.11e}") for name in "yz")
    return y >= z
