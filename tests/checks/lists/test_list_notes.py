"""Which lists get a note about their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.checks.lists import list_warnings
from fusion_bench.checks.records import ListInfo


def note_keys(facts: Mapping[str, Any]) -> list[str]:
    info = ListInfo(
        name="a",
        kind="run",
        roles=(),
        read_options={},
        unanswered_queries=0,
        unjudged_queries=0,
        duplicate_rows=0,
        zero_scores=0,
        **facts,
    )
    return [key for key, _ in list_warnings(info, 0)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"mean_as_read": 0.06, "mean_backwards": 0.7, "is_reversed": True}, ["reversed"]),
        ({"mean_as_read": 0.06, "mean_backwards": 0.07}, []),
        ({"constant_lists": 1}, ["constant lists"]),
        ({"rank_column_lists": 4, "opposed_rank_lists": 3}, ["rank column"]),
        ({"rank_column_lists": 4, "opposed_rank_lists": 2}, []),
        ({"float32_queries": 1}, ["float32"]),
    ],
)
def test_notes(facts: dict[str, Any], expected: list[str]) -> None:
    assert note_keys(facts) == expected
