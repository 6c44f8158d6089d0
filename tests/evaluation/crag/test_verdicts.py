"""CRAG's verdicts: CONV-03-05's REQ-TYPE-010, BR-016, BR-017 and AC-TYPE-005."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.crag import CragThresholds, classify_scores, judge_list, name_verdicts
from fusion_bench.experiment.settings import CragFitSettings, CragRule, CragSettings
from fusion_bench.schema import CRAGScore

NEXT = np.nextafter


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (1.0, "correct"),
        (0.7, "correct"),
        (NEXT(0.7, 0), "ambiguous"),
        (0.5, "ambiguous"),
        (NEXT(0.3, 1), "ambiguous"),
        (0.3, "incorrect"),
        (0.29, "incorrect"),
        (0.0, "incorrect"),
        (math.nan, "incorrect"),
    ],
)
def test_br_016_thresholds(score: float, verdict: str) -> None:
    """BR-016: from .7 on correct, up to .3 incorrect, ambiguous between them."""
    masks = classify_scores(np.array([score]), CragThresholds())
    assert [name for name, mask in masks.items() if mask[0]] == [verdict]
    assert name_verdicts(np.array([score]), CragThresholds()) == [verdict]
    assert judge_list([score]).relevance == verdict


@pytest.mark.parametrize(
    ("score", "verdict", "needs_search"),
    [(0.9, "correct", False), (0.1, "incorrect", True), (0.5, "ambiguous", True)],
)
def test_br_017_and_ac_type_005_needs_web_search(
    score: float, verdict: str, needs_search: bool
) -> None:
    """AC-TYPE-005, scenarios 1 to 3; scenario 2: ``refinedQuery`` may hold a better query."""
    found = judge_list([0.05, score], refined_query="better")
    assert (found.relevance, found.needs_web_search) == (verdict, needs_search)
    assert found.refined_query == ("better" if needs_search else None)
    assert judge_list([score]).refined_query is None


@pytest.mark.parametrize("score", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_req_type_010_confidence_is_the_score(score: float) -> None:
    verdict = judge_list([0.0, score])
    record = CRAGScore.of_score(score)
    assert (verdict.confidence, verdict.relevance) == (record.confidence, record.relevance)
    assert verdict.needs_web_search == record.needs_web_search


def test_only_the_top_of_the_list_counts() -> None:
    assert judge_list([0.1] * 10 + [0.9]).relevance == "incorrect"
    assert judge_list([0.1] * 10 + [0.9], top=11).relevance == "correct"
    assert judge_list([math.nan, 0.8]).relevance == "correct"


@pytest.mark.parametrize("scores", [[], [math.nan]])
def test_a_list_without_scores_is_incorrect(scores: list[float]) -> None:
    found = judge_list(scores)
    assert (found.relevance, found.confidence, found.needs_web_search) == ("incorrect", 0.0, True)


def test_one_threshold_for_both() -> None:
    masks = classify_scores(np.array([0.4, 0.5, 0.6]), CragThresholds(0.5, 0.5))
    assert [mask.tolist() for mask in masks.values()] == [
        [False, True, True],
        [False, False, False],
        [True, False, False],
    ]


@pytest.mark.parametrize("score", [1.2, -0.1, math.inf])
def test_scores_are_on_the_unit_scale(score: float) -> None:
    with pytest.raises(ConfigError, match="outside \\[0, 1\\]"):
        judge_list([score])


@pytest.mark.parametrize("settings", [CragRule, CragSettings, CragFitSettings])
def test_crossed_thresholds_are_refused(settings: type[CragRule]) -> None:
    with pytest.raises(ValueError, match=r"lower 0\.9 .* upper 0\.1"):
        settings(upper=0.1, lower=0.9)
    with pytest.raises(ConfigError, match=r"lower 0\.9 .* upper 0\.1"):
        CragThresholds(0.1, 0.9)
    with pytest.raises(ConfigError, match=r"upper 1\.1 is outside \[0, 1\]"):
        judge_list([0.5], CragThresholds(1.1, 0.3))


def test_the_example_of_the_page() -> None:
    page = Path(__file__).parents[3] / "docs/reranking.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[-1].split("```")[0]
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 - our own page
    assert "verdict" in names
