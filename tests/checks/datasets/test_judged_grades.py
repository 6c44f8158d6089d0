"""Grades that cannot tell systems apart."""

from __future__ import annotations

import pytest

from fusion_bench.checks.query_warnings import find_grade_warnings, list_grades
from fusion_bench.data.qrels import Qrels


def test_grades_are_those_of_the_chosen_queries() -> None:
    qrels = Qrels.from_dict({"a": {"d": 2, "e": 0}, "b": {"d": 1}, "c": {"d": 3, "e": 2}})
    assert list_grades(qrels, ["c", "a"]) == (0, 2, 3)
    assert list_grades(qrels, ["b"]) == (1,)
    assert list_grades(qrels, []) == ()


@pytest.mark.parametrize(
    ("grades", "is_machine", "keys"),
    [
        ((0, 1, 2), True, []),
        ((0, 1), False, ["nothing relevant"]),
        ((2,), False, []),
        ((2,), True, ["one grade"]),
        ((0,), True, ["nothing relevant", "one grade"]),
        ((), True, []),
    ],
)
def test_what_is_named(grades: tuple[int, ...], is_machine: bool, keys: list[str]) -> None:
    warnings = find_grade_warnings(grades, 2, is_machine=is_machine)
    assert [each.key for each in warnings] == keys
