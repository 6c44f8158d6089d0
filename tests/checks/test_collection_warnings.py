"""Warnings come in one order, whoever found them and in whatever order."""

from fusion_bench.checks.collection_warnings import AFTER_LISTS, BEFORE_LISTS, sort_warnings
from fusion_bench.checks.records import DataWarning


def warning(key: str, text: str = "") -> DataWarning:
    return DataWarning(key=key, text=text)


def test_lists_stand_between_queries_and_results_and_equal_keys_keep_their_order() -> None:
    keys = [*BEFORE_LISTS, "reversed", "float32", *AFTER_LISTS]
    shuffled = [*AFTER_LISTS[::-1], "reversed", *BEFORE_LISTS[::-1], "float32"]
    assert [each.key for each in sort_warnings(map(warning, shuffled))] == keys
    given = [warning("ties", "second"), warning("caveat"), warning("ties", "first")]
    assert [each.text for each in sort_warnings(given)] == ["", "second", "first"]
