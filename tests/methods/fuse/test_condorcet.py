"""Votes by pairs of documents."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest

from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.fuse.voting import PAIRS_AT_ONCE
from tests.methods.fuse.test_fuse import view
from tests.methods.fuse.test_rank_methods import scores


def best_first(*documents: str) -> dict[str, float]:
    return {d: float(len(documents) - n) for n, d in enumerate(documents)}


def test_the_example_of_the_docstring() -> None:
    found = scores("condorcet", bm25=best_first("a", "b", "c"), dense=best_first("b", "a", "d"))
    assert found == {"a": 3.5, "b": 3.5, "c": 1.5, "d": 1.5}


def test_a_circle_stays_between_what_beats_it_and_what_it_beats() -> None:
    circle = [("b", "c", "d"), ("c", "d", "b"), ("d", "b", "c")]
    lists = dict(zip(("bm25", "dense", "hyde"), circle, strict=True))
    found = scores("condorcet", **{s: best_first("a", *r, "e") for s, r in lists.items()})
    assert found == {"a": 5, "b": 3, "c": 3, "d": 3, "e": 1}


def test_a_list_that_returned_neither_does_not_vote() -> None:
    found = scores(
        "condorcet", bm25=best_first("a", "b"), dense=best_first("c"), hyde=best_first("c")
    )
    assert found == {"a": 2, "b": 1, "c": 3}


@pytest.mark.parametrize(
    ("weights", "winner"), [((0.5, 0.3, 0.1), "a"), ((0.3, 0.1, 0.4), "b"), ((1, 1, 1), "b")]
)
def test_a_vote_counts_its_weight(weights: tuple[float, ...], winner: str) -> None:
    named = dict(zip(("bm25", "dense", "hyde"), weights, strict=True))
    found = scores(
        {"method": "weighted_condorcet", "weights": named},
        bm25=best_first("a", "b"),
        dense=best_first("b", "a"),
        hyde=best_first("b", "a"),
    )
    assert found == {winner: 2, "ab".replace(winner, ""): 1}


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
