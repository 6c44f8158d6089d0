"""What a sweep changed, in words."""

from typing import Any

import pytest

from fusion_bench.report.tuning_records import ParameterInfo, TuningReport
from fusion_bench.report.tuning_texts import describe_changes
from tests.report.tuning_cases import record

BONUS = {"1": 0.05, "3": 0.02}


def change(
    *values: tuple[str, Any, Any],
    default: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    ratio: bool = False,
) -> str:
    """The words of parameters, each with its path, its default and its tuned value."""
    parameters = tuple(
        ParameterInfo(path=path, kind="float", default=old, ratio=ratio) for path, old, _ in values
    )
    params = {path: new for path, _, new in values if new is not None}
    report: TuningReport = record(parameters=parameters, default=default or {})
    choice = report.choice.model_copy(update={"params": params, "config": config or {}})
    return describe_changes(report.model_copy(update={"choice": choice}))


@pytest.mark.parametrize(
    ("path", "old", "new", "words"),
    [
        ("fusion.k", 60, 23, "k 60 → 23"),
        ("fusion.k.bm25", 60, 1000, "k of bm25 60 → 1000"),
        ("fusion(rrf).k", 60, 23, "k 60 → 23"),
        ("fusion.weights.question", 2.0, 1.4, "question ×2 → ×1.4"),
        ("fusion.weights.a.b", 1.0, 0.0, "a.b ×1 → ×0"),
        ("weights_by_type.local.keyword", 0.35, 0.5, "local: keyword ×.35 → ×.5"),
        ("by_intent.how.fusion.k", 60, 5, "how: k 60 → 5"),
        ("stages.first.fusion.weights.a", 1.0, 0.5, "first: a ×1 → ×.5"),
        ("blend.rest", 0.4, 0.3, "retrieval share below .4 → .3"),
        ("blend.retrieval", "fused", "reciprocal_rank", "retrieval fused → reciprocal_rank"),
        ("blend.beta", None, 0.25, "beta none → .25"),
        ("blend.depth", 50, 20, "rerank depth 50 → 20"),
        ("collapse.place", "fused", "each list", "collapse fused → each list"),
        ("collapse.score", "max", "sum", "document score max → sum"),
        ("collapse.keep", 1, 3, "chunks kept 1 → 3"),
        ("stages.first.collapse.k", 60, 1, "first: collapse k 60 → 1"),
        ("fusion.k", 60, 60, ""),
        ("blend.beta", 0.7, None, ""),
    ],
)
def test_each_kind_of_parameter(path: str, old: object, new: object, words: str) -> None:
    assert change((path, old, new)) == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (BONUS, {"1": 0.02, "3": 0.02}, "bonus at rank 1 .05 → .02"),
        (BONUS, {"2": 0.05, "4": 0.01}, "bonus at rank 1 .05 → at ranks 1–2 .05"),
        (BONUS, {}, ""),
        ({}, BONUS, "bonus at rank 1 none → .05"),
        (BONUS, BONUS, ""),
    ],
)
def test_entries_of_a_table_have_the_ranks_of_the_systems(
    before: dict[str, float], after: dict[str, float], words: str
) -> None:
    paths = [("fusion.bonus.1.value", 0.05, 0.02), ("fusion.bonus.1.ranks", 1, 2)]
    default, config = {"fusion": {"bonus": before}}, {"fusion": {"bonus": after}}
    assert change(*paths, default=default, config=config) == words


def test_weights_that_only_count_as_a_ratio_are_compared_on_one_scale() -> None:
    same = [("fusion.weights.a", 2.0, 1.0), ("fusion.weights.b", 1.0, 0.5)]
    assert change(*same, ratio=True) == ""
    assert change(*same) == "a ×2 → ×1, b ×1 → ×.5"
    others = [("fusion.weights.a", 2.0, 1.0), ("fusion.weights.b", 1.0, 0.1)]
    assert change(*others, ratio=True) == "b ×.5 → ×.1"


def test_eight_changes_are_listed_and_the_rest_is_counted() -> None:
    values = [(f"fusion.k.s{i}", 60, i) for i in range(11)]
    words = change(*values)
    assert words.endswith("k of s7 60 → 7 and 3 more")
    assert words.count("→") == 8
