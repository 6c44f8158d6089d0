from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Document, Query
from fusion_bench.data.run import Run


def test_records_are_frozen() -> None:
    ranked = Run.from_dict({"q": {"a": 1.0}})
    qrels = Qrels.from_dict({"q": {"a": 1}})
    for array in (
        *(ranked.offsets, ranked.documents, ranked.scores, ranked.ranks),
        *(qrels.offsets, qrels.documents, qrels.grades),
    ):
        assert not array.flags.writeable
    for record, field in ((ranked, "name"), (qrels, "queries"), (Query("q"), "text")):
        with pytest.raises(FrozenInstanceError):
            setattr(record, field, "x")
    assert Document("d", "text").text == "text"


def test_what_is_handed_in_stays_writable_and_unchanged() -> None:
    scores, ranks = np.array([1.0, 2.0]), np.array([0, 1])
    grades = np.array([1, 2])
    Run.from_rows(
        "a",
        ["q", "q"],
        ["x", "y"],
        scores,
        ranks=ranks,
        read_options=ReadOptions(rank_from="column"),
    )
    Qrels.from_rows(["q", "q"], ["x", "y"], grades)
    assert (scores.tolist(), ranks.tolist(), grades.tolist()) == ([1.0, 2.0], [0, 1], [1, 2])
    assert all(array.flags.writeable for array in (scores, ranks, grades))
