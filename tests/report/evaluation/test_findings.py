"""Which findings a collection gets: keys, tones and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    FusionResult,
    SystemResult,
)
from fusion_bench.report.evaluation_findings import collection_findings
from fusion_bench.report.page import Finding
from tests.report import cases
from tests.report.cases import SECOND, ceiling, collection, compared, fused, system

BASE = system("base", 0.5, 0.4)
HIGH = system("high", 0.9, 0.8)
LOW = system("low", 0.2, 0.1)


def findings(found: Collection, settings: Mapping[str, object] | None = None) -> dict[str, Finding]:
    result = collection_findings(cases.report(found, settings=settings), found)
    return {finding.key: finding for finding in result}


def decision(*systems: SystemResult, found: Sequence[ComparisonResult]) -> Finding:
    return findings(collection(*systems, comparisons=found))["decision"]


def test_a_single_system_has_nothing_to_compare() -> None:
    result = findings(collection(BASE))
    assert list(result) == ["decision"]
    assert "is the only system" in result["decision"].text


def test_the_best_better_system_is_named_with_its_difference() -> None:
    found = [compared("high", 0.4, "better", p=0.01, low=0.3, high=0.5)]
    result = decision(BASE, HIGH, found=found)
    assert result.tone == "better"
    assert result.text.startswith("high is better than the baseline base on tiny: ")
    assert "nDCG@10 0.4500 → 0.8500, +88.9 %: 2 queries better, 0 worse of 3" in result.text
    assert "(+0.4000 [+0.3000, +0.5000], adjusted p .010)" in result.text


def test_a_higher_mean_that_is_not_significant_is_named_too() -> None:
    better = compared("good", 0.2, "better", p=0.0001, low=0.1, high=0.3)
    higher = compared("high", 0.4, p=0.06, low=-0.1, high=0.9)
    result = decision(BASE, system("good", 0.6, 0.7), HIGH, found=[better, higher])
    assert result.tone == "better"
    assert result.text.startswith("good is better than ")
    assert "highest nDCG@10 is that of high (nDCG@10 0.8500, +88.9 %: " in result.text


@pytest.mark.parametrize(
    ("systems", "comparison", "reason"),
    [
        ([BASE, LOW], compared("low", -0.3, "worse"), "that of base (nDCG@10 0.4500)."),
        ([BASE, HIGH], compared("high", 0.4, p=0.0496), "not shown)"),
        ([BASE, HIGH], compared("high", 0.4, "unjudged decide", p=0.01), "; unjudged decide)"),
        ([system("twin", 0.5, 0.4), BASE], compared("twin", 0.0, "identical"), "; identical)"),
    ],
)
def test_without_a_better_system_the_baseline_is_kept(
    systems: Sequence[SystemResult], comparison: ComparisonResult, reason: str
) -> None:
    result = decision(*systems, found=[comparison])
    assert result.tone == "plain"
    assert "Keep the baseline" in result.text
    assert reason in result.text


def test_a_secondary_measure_does_not_decide() -> None:
    other = compared("low", 0.4, measure=SECOND, p=0.0001).model_copy(update={"answer": "better"})
    assert decision(BASE, LOW, found=[other, compared("low", -0.3)]).tone == "plain"


def test_verdicts_are_counted_where_there_are_several() -> None:
    verdicts = ["better", "better", "worse", "unjudged decide", "identical", "not shown"]
    rows = [system(f"s{i}", 0.6, 0.5) for i in range(6)]
    found = [compared(f"s{i}", 0.1, verdict) for i, verdict in enumerate(verdicts)]
    result = findings(collection(BASE, *rows, comparisons=found))["verdict counts"]
    assert "6 compared systems: 2 better" in result.text
    assert result.text.count("1 ") == 4
    alone = findings(collection(BASE, rows[0], comparisons=found[:1]))
    assert "verdict counts" not in alone


def fusion(**changes: object) -> Finding | None:
    fields = {
        "verdict": "pays",
        "fusion": "both",
        "source": "base",
        "fusion_mean": 0.7,
        "source_mean": 0.5,
        "difference": 0.2,
        "low": 0.1,
        "high": 0.3,
        "p_adjusted": 0.01,
        "fusions": 2,
        "sources": 3,
        "is_reranked": False,
    }
    result = FusionResult.model_validate({**fields, **changes})
    rows = (system("base", 0.5, 0.5), fused("both", 0.7, 0.7))
    return findings(collection(*rows, fusion=result)).get("fusion")


@pytest.mark.parametrize(
    ("changes", "tone", "start"),
    [
        ({}, "better", "Fusion pays: both is better than every single source."),
        ({"sources": 1}, "better", "Fusion pays: both is better than the single source."),
        ({"verdict": "loses"}, "worse", "Fusion loses: the source base alone is better than all 2"),
        ({"verdict": "not shown"}, "plain", "Whether fusion pays is not shown."),
        ({"is_reranked": True}, "better", "Fusion with a reranker pays: "),
    ],
)
def test_fusion(changes: dict[str, object], tone: str, start: str) -> None:
    result = fusion(**changes)
    assert result is not None
    assert result.tone == tone
    assert result.text.startswith(start)
    family = f"{2 * int(str(changes.get('sources', 3)))} comparisons"
    evidence = f"+0.2000 [+0.1000, +0.3000], 95 % interval, adjusted p .010; {family}"
    assert f"both against base: 0.7000 against 0.5000 ({evidence}" in result.text
    without = "No fusion without a reranker was evaluated."
    assert result.text.endswith(without) is bool(changes.get("is_reranked"))


def test_nothing_about_fusion_without_a_result() -> None:
    assert "fusion" not in findings(collection(BASE, HIGH, comparisons=[compared("high")]))


@pytest.mark.parametrize(
    ("comparisons", "expected"),
    [
        ([compared("high", 0.4, detectable=0.5)], True),
        ([compared("high", 0.4, detectable=0.39)], False),
        ([compared("high", 0.4)], False),
        ([compared("high", 0.4, "unjudged decide", detectable=0.5)], False),
        ([compared("high", 0.4, "better", detectable=0.5)], False),
        ([compared("high", 0.4, detectable=0.5), compared("low", 0.1, "better")], False),
        ([], False),
    ],
)
def test_power(comparisons: Sequence[ComparisonResult], expected: bool) -> None:
    rows = (BASE, HIGH, LOW)[: len(comparisons) + 1]
    result = findings(collection(*rows, comparisons=comparisons))
    assert ("power" in result) is expected
    if expected:
        assert "2 queries is 0.5000; observed: +0.4000" in result["power"].text


def test_headroom_is_that_of_the_highest_ceiling() -> None:
    ceilings = (ceiling(0.9, 0.8, name="best source per query"), ceiling(1.0, 1.0))
    text = findings(collection(BASE, *ceilings))["headroom"].text
    assert "perfect order reaches 1.0000, +0.5500" in text
    for rows in [(BASE,), (BASE, ceiling(None, None)), (system("base", None), ceiling(1.0))]:
        assert "headroom" not in findings(collection(*rows))
