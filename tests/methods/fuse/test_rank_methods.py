"""Methods that rank by votes and ranks."""

import math
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest

from fusion_bench.config.parameters import integer, real
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.methods.fuse import best_ranks, fusions
from fusion_bench.methods.fuse.voting import PAIRS_AT_ONCE
from tests.methods.fuse.test_fuse import SOURCES, view


def scores(config: object, **lists: dict[str, float]) -> dict[str, float]:
    runs = view(**lists)
    fused = fusions.build(config).fuse(runs).tolist()
    return {runs.vocabulary[d]: x for d, x in zip(runs.documents, fused, strict=True)}


@pytest.mark.parametrize(
    ("config", "greatest"),
    [
        ("isr", 9.0),
        ("log_isr", 3 * math.log(3)),
        ({"method": "logn_isr", "weights": {"bm25": 2}}, 4 * math.log(3.01)),
        ({"method": "rbc", "phi": 0.5, "weights": {"bm25": 2}}, 2.0),
        ("borda", 9.0),
        ({"method": "weighted_borda", "weights": {"hyde": 0.5}}, 7.5),
        ("condorcet", 3.0),
        ({"method": "softmax_rrf", "k": {"bm25": 0}}, 1 + 2 / 61),
    ],
    ids=str,
)
def test_greatest_possible_scores(config: object, greatest: float) -> None:
    runs = view(bm25={"a": 4.0, "b": 1.0}, dense={"b": -3.0}, hyde={"c": -5.0})
    assert fusions.build(config).max_possible(runs)[0] == pytest.approx(greatest, rel=1e-15)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"method": "rbc", "phi": 0}, "phi: input"),
        ({"method": "rbc", "phi": 1}, "phi: input"),
        ({"method": "rbc", "phi": "0.5"}, "phi: input"),
        ({"method": "logn_isr", "sigma": 1.1}, "sigma: input"),
        ({"method": "isr", "k": 60}, "unknown key 'k'"),
        ({"method": "pos_fuse", "weights": {"a": 1}}, "unknown key 'weights'"),
    ],
)
def test_values_that_break_a_rule(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build(config)


def test_what_a_search_may_change() -> None:
    weights = tuple(real(f"weights.{name}", 0.0, 2.0) for name in SOURCES)
    spaces = {
        "isr": weights,
        "logn_isr": (real("sigma", 0.01, 1.0), *weights),
        "rbc": (real("phi", 0.5, 0.99), *weights),
        "borda": weights,
        "condorcet": weights,
    }
    assert {name: fusions.build(name).space(SOURCES) for name in spaces} == spaces


# ── votes by pairs of documents


def best_first(*documents: str) -> dict[str, float]:
    return {d: float(len(documents) - n) for n, d in enumerate(documents)}


def test_rounding_decides_no_tie_of_weights() -> None:
    # 0.1 + 0.2 is not 0.3 in binary, whichever source has which weight, and at any scale.
    for weights in permutations((0.1, 0.2, 0.3)):
        heavy = weights.index(0.3)
        orders = [("a", "b") if s == heavy else ("b", "a") for s in range(3)]
        for factor in (1, 3, 0.7, 1e-9, 1e9):
            named = {
                name: factor * w for name, w in zip(("bm25", "dense", "hyde"), weights, strict=True)
            }
            found = scores(
                {"method": "weighted_condorcet", "weights": named},
                bm25=best_first(*orders[0]),
                dense=best_first(*orders[1]),
                hyde=best_first(*orders[2]),
            )
            assert found == {"a": 1.5, "b": 1.5}


def test_long_lists_are_counted_in_blocks() -> None:
    documents = [f"d{n}" for n in range(1100)]
    assert len(documents) ** 2 > PAIRS_AT_ONCE
    lists = {}
    for seed, name in enumerate(("bm25", "dense", "hyde")):
        Random(seed).shuffle(documents)
        lists[name] = best_first(*documents[: 900 + seed])
    runs = view(**lists)
    places = np.where(runs.ranks > 0, runs.ranks, 10_000).astype(np.int16)
    votes = sum(np.sign(row[None, :] - row[:, None]) for row in places)
    expected = 0.5 + (votes > 0).sum(axis=1) + (votes == 0).sum(axis=1) / 2
    np.testing.assert_array_equal(fusions.build("condorcet").fuse(runs), expected)
    equal = {"method": "weighted_condorcet", "weights": dict.fromkeys(lists, 0.3)}
    np.testing.assert_array_equal(fusions.build(equal).fuse(runs), expected)


def test_a_score_is_what_a_document_beats_and_ties_with() -> None:
    runs = view(bm25=best_first("a", "b", "c"), dense=best_first("b", "a", "d"))
    terms = fusions.build("condorcet").score_terms(runs)
    assert terms.labels == ("itself", "documents beaten", "half of documents tied with")
    row = [runs.vocabulary[d] for d in runs.documents].index("a")
    assert terms.terms[:, row].tolist() == [1, 2, 0.5]


# ── reciprocal rank fusion weighted by a softmax of each list's scores


def test_a_low_temperature_keeps_the_order_of_a_list() -> None:
    crowd = {f"d{n:03}": float(-n) for n in range(300)}
    config = {"method": "softmax_rrf", "temperature": 0.01}
    found = scores(config, bm25=crowd)
    assert sorted(found, key=lambda d: -found[d]) == sorted(crowd)
    assert min(found.values()) > 0


def test_scores_too_large_for_the_temperature() -> None:
    runs = view(bm25={"a": 1e307, "b": 1.0})
    with pytest.raises(AlignmentError, match=r"'bm25'.*1e\+307,"):
        fusions.build({"method": "softmax_rrf", "temperature": 1e-6}).fuse(runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature: input"),
        ({"temperature": {"bm25": 0}}, r"temperature\.bm25: input"),
        ({"rank_decay": -1}, "rank_decay: input"),
    ],
)
def test_values_that_break_a_rule_of_softmax_rrf(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build({"method": "softmax_rrf", **options})


def test_numbers_of_each_source_are_tuned_and_checked() -> None:
    config = {"method": "softmax_rrf", "temperature": {"bm25": 2.0}}
    assert fusions.build(config).space(SOURCES)[:5] == (
        integer("k", 1, 1000, log=True),
        *(real(f"temperature.{name}", 0.01, 100.0, log=True) for name in SOURCES),
        real("rank_decay", 0.0, 1.0),
    )
    fusion = fusions.build({"method": "softmax_rrf", "rank_decay": {"graph": 1}})
    with pytest.raises(ConfigError, match="rank_decay: 'graph'"):
        fusion.check_sources(("bm25",), [frozenset()])


@pytest.mark.parametrize("rows", range(4))
def test_the_best_rank_is_the_least_above_0(rows: int) -> None:
    ranks = np.random.default_rng(rows).integers(0, 3, (rows, 40))
    expected = [min((rank for rank in column if rank), default=0) for column in ranks.T.tolist()]
    assert best_ranks(ranks).tolist() == expected
