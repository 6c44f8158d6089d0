"""Queries keep their details as long as they fit; those that differ most go first."""

from __future__ import annotations

import json

import numpy as np

from fusion_bench.evaluation.details.relevant_ranks import make_relevant_ranks
from fusion_bench.evaluation.details.top_documents import (
    QuerySizes,
    choose_queries,
    estimate_sizes,
    list_top_documents,
)
from tests.evaluation.details.cases import SYSTEMS, make_case, make_system
from tests.evaluation.details.test_rank_collector import collect


def sizes(*values: int, differences: list[float]) -> QuerySizes:
    return QuerySizes(np.array(values), np.array(differences))


def test_all_are_kept_where_they_fit() -> None:
    first = sizes(4, 3, differences=[0.0, 0.5])
    second = sizes(3, differences=[1.0])
    assert [keep.tolist() for keep in choose_queries([first, second], 10)] == [[True, True], [True]]


def test_those_that_differ_most_are_kept() -> None:
    first = sizes(4, 3, differences=[0.0, 0.5])
    second = sizes(3, 2, differences=[1.0, 0.0])
    kept = choose_queries([first, second], 11)
    assert [keep.tolist() for keep in kept] == [[True, True], [True, False]]  # 4 before 2: equal
    assert [keep.tolist() for keep in choose_queries([first, second], 9)] == [
        [False, True],
        [True, False],
    ]
    assert [keep.tolist() for keep in choose_queries([first, second], 2)] == [[False] * 2] * 2


def test_the_estimate_is_near_the_json() -> None:
    runs, collected = collect(make_case(3), SYSTEMS[3])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    top = list_top_documents(make_system(SYSTEMS[3]), runs, collected.tops["s"])
    text = json.dumps([ranks.to_dict(), top.to_dict()], separators=(",", ":"))
    estimate = estimate_sizes(ranks, [top]).sum()
    assert 0.5 < estimate / len(text) < 2


def test_a_text_counts_once_a_query() -> None:
    runs, collected = collect(make_case(3), SYSTEMS[3])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    top = list_top_documents(make_system(SYSTEMS[3]), runs, collected.tops["s"])
    texts = estimate_sizes(ranks, [top, top], excerpt=100) - estimate_sizes(ranks, [top, top])
    shown = {
        *zip(ranks.query.tolist(), ranks.documents, strict=True),
        *zip(top.query.tolist(), top.documents, strict=True),
    }
    for q in range(len(runs.queries)):
        assert texts[q] == 100 * sum(query == q for query, _ in shown)
