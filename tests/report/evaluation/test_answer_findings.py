"""The first group, skewed differences and unseen losses in sentences."""

from __future__ import annotations

import pytest

from fusion_bench.report.answer_texts import answer_findings
from fusion_bench.stats.comparison import Answer, SkewedDifference
from tests.report.cases import compared


def texts(
    *names: str,
    answer: Answer = "not shown",
    skew: SkewedDifference | None = None,
    systems: int = 4,
    queries: int = 400,
    groups: int = 400,
) -> dict[str | None, str]:
    row = compared("a", 0.1, answer).model_copy(update={"skew": skew})
    found = answer_findings([row], names, systems=systems, queries=queries, groups=groups)
    return {finding.key: finding.text for finding in found}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("a",), "First group: a alone. Every other one is shown to be worse than some system"),
        (("a", "b"), "First group: 2 systems, no difference shown: a, b. Every other one"),
        (("a", "b", "c", "d"), "First group: all 4 systems, no difference shown, over all pairs."),
    ],
)
def test_the_first_group_is_said_once(names: tuple[str, ...], text: str) -> None:
    found = texts(*names)
    assert list(found) == ["first group"]
    assert found["first group"].startswith(text)
    assert not {"tied", "equal"} & set(found["first group"].split())


def test_two_systems_are_no_group() -> None:
    assert texts("a", "b", systems=2) == {}
    assert texts() == {}


@pytest.mark.parametrize(
    ("queries", "groups", "text"),
    [
        (299, 299, "With 299 queries, a loss on one query in 100 may not have been seen yet."),
        (900, 30, "With 30 groups, a loss on one group in 10 may not have been seen yet."),
        (3, 3, "With 3 queries, a loss on one query in 2 may not have been seen yet."),
    ],
)
def test_few_queries_may_not_have_seen_a_loss(queries: int, groups: int, text: str) -> None:
    assert texts(answer="better", queries=queries, groups=groups) == {"unseen losses": text}
    assert texts(answer="not shown", queries=queries, groups=groups) == {}


def test_many_queries_say_nothing() -> None:
    assert texts(answer="better", queries=300, groups=300) == {}


def test_a_withheld_answer_says_why() -> None:
    skew = SkewedDifference(-1.84, 0.01, 0.001, -0.05, is_against=True, is_withheld=True)
    assert texts(skew=skew, queries=60, groups=60)["skew"] == (
        "a against base: a few large losses stand against many small differences (skewness -1.8 "
        "over 60 queries). The interval alone would say better; a bound that holds whatever was "
        "not seen does not (-0.0500), so it is not shown."
    )


def test_a_carried_answer_says_so() -> None:
    skew = SkewedDifference(1.5, -0.2, 0.001, 0.05, is_against=True, is_withheld=False)
    text = texts(answer="worse", skew=skew)["skew"]
    assert "a few large gains stand" in text
    assert text.endswith("whatever was not seen carries the answer (+0.0500).")


def test_skewness_in_the_direction_of_the_answer_adds_median_and_sign_test() -> None:
    skew = SkewedDifference(2.5, 0.01, 0.3, None, is_against=False, is_withheld=False)
    assert texts(answer="better", skew=skew)["skew"] == (
        "a against base: the differences are skewed (skewness +2.5 over 400 queries): their median "
        "is +0.0100, p of the sign test .300."
    )
