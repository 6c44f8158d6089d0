"""How answers, p-values and marks are written."""

import pytest

from fusion_bench.report.answer_texts import (
    describe_missing_intervals,
    find_answer_tone,
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
        ("equivalent", "equivalent within .005 on these queries", "plain"),
        ("not shown", "not shown", "plain"),
        ("unjudged decide", "judge first", "warning"),
    ],
)
def test_answers(answer: str | None, text: str, tone: str) -> None:
    assert format_answer(answer, 0.005) == text
    assert find_answer_tone(answer) == tone


def test_a_row_without_an_interval_says_why() -> None:
    row = compared("x")
    unknown = row.model_copy(update={"low": None})
    assert format_compared_interval(row) == "[-0.2000, +0.4000]"
    assert format_compared_interval(unknown) == "n/a"
    assert describe_missing_intervals([row]) == ""
    assert "few differing queries" in describe_missing_intervals([row, unknown])


@pytest.mark.parametrize(("units", "share"), [(2, "100.0"), (50, "6.0"), (299, "1.0")])
def test_below_300_units_a_sentence_says_what_no_rule_can_see(units: int, share: str) -> None:
    expected = f"a loss of 1 that up to {share} % of all queries have may not show at all."
    assert unseen_losses(units) == f"Among {units} units, {expected}"
    assert unseen_losses(300) is None
