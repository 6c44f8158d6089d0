"""What a leaderboard says, on made cells."""

from collections.abc import Mapping
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
from benchmarks.leaderboard.records import (
    Cell,
    CollectionHead,
    ListFacts,
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


def test_the_first_answer_says_untuned_and_tuned_and_no_zero_without_its_interval() -> None:
    values = plain_values()
    values["rrf"] = ("method", values["a"][1] - 0.1 * (1 + NOISE))
    sentence = answer_fusion([make_results(name, values) for name in "xy"], {}).sentence
    assert "untuned RRF is better on 0 of 2 " in sentence.replace("\n", " ")
    assert "on 2 of 2 collections and worse on 0 (95 % interval: 0% to 84%" in sentence


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
