"""Which findings a collection gets: keys, tones and numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.comparison_result import ComparisonResult
from fusion_bench.evaluation.report_records.system_result import SystemResult
from fusion_bench.report.evaluation.findings import collection_findings
from fusion_bench.report.page import Finding
from tests.report import cases
from tests.report.cases import SECOND, ceiling, collection, compared, floor, fused, system

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
        ([BASE, HIGH], compared("high", 0.4, p=0.0496), "no difference shown)"),
        ([BASE, HIGH], compared("high", 0.4, "no verdict", p=0.01), "; no verdict)"),
        ([system("twin", 0.5, 0.4), BASE], compared("twin", 0.0, "identical"), "; identical)"),
    ],
)
def test_without_a_better_system_the_baseline_is_kept(
    systems: Sequence[SystemResult], comparison: ComparisonResult, reason: str
) -> None:
    result = decision(*systems, found=[comparison])
    assert result.tone == "plain"
    assert "Keep the baseline." in result.text
    assert reason in result.text


def test_a_secondary_measure_does_not_decide() -> None:
    other = compared("low", 0.4, measure=SECOND, p=0.0001).model_copy(update={"answer": "better"})
    assert decision(BASE, LOW, found=[other, compared("low", -0.3)]).tone == "plain"


def test_verdicts_are_counted_where_there_are_several() -> None:
    verdicts = ["better", "better", "worse", "no verdict", "identical", "no difference shown"]
    rows = [system(f"s{i}", 0.6, 0.5) for i in range(6)]
    found = [compared(f"s{i}", 0.1, verdict) for i, verdict in enumerate(verdicts)]
    result = findings(collection(BASE, *rows, comparisons=found))["verdict counts"]
    assert "6 compared systems: 2 better" in result.text
    assert result.text.count("1 ") == 4
    alone = findings(collection(BASE, rows[0], comparisons=found[:1]))
    assert "verdict counts" not in alone


def fusion(
    *systems: SystemResult,
    found: Sequence[ComparisonResult] = (),
    settings: Mapping[str, object] | None = None,
    **changes: object,
) -> Finding:
    made = collection(*systems, comparisons=found, **changes)
    return findings(made, settings)["fusion"]


@pytest.mark.parametrize(
    ("difference", "verdict", "tone", "claim"),
    [
        (0.2, "better", "better", "Fusion is better than"),
        (0.2, "no difference shown", "plain", "is not shown to differ from"),
        (0.2, "no verdict", "plain", "is not shown to differ from"),
        (-0.2, "worse", "worse", "Fusion is worse than"),
        (-0.2, "no difference shown", "plain", "is not shown to differ from"),
        (0.0, "identical", "plain", "is not shown to differ from"),
    ],
)
def test_fusion_against_the_baseline(
    difference: float, verdict: str, tone: str, claim: str
) -> None:
    both = fused("both", *(value + difference for value in (0.5, 0.4, 0.6, 0.5)))
    single = system("base", 0.5, 0.4, 0.6, 0.5)
    result = fusion(single, both, found=[compared("both", difference, verdict, p=0.01)])
    assert result.tone == tone
    assert claim in result.text
    assert f"both {0.5 + difference:.4f} against base 0.5000" in result.text
    assert "adjusted p .010" in result.text


def test_fusion_as_the_baseline() -> None:
    found = [compared("a", 0.2, "better", p=0.01)]
    result = fusion(fused("base", 0.5, 0.4), system("a", 0.7, 0.6), found=found)
    assert result.tone == "worse"
    assert "base 0.4500 against a 0.6500 (-0.2000, adjusted p .010)" in result.text


@pytest.mark.parametrize(
    ("single", "both", "settings", "tone", "evidence"),
    [
        ((0.1, 0.2, 0.3), (0.5, 0.6, 0.7), {}, "better", "+0.4000 [+0.4000, +0.4000], 95 %"),
        ((0.1, 0.2, 0.3), (0.5, 0.2, 0.3), {"alpha": 0.1}, "plain", "[-0.2560, "),
        ((0.5, 0.6, 0.7), (0.1, 0.2, 0.3), {"alpha": 0.2}, "worse", "-0.4000 ["),
        ((None, 0.5, 0.5), (0.5, None, None), {}, "plain", "(n/a)"),
        ((None, 0.1, 0.1), (0.4, 0.5, 0.5), {}, "better", "+0.4000 ["),
    ],
)
def test_a_source_that_is_not_the_baseline_is_compared_by_an_interval(
    single: Sequence[float | None],
    both: Sequence[float | None],
    settings: dict[str, object],
    tone: str,
    evidence: str,
) -> None:
    rows = (system("a", *single), fused("both", *both), fused("base", 0.0, 0.0, 0.0))
    result = fusion(*rows, found=[compared("a"), compared("both")], settings=settings)
    assert result.tone == tone
    assert evidence in result.text


def test_the_floor_row_is_a_source() -> None:
    result = fusion(fused("base", 0.5, 0.4), floor(0.9, 0.8, note="chosen"), ceiling(1.0, 1.0))
    assert "against best single source, chosen, 0.8500" in result.text


def test_a_reranked_fusion_counts_only_where_even_it_loses() -> None:
    reranked = fused("reranked", 0.9, 0.9, blend="position_aware")
    plain = fused("plain", 0.6, 0.5)
    found = [compared("reranked", 0.45), compared("plain", 0.1)]
    result = fusion(BASE, reranked, plain, found=found)
    assert result.text.startswith("Fusion without a reranker")
    assert "plain 0.5500" in result.text
    rows = (fused("reranked", 0.3, 0.3, blend="replace"), fused("plain", 0.2, 0.2))
    found = [compared("reranked", -0.15), compared("plain", -0.2)]
    assert "reranked 0.3000 against base" in fusion(BASE, *rows, found=found).text


def test_a_reranker_that_weighs_nothing_is_no_merit_of_reranking() -> None:
    row = fused("idle", 0.9, 0.9, blend="linear")
    blend = {"method": "linear", "beta": 0.0}
    row = row.model_copy(update={"config": {**(row.config or {}), "blend": blend}})
    alone = system("alone", 0.8, 0.8, blend="linear")
    alone = alone.model_copy(update={"config": {**(alone.config or {}), "blend": blend}})
    result = fusion(BASE, row, alone, found=[compared("idle", 0.45, "better")])
    assert result.text.startswith("Fusion is better than the best single source: idle 0.9000")
    assert f"against {BASE.name} " in result.text
    assert result.text.endswith("In idle the reranker weighs 0.")


@pytest.mark.parametrize(
    ("value", "verdict", "tone"),
    [
        (0.9, "better", "better"),
        (0.9, "no difference shown", "plain"),
        (0.2, "worse", "worse"),
        (0.45, "identical", "plain"),
    ],
)
def test_where_all_fusions_are_reranked_fusion_alone_is_unknown(
    value: float, verdict: str, tone: str
) -> None:
    row = fused("reranked", value, value, blend="position_aware")
    result = fusion(BASE, row, found=[compared("reranked", value - 0.45, verdict)])
    assert result.tone == tone
    assert result.text.startswith("Fusion with a reranker")
    assert result.text.endswith("No fusion without a reranker was evaluated.")


@pytest.mark.parametrize("blend", ["none", "position_aware"])
def test_a_system_over_a_stage_does_what_the_stage_does(blend: str) -> None:
    stage = fused("stage", 0.9, 0.9, blend=blend).config
    row = system("two", 0.9, 0.9)
    row = row.model_copy(update={"config": {**(row.config or {}), "stages": {"first": stage}}})
    result = fusion(BASE, row, found=[compared("two", 0.45, "better")])
    assert result.text.startswith("Fusion is" if blend == "none" else "Fusion with a reranker is")


@pytest.mark.parametrize(
    "systems",
    [
        [BASE, HIGH],  # no fusion
        [fused("base", 0.5, 0.4), system("reranked", 0.9, 0.9, blend="replace")],  # no source alone
        [system("base", None, None), fused("high", 0.9, 0.8)],
        [system("base", math.nan, 0.1), fused("high", None, None)],
    ],
)
def test_nothing_about_fusion_without_both(systems: Sequence[SystemResult]) -> None:
    found = collection(*systems, comparisons=[compared(systems[1].name)])
    assert "fusion" not in findings(found)


@pytest.mark.parametrize(
    ("comparisons", "expected"),
    [
        ([compared("high", 0.4, detectable=0.5)], True),
        ([compared("high", 0.4, detectable=0.39)], False),
        ([compared("high", 0.4)], False),
        ([compared("high", 0.4, "no verdict", detectable=0.5)], False),
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
