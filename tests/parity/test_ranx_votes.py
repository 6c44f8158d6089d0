"""Methods over ranks and votes equal ranx's per document; where they do not, the reason stands."""

import sys
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from fusion_bench.methods.fuse import fusions
from tests.parity.test_ranx import Ranked, Ranx, aligned, assert_close, by_document

WEIGHTS = {"bm25": 0.3, "dense": 0.7}
#: Ours → ranx's name and parameters.
METHODS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"method": "isr"}, "isr", {}),
    ({"method": "log_isr"}, "log_isr", {}),
    ({"method": "logn_isr"}, "logn_isr", {"sigma": 0.01}),
    ({"method": "logn_isr", "sigma": 0.5}, "logn_isr", {"sigma": 0.5}),
    ({"method": "rbc", "phi": 0.3}, "rbc", {"phi": 0.3}),
    ({"method": "rbc", "phi": 0.95}, "rbc", {"phi": 0.95}),
    ({"method": "borda"}, "bordafuse", {}),
    ({"method": "weighted_borda", "weights": WEIGHTS}, "w_bordafuse", {"weights": (0.3, 0.7)}),
    ({"method": "bordafuse"}, "bordafuse", {}),
]


@pytest.fixture(scope="module")
def ranx() -> Ranx:
    return Ranx()


@pytest.fixture(scope="module")
def runs() -> dict[str, Ranked]:
    """Two runs that share some documents, best first, without ties."""
    random = Random(6)
    return {
        name: {
            f"q{q}": {f"d{n}": 20.0 - i for i, n in enumerate(random.sample(range(25), 10 + q))}
            for q in range(5)
        }
        for name in ("bm25", "dense")
    }


def ours(lists: Mapping[str, Ranked], config: object) -> dict[str, dict[str, float]]:
    view = aligned(lists)
    return by_document(view, fusions.build(config).fuse(view))


@pytest.mark.parametrize(("config", "method", "params"), METHODS, ids=str)
def test_rank_methods(
    ranx: Ranx,
    runs: dict[str, Ranked],
    config: dict[str, Any],
    method: str,
    params: dict[str, Any],
) -> None:
    assert_close(ours(runs, config), ranx.fused(runs, norm=None, method=method, params=params))


def ranking(documents: list[str]) -> Ranked:
    return {"q": {d: float(len(documents) - n) for n, d in enumerate(documents)}}


def test_condorcet_where_every_pair_has_a_majority(ranx: Ranx) -> None:
    # Each list swaps other neighbors of one order, so that two of three lists agree on each pair.
    order = [f"d{n:02}" for n in range(40)]
    Random(3).shuffle(order)
    lists = {}
    for s, name in enumerate(("bm25", "dense", "hyde")):
        swapped = list(order)
        for n in range(s, len(order) - 1, 3):
            swapped[n : n + 2] = swapped[n + 1], swapped[n]
        lists[name] = ranking(swapped)
    found = ours(lists, "condorcet")
    assert_close(found, ranx.fused(lists, norm=None, method="condorcet"))
    assert found["q"] == {d: len(order) - n for n, d in enumerate(order)}


def test_weighted_condorcet_where_one_list_outvotes_the_others(ranx: Ranx) -> None:
    order = [f"d{n:02}" for n in range(20)]
    Random(4).shuffle(order)
    lists = {
        "bm25": ranking(order[::-1][:9]),
        "dense": ranking(order),
        "hyde": ranking(sorted(order)[:12]),
    }
    weights = {"bm25": 1.0, "dense": 2.5, "hyde": 1.0}
    found = ours(lists, {"method": "w_condorcet", "weights": weights})
    params = {"weights": list(weights.values())}
    assert_close(found, ranx.fused(lists, norm=None, method="w_condorcet", params=params))
    assert found["q"] == {d: len(order) - n for n, d in enumerate(order)}


def test_a_tie_of_votes_goes_to_the_first_argument_in_ranx(ranx: Ranx) -> None:
    lists = {"a": ranking(["d1", "d2"]), "b": ranking(["d2", "d1"])}
    theirs = ranx.fused(lists, norm=None, method="condorcet")["q"]
    assert sorted(theirs.values()) == [1, 2]  # whichever of them a set yields first
    assert ours(lists, "condorcet")["q"] == {"d1": 1.5, "d2": 1.5}


def test_majorities_that_go_round_in_a_circle_have_an_order_in_ranx(ranx: Ranx) -> None:
    lists = {
        "a": ranking(["d1", "d2", "d3"]),
        "b": ranking(["d2", "d3", "d1"]),
        "c": ranking(["d3", "d1", "d2"]),
    }
    theirs = ranx.fused(lists, norm=None, method="condorcet")["q"]
    assert sorted(theirs.values()) == [1, 2, 3]  # whichever its sort meets first
    assert ours(lists, "condorcet")["q"] == {"d1": 2, "d2": 2, "d3": 2}


def test_a_list_that_returned_neither_votes_for_the_second_argument_in_ranx(ranx: Ranx) -> None:
    assert ranx.module
    compare = sys.modules["ranx.fusion.condorcet"]._compare
    absent = 1_000_000
    places = [[0, 1], [absent, absent], [absent, absent]]
    # Each of the two loses against the other, although the one list with both ranks 0 above 1.
    assert (compare(0, 1, places), compare(1, 0, places)) == (1, 1)
    lists = {"a": ranking(["d1", "d2"]), "b": ranking(["d3"]), "c": ranking(["d3"])}
    assert ours(lists, "condorcet")["q"] == {"d3": 3, "d1": 2, "d2": 1}


def test_log_isr_tells_documents_of_a_single_list_apart_nowhere(ranx: Ranx) -> None:
    alone = {"a": ranking(["d1", "d2", "d3"]), "b": ranking(["d4"])}
    theirs = ranx.fused(alone, norm=None, method="log_isr")
    assert set(theirs["q"].values()) == {0.0}
    assert_close(ours(alone, "log_isr"), theirs)
    apart = ours(alone, "logn_isr")["q"]
    assert apart["d1"] == apart["d4"] > apart["d2"] > apart["d3"] > 0
