"""What a leaderboard says, on made cells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.leaderboard.answers import (
    answer_constant,
    answer_convex,
    answer_fusion,
    answer_reranker,
    pool,
)
from benchmarks.leaderboard.page import PAGE, merge_equal, render_pages
from benchmarks.leaderboard.records import (
    Cell,
    CollectionHead,
    Leaderboard,
    ListFacts,
    StoredCollection,
    SystemRow,
    TuningBudget,
)
from benchmarks.leaderboard.results import CollectionResults
from benchmarks.leaderboard.rows import (
    CHOSEN_CONSTANT,
    CONSTANTS,
    DEFAULT_CONSTANT,
    TUNED_PAIR,
    against_source,
    k_name,
    reranked_name,
)
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Comparison

QUERIES = 60
NOISE = np.random.default_rng(5).normal(0, 0.02, QUERIES)


def make_results(
    name: str,
    values: Mapping[str, tuple[str, FloatArray]],
    *,
    is_scored: bool = True,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> CollectionResults:
    """A collection whose rows have these kinds and values; ``more`` are fields of their cells."""
    rows = tuple(SystemRow(name=row, kind=kind) for row, (kind, _) in values.items())
    queries = tuple(f"q{number}" for number in range(QUERIES))
    head = CollectionHead(
        name=name,
        fingerprint=name,
        queries=queries,
        groups=queries,
        lists=tuple(ListFacts(name=each, depth=10, is_scored=is_scored) for each in ("a", "b")),
        reranker="r",
        judgments="complete",
        judge="people",
        rows=rows,
        budget=TuningBudget(),
    )
    cells = {
        row.name: Cell(
            fingerprint="",
            row=row,
            values={"nDCG@10": tuple(values[row.name][1].tolist())},
            **(more or {}).get(row.name, {}),
        )
        for row in rows
    }
    return CollectionResults(head, cells)


def plain_values(gain: float = 0.1) -> dict[str, tuple[str, FloatArray]]:
    base = 0.5 + NOISE
    return {
        "a": ("source", base),
        "b": ("source", base - 0.2),
        "rrf": ("method", base + gain * (1 + NOISE)),
        against_source("rrf"): ("tuned pair", gain * (1 + NOISE)),
        against_source("convex"): ("tuned pair", gain * (1 + NOISE)),
        TUNED_PAIR: ("tuned pair", 0.05 * (1 + NOISE)),
    }


def to_collection(results: CollectionResults) -> StoredCollection:
    """The stored form, with the rows that a page needs."""
    return StoredCollection(head=results.head, cells=tuple(results.cells.values()))


def test_statements_on_score_fusion_leave_out_lists_of_ranks() -> None:
    both = [
        make_results("scored", plain_values()),
        make_results("ranked", plain_values(), is_scored=False),
    ]
    convex, fusion = answer_convex(both, {}), answer_fusion(both, {})
    assert [row[0] for row in convex.rows] == ["scored"]
    assert "on 1 of 1" in convex.sentence
    assert [row[0] for row in fusion.rows] == ["scored", "ranked"]
    assert [row[-3] for row in fusion.rows][1] == "–"


def test_a_collection_keeps_its_scored_lists() -> None:
    """Ranks are a matter of a list; one that holds ranks beside two with scores hides nothing."""
    each = make_results("mixed", plain_values())
    third = ListFacts(name="c", depth=10, is_scored=False)
    mixed = replace(each, head=each.head.model_copy(update={"lists": (*each.head.lists, third)}))
    assert (mixed.is_scored, mixed.ranked_lists) == (True, ["c"])
    assert [row[0] for row in answer_convex([mixed], {}).rows] == ["mixed"]
    page = render_pages(Leaderboard(collections=(to_collection(mixed),)))[PAGE].decode()
    assert "scores: c of mixed." in page
    assert "| scores; ranks: c |" in page


def test_the_first_answer_says_untuned_and_tuned_and_no_zero_without_its_interval() -> None:
    values = plain_values()
    values["rrf"] = ("method", values["a"][1] - 0.1 * (1 + NOISE))
    sentence = answer_fusion([make_results(name, values) for name in "xy"], {}).sentence
    assert (
        "best single list, untuned RRF is better on 0 of 2 collections and worse on 2" in sentence
    )
    assert (
        "tuned RRF is better on 2 of 2 collections and worse on 0 (95 % interval: 0% to 84%"
        in sentence
    )


def test_collections_that_resemble_each_other_are_listed_in_their_groups() -> None:
    collections = tuple(to_collection(make_results(name, plain_values())) for name in "abcd")
    clusters = {"a": "one", "b": "two", "c": "one", "d": "two"}
    board = Leaderboard(collections=collections, clusters=clusters)
    page = render_pages(board)[PAGE].decode()
    assert "The groups are: a, c; b, d." in page


def test_a_mean_over_collections_has_an_interval_and_one_for_a_new_collection() -> None:
    gains = {"a": 0.1, "b": -0.02, "c": 0.06}
    results = [make_results(name, plain_values(gain)) for name, gain in gains.items()]
    fusion = answer_fusion(results, {})
    assert "over 3 effects" in fusion.sentence
    assert fusion.sentence.count("[") == 2
    mean, new = fusion.bars[-2:]
    assert new.low < mean.low < mean.mean < mean.high < new.high
    clustered = answer_fusion(results, {"a": "x", "c": "x"})
    assert "over 2 effects" in clustered.sentence


@pytest.mark.parametrize("method", ["rrf", "convex"])
def test_a_win_of_one_list_with_nearly_all_weight_is_called_that(method: str) -> None:
    name = against_source(method)
    chosen = ({"fusion.weights.a": 1.0, "fusion.weights.b": 0.01},)
    off = make_results("off", plain_values(), more={name: {"chosen": chosen}})
    mixed = ({"fusion.weights.a": 1.0, "fusion.weights.b": 0.5},)
    on = make_results("on", plain_values(), more={name: {"chosen": mixed}})
    fusion = answer_fusion([off, on], {})
    assert [row[-2] for row in fusion.rows] == [f"{method}", "no"]
    assert f"On off ({method}) one list has all the weight" in fusion.sentence


def test_a_method_that_reproduces_a_source_does_not_hide_that_fusion_loses() -> None:
    values = plain_values(-0.1)
    values["copy"] = ("method", values["a"][1])
    fusion = answer_fusion([make_results("one", values)], {})
    assert fusion.rows[0][4] == "loses"
    assert "no untuned method beats" in fusion.sentence


@pytest.mark.parametrize(("coverage", "answers"), [(0.98, 0), (0.99, 1)])
def test_below_a_reranker_counts_only_what_it_scored(coverage: float, answers: int) -> None:
    values = plain_values()
    names = {name: reranked_name(name) for name in ("a", "b", "rrf")}
    for name, below in names.items():
        values[below] = ("reranked", values[name][1] + 0.1)
    more = {below: {"coverage": coverage} for below in names.values()}
    answer = answer_reranker([make_results("one", values, more=more)], {})
    assert f"better on {answers} of {answers}" in answer.sentence
    assert "scored 99% of the documents" in answer.sentence
    assert f": {1 - answers} of 1 with a reranker are left out." in answer.sentence
    assert len(answer.rows) == 3


def test_a_list_that_produced_what_the_reranker_scored_is_no_opponent() -> None:
    values = plain_values()
    names = {name: reranked_name(name) for name in ("a", "b", "rrf")}
    for name, below in names.items():
        values[below] = ("reranked", values[name][1] + 0.1)
    more = {below: {"coverage": 0.9 if name == "b" else 1.0} for name, below in names.items()}
    answer = answer_reranker([make_results("one", values, more=more)], {})
    assert {row[3] for row in answer.rows} == {"left out"}


def test_means_of_all_k_hold_together_and_defaults_of_engines_are_k_of_ours() -> None:
    rng, results = np.random.default_rng(2), []
    for name in "abc":
        values = plain_values() | {CHOSEN_CONSTANT: ("chosen", 0.6 + NOISE)}
        for k in CONSTANTS:
            gains = rng.normal(0.01 * (k != DEFAULT_CONSTANT), 0.02, QUERIES)
            values[k_name(k)] = ("k", 0.6 + NOISE + gains)
        more = {CHOSEN_CONSTANT: {"null": (0.5,) * 39}}
        results.append(make_results(name, values, more=more))
    answer = answer_constant(results, {})
    alone = pool(
        {each.head.name: each.compare(["rrf k=0"], "rrf")["rrf k=0"] for each in results}, {}
    )
    assert alone is not None
    assert alone.low is not None
    bar = answer.bars[0]
    assert bar.mean == pytest.approx(alone.mean)
    assert (bar.mean - bar.low) / (alone.mean - alone.low) == pytest.approx(
        16.078 / 4.303, rel=1e-3
    )
    engines = {row[0]: row[1] for row in answer.rows}
    assert engines["1"] == "qdrant"
    assert engines["2"] == ""
    assert "weaviate (59)" in engines["60"]


def test_systems_of_equal_values_on_all_collections_share_a_row() -> None:
    values = plain_values()
    values |= {"twin": values["rrf"], "other": ("method", values["rrf"][1] + 0.01)}
    apart = dict(values) | {"twin": ("method", values["rrf"][1] - 0.01)}
    same = make_results("same", values)
    assert ["rrf", "twin"] in merge_equal([same], "method")
    assert ["rrf"] in merge_equal([same, make_results("apart", apart)], "method")


def test_no_effect_without_a_spread() -> None:
    rows: Sequence[Comparison] = ()
    assert pool({row.candidate: row for row in rows}, {}) is None
