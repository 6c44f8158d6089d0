"""How answers, p-values and marks are written."""

import pytest

from fusion_bench.report.answer_texts import (
    describe_few_changes,
    find_answer_tone,
    format_adjusted_p,
    format_answer,
    format_compared_interval,
    unseen_losses,
)
from tests.report.cases import compared


@pytest.mark.parametrize(
    ("answer", "text", "tone"),
    [
        (None, "", "plain"),
        ("better", "better", "better"),
        ("better, by less than min_gain", "better, by less than .005", "better"),
        ("worse, by less than min_gain", "worse, by less than .005", "worse"),
        ("equivalent", "equivalent within .005", "plain"),
        ("not shown", "not shown", "plain"),
        (
            "not shown (within simulation error)",
            "not shown (p = .05 within simulation error)",
            "plain",
        ),
        ("unjudged decide", "judge first", "warning"),
    ],
)
def test_answers(answer: str | None, text: str, tone: str) -> None:
    assert format_answer(answer, 0.005) == text
    assert find_answer_tone(answer) == tone


@pytest.mark.parametrize(
    ("p", "is_floor", "text"),
    [
        (1 / 10_001, True, "≤.0001"),
        (1 / 20_001, True, "≤.00005"),
        (1 / 640_001, True, "≤.0000016"),
        (0.0004, False, "<.001"),
        (0.02, False, ".020"),
        (0.2, True, ".200"),
    ],
)
def test_the_smallest_p_of_the_draws_is_a_bound(p: float, is_floor: bool, text: str) -> None:
    row = compared("x", p=p).model_copy(update={"p_floor": is_floor})
    assert format_adjusted_p(row, 0.05) == text


def test_an_interval_that_may_not_cover_is_marked() -> None:
    row = compared("x")
    few = row.model_copy(update={"few_changes": True})
    unknown = few.model_copy(update={"low": None})
    assert format_compared_interval(row) == "[-0.2000, +0.4000]"
    assert format_compared_interval(few) == "[-0.2000, +0.4000] (few)"
    assert format_compared_interval(unknown) == "n/a"
    assert describe_few_changes([row], "95 %") == ""
    assert "not a 95 % interval" in describe_few_changes([row, few], "95 %")


@pytest.mark.parametrize(("units", "share"), [(2, "100.0"), (50, "6.0"), (299, "1.0")])
def test_below_300_units_a_sentence_says_what_no_rule_can_see(units: int, share: str) -> None:
    expected = f"a loss of 1 that up to {share} % of all queries have may not show at all."
    assert unseen_losses(units) == f"Among {units} units, {expected}"
    assert unseen_losses(300) is None
