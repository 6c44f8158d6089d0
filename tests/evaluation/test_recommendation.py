"""What to do after a comparison: its kinds, and which system of one group is preferred."""

from typing import Any

import pytest

from fusion_bench.evaluation.recommendation import (
    Effort,
    choose_action,
    find_effort,
    find_preference,
    preferred_system,
)
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.experiment.system import System
from tests.report import cases
from tests.report.cases import compared

PLAIN: dict[str, Any] = {"runs": ["a", "b"]}
TUNED: dict[str, Any] = {**PLAIN, "fusion": {"method": "rrf", "k": 20}}
THREE: dict[str, Any] = {"runs": ["a", "b", "c"]}
RERANKED: dict[str, Any] = {
    **PLAIN,
    "blend": {"method": "replace", "reranker": "r", "depth": 50},
}
IDLE: dict[str, Any] = {
    **PLAIN,
    "blend": {"method": "linear", "reranker": "r", "depth": 50, "beta": 0},
}
STAGED: dict[str, Any] = {
    "runs": ["first", "c"],
    "stages": {"first": RERANKED},
    "blend": {"method": "replace", "reranker": "s", "depth": 20},
}
#: Both rerank with one reranker to one depth, so that its scores are asked for once.
SAME_TWICE = {**STAGED, "blend": RERANKED["blend"]}


@pytest.mark.parametrize(
    ("config", "effort"),
    [
        ({"runs": ["a"]}, Effort(0, 1, 0)),
        (PLAIN, Effort(0, 2, 0)),
        (TUNED, Effort(0, 2, 1)),
        ({**TUNED, "fusion": {"method": "rrf", "weights": {"a": 2, "b": 3}}}, Effort(0, 2, 2)),
        (RERANKED, Effort(50, 2, 0)),
        ({**PLAIN, "blend": {**RERANKED["blend"], "depth": 20}}, Effort(20, 2, 1)),
        (STAGED, Effort(70, 3, 1)),
        (SAME_TWICE, Effort(50, 3, 0)),
    ],
)
def test_effort_by_hand(config: dict[str, Any], effort: Effort) -> None:
    assert find_effort(System.model_validate({"name": "x", **config})) == effort


def test_an_idle_reranker_is_not_asked() -> None:
    assert find_effort(System.model_validate({"name": "x", **IDLE})).calls == 0


def collect(group: tuple[str, ...], **configs: dict[str, Any] | None) -> Collection:
    """A baseline, and systems of one mean that are better."""
    rows: list[SystemResult] = [cases.system("base", 0.5)]
    for name, config in configs.items():
        rows.append(cases.system(name, 0.6).model_copy(update={"config": config}))
    found = [compared(name, 0.1, "better") for name in configs]
    return cases.collection(*rows, comparisons=found, first_group=group)


@pytest.mark.parametrize(
    ("others", "preferred", "reason"),
    [
        ({"reranked": RERANKED, "plain": PLAIN}, "plain", "model calls"),
        ({"reranked": RERANKED, "idle": IDLE}, "idle", "model calls"),
        ({"three": THREE, "tuned": TUNED}, "tuned", "fewest lists"),
        ({"tuned": TUNED, "plain": PLAIN}, "plain", "set parameters"),
        ({"one": PLAIN, "two": PLAIN}, "one", "highest mean"),
        ({"unknown": None, "reranked": RERANKED}, "reranked", "model calls"),
    ],
)
def test_of_one_first_group_the_least_effort_is_preferred(
    others: dict[str, dict[str, Any] | None], preferred: str, reason: str
) -> None:
    collection = collect(tuple(others), **others)
    preference = find_preference(collection)
    assert preference is not None
    assert (preference.candidate, preferred_system(collection)) == (preferred, preferred)
    assert reason in preference.reason


@pytest.mark.parametrize("group", [("reranked",), ("base",), ()])
def test_without_others_in_the_group_the_highest_mean_is_preferred(group: tuple[str, ...]) -> None:
    preference = find_preference(collect(group, reranked=RERANKED, plain=PLAIN))
    assert preference is not None
    assert (preference.candidate, preference.reason) == ("reranked", "")


@pytest.mark.parametrize(
    ("answer", "difference", "detectable", "action"),
    [
        ("better", 0.1, 0.05, "use"),
        ("unjudged decide", 0.1, 0.05, "judge first"),
        ("not shown", 0.05, 0.05, "more queries"),
        ("not shown", 0.06, 0.05, "keep"),
        ("not shown", -0.01, 0.05, "keep"),
        ("not shown", 0.01, None, "keep"),
        ("equivalent", 0.01, 0.05, "keep"),
        ("worse", -0.1, 0.05, "keep"),
    ],
)
def test_each_kind_of_advice(
    answer: str, difference: float, detectable: float | None, action: str
) -> None:
    item = compared("x", difference, answer, detectable=detectable)
    collection = cases.collection(
        cases.system("base", 0.5), cases.system("x", 0.5 + difference), comparisons=[item]
    )
    assert choose_action(collection) == action
    assert preferred_system(collection) == ("x" if action == "use" else "base")


def test_a_baseline_alone_is_kept() -> None:
    alone = cases.collection(cases.system("base", 0.5))
    assert (choose_action(alone), preferred_system(alone)) == ("keep", "base")
