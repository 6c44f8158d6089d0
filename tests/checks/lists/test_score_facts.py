"""Constant lists and 32-bit floats, by hand and against trec_eval's own order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.checks.lists import count_changed_by_float32, count_constant_lists, lowest_score
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run

JUDGED = {"q1", "q2"}


@pytest.mark.parametrize(
    ("ranked", "count"),
    [
        ({"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 0.0, "b": 0.0, "c": 0.0}}, 2),
        ({"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 0.0, "b": 0.0, "c": 1.0}}, 1),
        ({"q1": {"a": 1.0}, "q2": {"a": 1.0}}, 0),
        ({"q1": {"a": 1.0}, "q9": {"a": 1.0, "b": 1.0}}, 0),
    ],
)
def test_constant_lists(ranked: dict[str, dict[str, float]], count: int) -> None:
    assert count_constant_lists(Run.from_dict("a", ranked), JUDGED) == count


scores = st.lists(
    st.sampled_from([1.0, 1.0 + 1e-9, 1.0 + 2e-9, 1.0 + 1e-6, 2.0, 1e300]), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_float32_changes_what_sorting_as_trec_eval_does_changes(
    first: list[float], second: list[float]
) -> None:
    lists = {"q1": first, "q2": second}
    ranked = {
        query: {f"d{n}": score for n, score in enumerate(values)} for query, values in lists.items()
    }
    expected = 0
    for documents in ranked.values():
        orders = []
        for kind in (np.float64, np.float32):
            with np.errstate(over="ignore"):
                keys = sorted((float(kind(score)), name) for name, score in documents.items())
            orders.append([name for _, name in keys])
        expected += orders[0] != orders[1]
    assert count_changed_by_float32(Run.from_dict("a", ranked), JUDGED) == expected


def test_a_rank_column_is_nothing_that_trec_eval_reads() -> None:
    run = Run.from_rows(
        "a",
        ["q1", "q1"],
        ["a", "b"],
        [1.0 + 1e-9, 1.0],
        ranks=[1, 2],
        read_options=ReadOptions(rank_from="column"),
    )
    assert count_changed_by_float32(run, JUDGED) == 0


def test_the_lowest_score() -> None:
    assert lowest_score(Run.from_dict("a", {"q1": {"a": 1.0, "b": -2.5}})) == -2.5
