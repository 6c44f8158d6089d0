"""What the golden page of a tuning run's findings does not show."""

from typing import Any

import pytest

from fusion_bench.report.markdown import render_page
from fusion_bench.report.tuning_page import build_page, tuning_findings
from fusion_bench.report.tuning_records import Look
from fusion_bench.report.tuning_texts import advise_next_look, format_level
from tests.report.tuning_cases import front, front_with_points, record
from tests.report.tuning_finding_cases import BM25, FEWEST, LOOK, chosen


def test_what_a_run_chose_and_its_verdict_first() -> None:
    result = tuning_findings(record(interrupted=True))
    assert result[0].key == "verdict"
    assert [finding.tone for finding in result].index("warning") == len(result) - 1
    assert "warning" not in {finding.tone for finding in tuning_findings(record())}
    assert record(**chosen(trial=0)).is_default_chosen
    assert not record().is_default_chosen


def test_the_advice_to_judge_more_names_the_level_of_the_next_look() -> None:
    advice = advise_next_look(LOOK)
    assert "look 2" in advice
    assert ".0025" in advice
    assert advise_next_look(Look(number=None, level=0.024, power=0.79)) == ""
    levels = [format_level(level) for level in (0.025, 0.0025, 0.00015625)]
    assert levels == [".025", ".0025", ".00016"]


def test_the_best_point_and_the_cheapest_that_is_nearly_as_good() -> None:
    whole = front()
    assert whole.best.depth == 60
    assert whole.cheapest_reaching(whole.best.value - 0.005).depth == 10
    assert whole.cheapest_reaching(whole.best.value - 0.001).depth == 60
    same = front_with_points({10: {"value": 0.56}})
    assert same.best.depth == 10, "of equally good ones the cheaper"


@pytest.mark.parametrize(
    ("changed", "kind", "name", "loss_share"),
    [
        ({}, "use tuned", "today tuned", 0.006),
        ({"untuned": BM25}, "use untuned", "bm25", 0.012),
        ({"untuned": FEWEST, "verdict": "keep"}, "use untuned", "bm25", None),
        ({"verdict": "keep"}, "keep default", "today", None),
        ({"verdict": "worse"}, "keep default", "today", None),
        ({"verdict": "too few queries"}, "keep default", "today", None),
        ({"verdict": "unjudged decide"}, "judge first", "today", None),
        ({"verdict": "groups decide"}, "declare groups", "today", None),
    ],
)
def test_one_recommendation_is_carried_by_title_advice_and_first_finding(
    changed: dict[str, Any], kind: str, name: str, loss_share: float | None
) -> None:
    report = record(**changed)
    advice, page = report.advice, build_page(report)
    assert (advice.kind, advice.name, advice.loss_share) == (kind, name, loss_share)
    assert page.advice[0].startswith(advice.sentence)
    assert page.headline is not None
    assert (advice.sentence in page.headline.text) == (kind == "use untuned")
    assert (name in page.answer) != (kind == "use tuned")
    assert page.answer.startswith("Use ") == kind.startswith("use")
    assert "unjudged decide" not in render_page(page)


def test_the_recommendation_and_the_verdict_have_names_of_their_own() -> None:
    data = record(untuned=BM25).model_dump(mode="json")
    assert data["verdict_against_default"] == "ship"
    assert data["recommendation"]["kind"] == "use untuned"
    assert data["recommendation"]["config"] == {"runs": ["bm25"]}
    assert "verdict" not in data
