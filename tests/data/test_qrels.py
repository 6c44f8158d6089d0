from __future__ import annotations

import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import DataError


def test_qrels_keep_grades_by_query() -> None:
    judged = {"q2": {"b": 2, "a": 0}, "q1": {"a": -1}}
    qrels = Qrels.from_dict(judged)
    assert qrels.to_dict() == judged
    assert qrels.queries == ("q1", "q2")  # whatever the order of the file
    assert qrels.digest() == Qrels.from_dict(dict(reversed(judged.items()))).digest()
    assert qrels.digest() == Qrels.from_dict({"q2": {"a": 0, "b": 2}, "q1": {"a": -1}}).digest()
    assert qrels.digest() != Qrels.from_dict({"q2": {"a": 1, "b": 2}, "q1": {"a": -1}}).digest()


def test_qrels_refuse_a_pair_judged_twice() -> None:
    with pytest.raises(DataError, match="'a' stands twice") as caught:
        Qrels.from_rows(["q", "r", "q"], ["a", "a", "a"], [1, 1, 0])
    assert caught.value.row == 2


def test_qrels_refuse_nothing_and_ragged_columns() -> None:
    with pytest.raises(DataError, match="no judgement"):
        Qrels.from_dict({})
    with pytest.raises(DataError, match="1 queries, 1 documents, 2 grades"):
        Qrels.from_rows(["q"], ["a"], [1, 2])


# Reading a run ----------------------------------------------------------------------------------
