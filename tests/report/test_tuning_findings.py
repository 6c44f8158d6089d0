"""What the golden page of a tuning run's findings does not show."""

from typing import Any

import pytest

from fusion_bench.report.markdown import render_page
from fusion_bench.report.tuning_page import build_page, tuning_findings
from fusion_bench.report.tuning_records import Look
from fusion_bench.report.tuning_texts import PreferredSystem, advise_next_look, format_level
from tests.report.tuning_cases import front, front_with_points, gain, record
from tests.report.tuning_finding_cases import BM25, CASES, FEWEST, LOOK


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


BY_LESS = {"verdict": "keep", "held_out": gain(0.003, 0.001, 0.0045)}


@pytest.mark.parametrize(
    ("changed", "advice", "title"),
    [
        (BY_LESS, "only if the change costs nothing", "about as good"),
        (CASES["a deeper depth is better"], "Use depth 60 (front.yaml)", "Change the reranker"),
        ({"untuned": BM25}, "Use bm25 alone instead of today: it does as well", "Use bm25"),
    ],
)
def test_a_default_that_is_shown_to_be_worse_is_not_kept(
    changed: dict[str, Any], advice: str, title: str
) -> None:
    report = record(**changed)
    page = build_page(report)
    assert advice in report.advice.sentence
    assert title in page.answer
    for text in (report.advice.sentence, page.answer):
        assert "keep the default" not in text.lower()


def test_a_list_needs_no_fusion_and_a_system_no_tuning() -> None:
    fused = PreferredSystem("plain", {"runs": ["a", "b"], "fusion": {"method": "rrf"}})
    sentences = [record(untuned=untuned).advice.sentence for untuned in (BM25, fused)]
    assert ["needs no fusion" in each for each in sentences] == [True, False]
    assert "Use plain instead of" in sentences[1]


@pytest.mark.parametrize(
    ("number", "level", "reason"),
    [
        (1, 0.02, "The interval is of 96 %, because this is the first of several looks at these"),
        (2, 0.0025, "The interval is of 99.5 %, because this is look 2 at these queries."),
        (1, 0.025, ""),
    ],
)
def test_the_held_out_values_in_both_measures(number: int, level: float, reason: str) -> None:
    look = LOOK.model_copy(update={"number": number, "level": level})
    report = record(other_means={"RR@10": (0.25, 0.5)}, look=look, level=level)
    details = tuning_findings(report)[0].details
    assert "RRF (k 60) of dense and bm25" in details[0]
    assert details[1].startswith("Tuned: k 60 → ")
    values, _, rest = details[2].partition("0.5000.")
    assert values.endswith("nDCG@10 0.5000 → 0.5300, MRR@10 0.2500 → ")
    assert rest.strip().startswith(reason)
    assert bool(rest) == bool(reason)
