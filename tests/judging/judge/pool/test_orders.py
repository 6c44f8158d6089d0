"""Orders of a pool: complete, the same for the same seed, and as their slow definitions say."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.judging.options import OrderName
from fusion_bench.judging.pools import (
    ORDERS,
    Pair,
    PooledDocument,
    disagreement,
    move_to_front,
    order_queries,
)


@st.composite
def pools(draw: st.DrawFn) -> list[PooledDocument]:
    """The first ranks of up to three systems."""
    lists = draw(st.lists(st.permutations("abcdef"), min_size=1, max_size=3))
    depth = draw(st.integers(1, 6))
    ranks = {
        document: tuple(
            place if (place := ids.index(document) + 1) <= depth else 0 for ids in lists
        )
        for document in "abcdef"
    }
    return [PooledDocument("q", document, r) for document, r in ranks.items() if any(r)]


def ids(documents: list[PooledDocument]) -> str:
    return "".join(each.document for each in documents)


@pytest.mark.parametrize("name", ORDERS)
@settings(max_examples=25, deadline=None)
@given(pool=pools(), seed=st.integers(0, 3), relevant=st.sets(st.sampled_from("abcdef")))
def test_each_order_holds_every_document_once_and_goes_by_names(
    name: OrderName, pool: list[PooledDocument], seed: int, relevant: set[str]
) -> None:
    known = {("q", document): True for document in relevant}
    order = ORDERS[name](pool, known, seed)
    assert sorted(ids(order)) == sorted(ids(pool))
    assert ORDERS[name](pool[::-1], known, seed) == order


def slow_move_to_front(pool: list[PooledDocument], relevant: dict[Pair, bool]) -> str:
    """One document at a time, everything looked up anew."""
    systems = range(len(pool[0].ranks))
    priority, reached, taken = [0 for _ in systems], [0 for _ in systems], ""
    while len(taken) < len(pool):
        best: tuple[int, int] | None = None
        for s in systems:
            is_left = any(each.ranks[s] > reached[s] for each in pool)
            if is_left and (best is None or priority[s] > best[0]):
                best = priority[s], s
        assert best is not None
        s = best[1]
        reached[s] += 1
        (document,) = (each for each in pool if each.ranks[s] == reached[s])
        if document.document in taken:
            continue
        taken += document.document
        priority[s] = 0 if relevant.get(document.pair) else priority[s] - 1
    return taken


@settings(max_examples=60, deadline=None)
@given(pool=pools(), relevant=st.sets(st.sampled_from("abcdef")))
def test_move_to_front_equals_the_slow_loop(pool: list[PooledDocument], relevant: set[str]) -> None:
    known = {("q", document): document in relevant for document in "abcdef"}
    assert ids(move_to_front(pool, known, 0)) == slow_move_to_front(pool, known)


def test_move_to_front_stays_with_what_finds_relevant_documents() -> None:
    pool = [
        *(PooledDocument("q", d, (rank, 0)) for rank, d in enumerate("abc", 1)),
        *(PooledDocument("q", d, (0, rank)) for rank, d in enumerate("xyz", 1)),
    ]
    assert ids(move_to_front(pool, {}, 0)) == "axbycz"
    assert ids(move_to_front(pool, {("q", "x"): True, ("q", "y"): True}, 0)) == "axyzbc"


@settings(max_examples=25, deadline=None)
@given(pool=pools())
def test_uncertainty_is_the_variance_of_discounts(pool: list[PooledDocument]) -> None:
    def slow(each: PooledDocument) -> float:
        weights = [1 / math.log2(1 + rank) if rank else 0.0 for rank in each.ranks]
        pairs = [(a - b) ** 2 for a in weights for b in weights]
        return sum(pairs) / (2 * len(weights) ** 2)

    for each in pool:
        assert disagreement(each) == pytest.approx(slow(each), abs=1e-15)
    order = ORDERS["uncertainty"](pool, {}, 0)
    values = [disagreement(each) for each in order]
    assert values == sorted(values, reverse=True)


def test_the_orders_of_one_small_pool() -> None:
    ranks = {"a": (1, 3), "b": (2, 0), "c": (0, 1), "d": (3, 2)}
    pool = [PooledDocument("q", document, places) for document, places in ranks.items()]
    assert ids(ORDERS["pool"](pool, {}, 0)) == "acdb"
    assert ids(ORDERS["system"](pool, {}, 0)) == "abdc"


def test_random_orders_depend_on_the_seed_and_on_nothing_else() -> None:
    pool = [PooledDocument("q", document, (1,)) for document in "abcdef"]
    orders = {ids(ORDERS["random"](pool, {}, seed)) for seed in range(20)}
    assert len(orders) > 10
    whole = ids(ORDERS["random"](pool, {}, 0))
    for gone in permutations("abc", 1):
        left = [each for each in pool if each.document not in gone]
        assert ids(ORDERS["random"](left, {}, 0)) == whole.replace(gone[0], "")


def test_queries_are_shuffled_where_documents_are() -> None:
    queries = [f"q{n}" for n in range(20)]
    assert order_queries(queries, "pool", 0) == queries
    assert order_queries(queries, "random", 0) != queries
    assert sorted(order_queries(queries, "random", 0)) == sorted(queries)
