"""Orders of an engine beside their replay: equal, equal but for ties, different."""

from __future__ import annotations

import pytest

from benchmarks.studies.pulled_engines.orders import Difference, compare_orders

REPLAY = [("a", 1.0), ("b", 0.5), ("c", 0.5), ("d", 0.25), ("e", 0.25 - 1e-8), ("f", 0.0)]


@pytest.mark.parametrize(
    ("documents", "kind"),
    [
        ("abcd", "same"),
        ("acbd", "equal"),
        ("abce", "equal_in_32_bits"),  # the cut lies between two that are about equal
        ("acbe", "equal_in_32_bits"),
        ("bacd", "different"),
        ("abcf", "different"),
        ("abcx", "different"),
        ("abc", "different"),
        ("", "different"),
        ("abcde", "different"),
    ],
)
def test_each_kind_of_order(documents: str, kind: str) -> None:
    theirs = [(document, dict(REPLAY).get(document, 0.1)) for document in documents]
    counts = compare_orders({"q": theirs}, {"q": REPLAY}, depth=4)
    known = ("same", "equal", "equal_in_32_bits", "different")
    assert {name: getattr(counts, name) for name in known} == {
        name: int(name == kind) for name in known
    }
    assert (counts.first is None) == (kind != "different")


def test_a_list_may_be_shorter_than_the_depth() -> None:
    assert compare_orders({"q": REPLAY}, {"q": REPLAY}, depth=10).same == 1
    assert compare_orders({"q": REPLAY}, {}, depth=10).different == 1


def test_the_first_difference_and_the_greatest_of_scores() -> None:
    engine = {"q1": [("a", 1.0), ("b", 0.5)], "q2": [("c", 0.5), ("a", 1.1)]}
    counts = compare_orders(engine, {"q1": REPLAY, "q2": REPLAY}, depth=2)
    assert counts.first == Difference("q2", 1, "c", 0.5, "a", 1.0)
    assert counts.score_difference == pytest.approx(0.1)
