"""Several people's grades, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.judging.judge_files import (
    COMBINE,
    Judgment,
    combine_grades,
    merge_qrels,
)
from fusion_bench.judging.options import CombineName


@pytest.mark.parametrize(
    ("how", "grades", "expected"),
    [
        ("majority", [2, 0, 2], 2),
        ("majority", [0, 2], 0),
        ("majority", [3, 1, 3, 1, 0], 1),
        ("mean", [0, 1], 0),
        ("mean", [0, 1, 1], 1),
        ("mean", [3, 3, 1], 2),
        ("mean", [2], 2),
        ("first", [1, 3, 3], 1),
    ],
)
def test_one_grade_of_several(how: CombineName, grades: Sequence[int], expected: int) -> None:
    assert COMBINE[how](grades) == expected


def test_disagreements_are_counted() -> None:
    judges = {
        "bob": [Judgment("q", "a", 2, "bob"), Judgment("q", "b", 1, "bob")],
        "ann": [Judgment("q", d, 0, "ann") for d in "a"] + [Judgment("q", "b", 1, "ann")],
        "eve": [Judgment("q", "c", 1, "eve")],
    }
    combined = combine_grades(judges, "first")
    assert combined.grades == {("q", "a"): 0, ("q", "b"): 1, ("q", "c"): 1}
    assert (combined.several, combined.disagreements) == (2, 1)


def test_grades_join_the_judgments_and_replace_them() -> None:
    before = Qrels.from_dict({"q": {"a": 1, "b": 1}}).add_queries(["unjudged"])
    merged = merge_qrels(before, {("q", "a"): 0, ("q", "b"): 1, ("p", "c"): 2})
    assert merged.qrels.queries == ("p", "q", "unjudged")
    judged = {query: row for query, row in merged.qrels.to_dict().items() if row}
    assert judged == {"q": {"a": 0, "b": 1}, "p": {"c": 2}}
    assert (merged.added, merged.changed) == (1, 1)
